;; Observes events, and logs the type of each. Of an account or room that begins with x it traps.
(module
  (import "carillon:hooks@1" "field" (func $field (param i32 i32 i32) (result i32)))
  (import "carillon:hooks@1" "log" (func $log (param i32 i32)))
  (memory (export "memory") 1)
  (func (export "event") (result i32)
    (drop (call $field (i32.const 2) (i32.const 1024) (i32.const 64)))
    (if (i32.eq (i32.load8_u (i32.const 1024)) (i32.const 120)) (then unreachable))
    (call $log (i32.const 2048) (call $field (i32.const 0) (i32.const 2048) (i32.const 64)))
    (i32.const 0)))
