;; Decides by the first letter of the body of a message that has come: d drops, r rejects, b replaces the body, p the payload, x traps, l loops.
(module
  (import "carillon:hooks@1" "field" (func $field (param i32 i32 i32) (result i32)))
  (import "carillon:hooks@1" "output" (func $output (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "policy-violation")
  (data (i32.const 32) "not today")
  (data (i32.const 64) "another body")
  (data (i32.const 128) "<body>third</body>")
  (func (export "arrived") (result i32)
    (local $letter i32)
    (if (i32.lt_s (call $field (i32.const 5) (i32.const 1024) (i32.const 64)) (i32.const 1))
      (then (return (i32.const 0))))
    (local.set $letter (i32.load8_u (i32.const 1024)))
    (if (i32.eq (local.get $letter) (i32.const 100)) (then (return (i32.const 1))))
    (if (i32.eq (local.get $letter) (i32.const 114)) (then
      (call $output (i32.const 1) (i32.const 0) (i32.const 16))
      (call $output (i32.const 0) (i32.const 32) (i32.const 9))
      (return (i32.const 2))))
    (if (i32.eq (local.get $letter) (i32.const 98)) (then
      (call $output (i32.const 2) (i32.const 64) (i32.const 12))
      (return (i32.const 3))))
    (if (i32.eq (local.get $letter) (i32.const 112)) (then
      (call $output (i32.const 3) (i32.const 128) (i32.const 18))
      (return (i32.const 3))))
    (if (i32.eq (local.get $letter) (i32.const 120)) (then unreachable))
    (if (i32.eq (local.get $letter) (i32.const 108)) (then (loop $l (br $l))))
    (i32.const 0)))
