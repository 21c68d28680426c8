;; Drops every message.
(module
  (memory (export "memory") 1)
  (func (export "submit_message") (result i32) (i32.const 1)))
