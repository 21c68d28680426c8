;; Decides by the first letter of the text that a push shows: d drops, r rejects, b replaces title and text, j what the app is told beside, m breaks that, n says
;; that it replaces and writes nothing.
(module
  (import "carillon:hooks@1" "field" (func $field (param i32 i32 i32) (result i32)))
  (import "carillon:hooks@1" "output" (func $output (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "News")
  (data (i32.const 32) "anything")
  (data (i32.const 64) "{\22n\22:1}")
  (func (export "push_render") (result i32)
    (local $letter i32)
    (drop (call $field (i32.const 5) (i32.const 1024) (i32.const 64)))
    (local.set $letter (i32.load8_u (i32.const 1024)))
    (if (i32.eq (local.get $letter) (i32.const 100)) (then (return (i32.const 1))))
    (if (i32.eq (local.get $letter) (i32.const 114)) (then (return (i32.const 2))))
    (if (i32.eq (local.get $letter) (i32.const 98)) (then
      (call $output (i32.const 8) (i32.const 0) (i32.const 4))
      (call $output (i32.const 2) (i32.const 32) (i32.const 8))
      (return (i32.const 3))))
    (if (i32.eq (local.get $letter) (i32.const 106)) (then
      (call $output (i32.const 3) (i32.const 64) (i32.const 7))
      (return (i32.const 3))))
    (if (i32.eq (local.get $letter) (i32.const 109)) (then
      (call $output (i32.const 3) (i32.const 64) (i32.const 6))
      (return (i32.const 3))))
    (if (i32.eq (local.get $letter) (i32.const 110)) (then (return (i32.const 3))))
    (i32.const 0)))
