;; Rejects, at random, half of the messages that come.
(module
  (import "carillon:hooks@1" "random" (func $random (result i64)))
  (import "carillon:hooks@1" "now" (func $now (result i64)))
  (import "carillon:hooks@1" "count" (func $count (param i32 i32)))
  (memory (export "memory") 1)
  (func $roll (result i32)
    (call $count (i32.const 0) (i32.and (i32.wrap_i64 (call $now)) (i32.const 255)))
    (i32.and (i32.wrap_i64 (call $random)) (i32.const 2)))
  (func (export "arrived") (result i32) (call $roll))
  (func (export "closed") (result i32) (i32.and (call $roll) (i32.const 0))))
