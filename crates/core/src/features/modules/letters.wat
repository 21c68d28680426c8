;; Decides by the first letter of a message's body: d drops, r rejects, b replaces the body, p the payload, m breaks the payload,
;; x traps, l loops; and by the number in a notification {"n":…}: 2 drops, 3 replaces, 4 breaks.
(module
  (import "carillon:hooks@1" "field" (func $field (param i32 i32 i32) (result i32)))
  (import "carillon:hooks@1" "output" (func $output (param i32 i32 i32)))
  (import "carillon:hooks@1" "log" (func $log (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "policy-violation")
  (data (i32.const 32) "not here")
  (data (i32.const 64) "another body")
  (data (i32.const 128) "<body>third</body>")
  (data (i32.const 192) "{\22n\22:9}")
  (func $decide (result i32)
    (local $letter i32)
    (if (i32.lt_s (call $field (i32.const 5) (i32.const 1024) (i32.const 64)) (i32.const 1))
      (then (return (i32.const 0))))
    (local.set $letter (i32.load8_u (i32.const 1024)))
    (if (i32.eq (local.get $letter) (i32.const 100)) (then (return (i32.const 1))))
    (if (i32.eq (local.get $letter) (i32.const 114)) (then
      (call $output (i32.const 1) (i32.const 0) (i32.const 16))
      (call $output (i32.const 0) (i32.const 32) (i32.const 8))
      (return (i32.const 2))))
    (if (i32.eq (local.get $letter) (i32.const 98)) (then
      (call $output (i32.const 2) (i32.const 64) (i32.const 12))
      (return (i32.const 3))))
    (if (i32.eq (local.get $letter) (i32.const 112)) (then
      (call $output (i32.const 3) (i32.const 128) (i32.const 18))
      (return (i32.const 3))))
    (if (i32.eq (local.get $letter) (i32.const 109)) (then
      (call $output (i32.const 3) (i32.const 128) (i32.const 11))
      (return (i32.const 3))))
    (if (i32.eq (local.get $letter) (i32.const 120)) (then unreachable))
    (if (i32.eq (local.get $letter) (i32.const 108)) (then (loop $l (br $l))))
    (i32.const 0))
  (func (export "submit_message") (result i32) (call $decide))
  (func (export "room_message") (result i32) (call $decide))
  (func (export "notification") (result i32)
    (local $digit i32)
    (drop (call $field (i32.const 4) (i32.const 1024) (i32.const 64)))
    (local.set $digit (i32.load8_u (i32.const 1029)))
    (if (i32.eq (local.get $digit) (i32.const 50)) (then (return (i32.const 1))))
    (if (i32.eq (local.get $digit) (i32.const 51)) (then
      (call $output (i32.const 3) (i32.const 192) (i32.const 7))
      (return (i32.const 3))))
    (if (i32.eq (local.get $digit) (i32.const 52)) (then
      (call $output (i32.const 3) (i32.const 192) (i32.const 6))
      (return (i32.const 3))))
    (i32.const 0)))
