;; Observes sessions. What comes and goes of an account that begins with x makes it trap; with y it says more than it may.
(module
  (import "carillon:hooks@1" "field" (func $field (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func $observe (result i32)
    (local $letter i32)
    (drop (call $field (i32.const 1) (i32.const 1024) (i32.const 64)))
    (local.set $letter (i32.load8_u (i32.const 1024)))
    (if (i32.eq (local.get $letter) (i32.const 120)) (then unreachable))
    (i32.eq (local.get $letter) (i32.const 121)))
  (func (export "opened") (result i32) (call $observe))
  (func (export "closed") (result i32) (call $observe)))
