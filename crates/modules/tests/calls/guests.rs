//! Modules for tests, in the text format of WebAssembly.

use carillon_core::model::UnixMs;
use carillon_core::ports::modules::*;
use carillon_modules::{Bounds, WasmRuntime};
use carillon_wire::stanza::{MessageType, Stanza};
use carillon_wire::xml::Element;
use std::sync::Arc;

/// A module whose `submit_message` has this body, with what it imports and a page of memory.
pub(crate) fn guest(body: &str) -> String {
    format!(
        r#"(module
  (import "carillon:hooks@1" "field" (func $field (param i32 i32 i32) (result i32)))
  (import "carillon:hooks@1" "output" (func $output (param i32 i32 i32)))
  (import "carillon:hooks@1" "log" (func $log (param i32 i32)))
  (import "carillon:hooks@1" "count" (func $count (param i32 i32)))
  (import "carillon:hooks@1" "now" (func $now (result i64)))
  (import "carillon:hooks@1" "random" (func $random (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "policy-violation")
  (data (i32.const 32) "no links here")
  (data (i32.const 64) "a < b & c")
  (data (i32.const 96) "\ff\fe")
  (global $calls (mut i32) (i32.const 0))
  (func $submit (export "submit_message") (result i32) {body}))"#
    )
}

/// What lets everything pass.
pub(crate) const PASS: &str = "(i32.const 0)";

pub(crate) fn runtime() -> WasmRuntime {
    WasmRuntime::without_clock(Bounds::default())
}

pub(crate) fn compiled(text: &str) -> Arc<dyn Compiled> {
    let code = wat::parse_str(text).expect("a module in the text format");
    runtime().compile(&code).expect("a module")
}

pub(crate) fn instance(body: &str) -> Box<dyn Instance> {
    compiled(&guest(body)).instance(&"".into()).expect("an instance")
}

/// A message of alice's to bob.
pub(crate) fn message(body: &str) -> Stanza {
    let jid = |jid: &str| carillon_wire::jid::Jid::new(jid).expect("an address");
    Stanza::message(MessageType::Chat)
        .with_from(jid("alice@localhost/phone"))
        .with_to(jid("bob@localhost"))
        .with_id("m1")
        .with_payload(Element::new("body", carillon_wire::ns::CLIENT).with_text(body))
}

pub(crate) fn call(instance: &mut dyn Instance, body: &str) -> Done {
    call_with(instance, body, CALL_FUEL)
}

pub(crate) fn call_with(instance: &mut dyn Instance, body: &str, fuel: u64) -> Done {
    let subject = Subject::Message(message(body));
    instance.call(Call { hook: ModuleHook::SubmitMessage, subject, now: UnixMs(7), seed: 1, fuel })
}
