;; Observes the ends of sessions with a lot of work; and lets messages pass after as much.
(module
  (memory (export "memory") 1)
  (func $work (result i32)
    (local $left i32)
    (local.set $left (i32.const 150000))
    (loop $l (br_if $l (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
    (i32.const 0))
  (func (export "closed") (result i32) (call $work))
  (func (export "arrived") (result i32) (call $work)))
