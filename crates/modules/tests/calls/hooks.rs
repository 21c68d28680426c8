//! What modules read and decide.

use crate::guests::*;
use carillon_core::model::*;
use carillon_core::ports::modules::*;
use carillon_wire::jid::BareJid;
use carillon_wire::stanza::Condition;

fn verdict(body: &str) -> Verdict {
    call(&mut *instance(body), "hello").result.expect("a verdict")
}

/// A module that says in its log what a field is.
fn says(number: i32) -> String {
    let body = format!(
        "(local $n i32) (local.set $n (call $field (i32.const {number}) (i32.const 1024) (i32.const 200)))
         (if (i32.ge_s (local.get $n) (i32.const 0)) (then (call $log (i32.const 1024) (local.get $n))))
         (i32.const 0)"
    );
    let done = call(&mut *instance(&body), "a &amp; b");
    done.notes.lines.first().map(ToString::to_string).unwrap_or_default()
}

#[test]
fn a_module_passes_drops_rejects_and_replaces() {
    assert_eq!(verdict(PASS), Verdict::Pass);
    assert_eq!(verdict("(i32.const 1)"), Verdict::Drop);
    let why = Rejection { condition: Condition::NotAcceptable, text: None };
    assert_eq!(verdict("(i32.const 2)"), Verdict::Reject(why));
    let rejects = "(call $output (i32.const 1) (i32.const 0) (i32.const 16))
        (call $output (i32.const 0) (i32.const 32) (i32.const 13)) (i32.const 2)";
    let why = Rejection { condition: Condition::PolicyViolation, text: Some("no links here".into()) };
    assert_eq!(verdict(rejects), Verdict::Reject(why));
    let replaces = "(call $output (i32.const 2) (i32.const 64) (i32.const 9)) (i32.const 3)";
    assert_eq!(verdict(replaces), Verdict::Replace(Replacement::Body("a < b & c".into())));
}

#[test]
fn a_module_reads_the_fields_of_a_message() {
    let read: Vec<String> = (0..10).map(says).collect();
    let payload = "<body>a &amp;amp; b</body>";
    assert_eq!(
        read,
        ["chat", "alice@localhost/phone", "bob@localhost", "m1", payload, "a &amp; b", "", "", "", ""]
    );
}

#[test]
fn the_length_of_a_field_is_told_although_it_does_not_fit() {
    let body =
        "(call $count (i32.const 0) (call $field (i32.const 1) (i32.const 0) (i32.const 2))) (i32.const 0)";
    let done = call(&mut *instance(body), "hello");
    assert_eq!(done.notes.counts[0], "alice@localhost/phone".len() as u64);
}

#[test]
fn a_module_reads_its_configuration() {
    let body =
        "(call $log (i32.const 200) (call $field (i32.const 9) (i32.const 200) (i32.const 9))) (i32.const 0)";
    let mut configured = compiled(&guest(body)).instance(&"words=x,y".into()).expect("an instance");
    assert_eq!(*call(&mut *configured, "").notes.lines, ["words=x,y".into()]);
}

#[test]
fn a_module_reads_and_replaces_a_notification() {
    let text = r#"(module
      (import "carillon:hooks@1" "field" (func $field (param i32 i32 i32) (result i32)))
      (import "carillon:hooks@1" "log" (func $log (param i32 i32)))
      (import "carillon:hooks@1" "output" (func $output (param i32 i32 i32)))
      (memory (export "memory") 1)
      (func $say (param $n i32)
        (call $log (i32.const 9) (call $field (local.get $n) (i32.const 9) (i32.const 99))))
      (func (export "notification") (result i32)
        (call $say (i32.const 0)) (call $say (i32.const 2)) (call $say (i32.const 4)) (call $say (i32.const 6))
        (call $say (i32.const 7)) (call $say (i32.const 8))
        (call $output (i32.const 3) (i32.const 9) (call $field (i32.const 4) (i32.const 9) (i32.const 99)))
        (i32.const 3)))"#;
    let notification = Notification {
        id: NotificationId::new(UnixMs(1), 2, 3),
        domain: DomainId(1),
        to: BareJid::new("bob@localhost").expect("an address"),
        audience: Audience::Always,
        priority: Priority::High,
        expires: None,
        collapse_key: Some("k".into()),
        key: None,
        payload: Payload::Json("{\"n\":1}".into()),
        accepted: UnixMs(1),
        send_at: None,
    };
    let subject = Subject::Notification(notification.into());
    let call = Call { hook: ModuleHook::Notification, subject, now: UnixMs(7), seed: 1, fuel: CALL_FUEL };
    let done = compiled(text).instance(&"".into()).expect("an instance").call(call);
    let lines: Vec<&str> = done.notes.lines.iter().map(|line| &**line).collect();
    assert_eq!(lines, ["json", "bob@localhost", "{\"n\":1}", "always", "high", "k"]);
    assert_eq!(done.result, Ok(Verdict::Replace(Replacement::Payload("{\"n\":1}".into()))));
}

#[test]
fn a_module_keeps_its_memory_until_it_is_made_anew() {
    let body = "(global.set $calls (i32.add (global.get $calls) (i32.const 1)))
        (call $count (i32.const 7) (global.get $calls)) (i32.const 0)";
    let mut instance = instance(body);
    let counted = |instance: &mut dyn Instance| call(instance, "").notes.counts[7];
    assert_eq!((counted(&mut *instance), counted(&mut *instance)), (1, 2));
    instance.renew(START_FUEL).expect("it starts");
    assert_eq!(counted(&mut *instance), 1);
}

/// A function of the call and of what went before: neither time nor chance of the machine's.
#[test]
fn the_same_calls_have_the_same_outcomes() {
    let body = "(local $r i64) (local.set $r (i64.xor (call $random) (call $now)))
        (call $count (i32.const 0) (i32.and (i32.wrap_i64 (local.get $r)) (i32.const 65535)))
        (i32.and (i32.wrap_i64 (local.get $r)) (i32.const 1))";
    let run = || {
        let mut instance = instance(body);
        (0..50)
            .map(|seed| {
                let subject = Subject::Message(message("x"));
                let (hook, fuel) = (ModuleHook::SubmitMessage, CALL_FUEL);
                let done = instance.call(Call { hook, subject, now: UnixMs(7), seed, fuel });
                (done.result, done.fuel, done.notes.counts[0])
            })
            .collect::<Vec<_>>()
    };
    let (one, other) = (run(), run());
    assert_eq!(one, other);
    assert!(one.iter().any(|(result, ..)| *result == Ok(Verdict::Drop)), "{one:?}");
    assert!(one.iter().any(|(result, ..)| *result == Ok(Verdict::Pass)), "{one:?}");
}

#[test]
fn what_is_decided_about_comes_back_unchanged() {
    let done = call(&mut *instance("(unreachable)"), "hello");
    assert_eq!(done.subject, Subject::Message(message("hello")));
}
