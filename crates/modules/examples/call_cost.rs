//! What a call of a module costs, in nanoseconds: the median of several rounds. `bench/modules/run` runs it.

use carillon_core::model::UnixMs;
use carillon_core::ports::modules::{CALL_FUEL, Call, Instance, ModuleHook, Runtime, START_FUEL, Subject};
use carillon_modules::{Bounds, WasmRuntime};
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{MessageType, Stanza};
use carillon_wire::xml::Element;
use std::time::Instant;

const ROUNDS: usize = 21;
const CALLS: u32 = 20_000;

const PASS: &str = r#"(module (memory (export "memory") 1)
  (func (export "submit_message") (result i32) (i32.const 0)))"#;

/// Reads sender, recipient and body, and looks at each byte of the body.
const READS: &str = r#"(module
  (import "carillon:hooks@1" "field" (func $field (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "submit_message") (result i32)
    (local $at i32) (local $sum i32)
    (drop (call $field (i32.const 1) (i32.const 0) (i32.const 1024)))
    (drop (call $field (i32.const 2) (i32.const 1024) (i32.const 1024)))
    (local.set $at (call $field (i32.const 5) (i32.const 2048) (i32.const 4096)))
    (loop $l
      (local.set $at (i32.sub (local.get $at) (i32.const 1)))
      (local.set $sum (i32.add (local.get $sum) (i32.load8_u (i32.add (i32.const 2048) (local.get $at)))))
      (br_if $l (local.get $at)))
    (i32.eqz (local.get $sum))))"#;

/// A module that does something bad whenever it is called.
const HARMFUL: &str = r#"(module
  (import "carillon:hooks@1" "field" (func $field (param i32 i32 i32) (result i32)))
  (import "carillon:hooks@1" "output" (func $output (param i32 i32 i32)))
  (import "carillon:hooks@1" "log" (func $log (param i32 i32)))
  (memory (export "memory") 1)
  (func $submit (export "submit_message") (result i32) BODY))"#;

/// What is bad, and its code. Each ends within the fuel of a call.
const HARMS: &[(&str, &str)] = &[
    ("loops", "(loop $l (br $l)) (unreachable)"),
    ("traps", "(unreachable)"),
    ("calls itself", "(i32.add (call $submit) (i32.const 1))"),
    (
        "wants all memory",
        "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) (unreachable)",
    ),
    (
        "fills its memory again and again",
        "(loop $l (memory.fill (i32.const 0) (i32.const 1) (i32.const 65536)) (br $l)) (unreachable)",
    ),
    ("floods the log", "(loop $l (call $log (i32.const 0) (i32.const 60000)) (br $l)) (unreachable)"),
    (
        "copies fields for ever",
        "(loop $l (drop (call $field (i32.const 4) (i32.const 0) (i32.const 60000))) (br $l)) (unreachable)",
    ),
    (
        "calls the host for ever",
        "(loop $l (drop (call $field (i32.const 77) (i32.const 0) (i32.const 0))) (br $l)) (unreachable)",
    ),
    (
        "writes too much",
        "(loop $l (call $output (i32.const 2) (i32.const 0) (i32.const 65536)) (call $output (i32.const 3) (i32.const 0) (i32.const 65536)) (br $l)) (unreachable)",
    ),
    ("gives no verdict", "(i32.const 77)"),
];

fn main() {
    let runtime = WasmRuntime::new(Bounds::default());
    let instance = |text: &str| {
        let code = wat::parse_str(text).expect("a module");
        runtime.compile(&code).expect("a module").instance(&"".into()).expect("an instance")
    };
    println!("passes: {} ns per call", median(&mut *instance(PASS)));
    println!("reads a body of 100 bytes: {} ns per call", median(&mut *instance(READS)));
    let mut renewed = instance(PASS);
    let begun = Instant::now();
    for _ in 0..1000 {
        renewed.renew(START_FUEL).expect("it starts");
    }
    println!("is made anew: {} ns", begun.elapsed().as_nanos() / 1000);
    for (what, body) in HARMS {
        let mut harmful = instance(&HARMFUL.replace("BODY", body));
        let begun = Instant::now();
        let why = call(&mut *harmful, message()).expect_err("it fails");
        println!("{what}: ended after {} µs: {why}", begun.elapsed().as_micros());
        let begun = Instant::now();
        harmful.renew(START_FUEL).expect("it starts");
        println!("{what}: made anew in {} µs", begun.elapsed().as_micros());
    }
    if let Some(file) = std::env::args().nth(1) {
        let code = std::fs::read(&file).expect("a file");
        let begun = Instant::now();
        let compiled = runtime.compile(&code).expect("a module");
        println!("{file}: compiled and started in {} ms", begun.elapsed().as_millis());
        let mut started = compiled.instance(&"".into()).expect("an instance");
        let begun = Instant::now();
        let fuel = started.renew(START_FUEL).expect("it starts");
        println!("{file}: started with {fuel} units of fuel in {} µs", begun.elapsed().as_micros());
    }
}

fn median(instance: &mut dyn Instance) -> u128 {
    let mut rounds: Vec<u128> = (0..ROUNDS)
        .map(|_| {
            let begun = Instant::now();
            let mut stanza = message();
            for _ in 0..CALLS {
                stanza = call(instance, stanza).expect("it passes");
            }
            begun.elapsed().as_nanos() / u128::from(CALLS)
        })
        .collect();
    rounds.sort_unstable();
    rounds[ROUNDS / 2]
}

fn message() -> Stanza {
    let jid = |jid: &str| Jid::new(jid).expect("an address");
    let body = Element::new("body", ns::CLIENT).with_text("x".repeat(100));
    Stanza::message(MessageType::Chat)
        .with_from(jid("alice@example.org/phone"))
        .with_to(jid("bob@example.org"))
        .with_id("m1")
        .with_payload(body)
}

fn call(instance: &mut dyn Instance, message: Stanza) -> Result<Stanza, String> {
    let subject = Subject::Message(message);
    let call = Call { hook: ModuleHook::SubmitMessage, subject, now: UnixMs(1), seed: 1, fuel: CALL_FUEL };
    let done = instance.call(call);
    done.result.map_err(|failed| failed.detail.to_string())?;
    match done.subject {
        Subject::Message(message) => Ok(message),
        other => Err(format!("it was a message: {other:?}")),
    }
}
