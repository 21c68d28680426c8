//! Modules that do harm: each ends within its fuel, and says why. Fuel is counted, not time.

use crate::guests::*;
use carillon_core::ports::modules::*;
use std::time::{Duration, Instant};

/// Calls a module that fails, and the same after it was made anew.
fn fails(body: &str) -> (Failure, u64) {
    let mut instance = instance(body);
    let done = call(&mut *instance, "hello");
    let first = done.result.expect_err("it fails").failure;
    assert!(done.fuel <= CALL_FUEL, "{} of {CALL_FUEL}", done.fuel);
    assert_eq!(call(&mut *instance, "").result.expect_err("it is not running").failure, Failure::Start);
    assert!(instance.renew(START_FUEL).expect("it starts again") <= START_FUEL);
    assert_eq!(call(&mut *instance, "hello").result.expect_err("it fails again").failure, first);
    (first, done.fuel)
}

#[test]
fn one_that_loops_ends_when_its_fuel_is_used_up() {
    assert_eq!(fails("(loop $l (br $l)) (unreachable)"), (Failure::Fuel, CALL_FUEL));
}

#[test]
fn one_that_wants_all_memory_is_refused_it() {
    let body = "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) (unreachable)";
    assert_eq!(fails(body).0, Failure::Memory);
}

#[test]
fn one_that_fills_memory_pays_for_each_byte() {
    let body = "(drop (memory.grow (i32.const 200)))
        (loop $l (memory.fill (i32.const 0) (i32.const 1) (i32.const 13000000)) (br $l)) (unreachable)";
    assert_eq!(fails(body).0, Failure::Fuel);
}

#[test]
fn one_that_calls_itself_has_a_stack_that_ends() {
    assert_eq!(fails("(i32.add (call $submit) (i32.const 1))").0, Failure::Stack);
}

#[test]
fn one_that_traps_fails() {
    assert_eq!(fails("(unreachable)").0, Failure::Trap);
    assert_eq!(fails("(i32.div_u (i32.const 1) (i32.const 0))").0, Failure::Trap);
    assert_eq!(fails("(i32.load (i32.const -4))").0, Failure::Trap);
    assert_eq!(fails("(call $field (i32.const 1) (i32.const -2) (i32.const 9))").0, Failure::Trap);
    assert_eq!(fails("(call $count (i32.const 8) (i32.const 1)) (i32.const 0)").0, Failure::Trap);
}

#[test]
fn one_that_writes_without_end_is_stopped() {
    let body = "(call $output (i32.const 3) (i32.const 0) (i32.const 40000))
        (call $output (i32.const 2) (i32.const 0) (i32.const 40000)) (i32.const 3)";
    assert_eq!(fails(body).0, Failure::Output);
}

#[test]
fn one_that_floods_the_host_with_calls_pays_for_them() {
    let flood = |call: &str| format!("(loop $l {call} (br $l)) (unreachable)");
    let (failure, used) = fails(&flood("(call $log (i32.const 0) (i32.const 60000))"));
    assert_eq!((failure, used), (Failure::Fuel, CALL_FUEL));
    assert_eq!(fails(&flood("(call $count (i32.const 0) (i32.const 1))")).0, Failure::Fuel);
    let fields = flood("(drop (call $field (i32.const 5) (i32.const 0) (i32.const 60000)))");
    assert_eq!(fails(&fields).0, Failure::Fuel);
    let mut instance = instance(&flood("(call $log (i32.const 0) (i32.const 9))"));
    let lines = call(&mut *instance, "").notes.lines;
    assert_eq!(lines.len(), 8, "{lines:?}");
}

#[test]
fn a_bomb_for_the_compiler_is_refused_before_it_is_compiled() {
    let bomb = format!("{}{}", "(drop (i32.add (i32.const 1) (i32.const 2)))".repeat(60_000), PASS);
    let code = wat::parse_str(guest(&bomb)).expect("a module");
    let refused = runtime().compile(&code).expect_err("it is too large");
    assert!(
        matches!(&refused, NotAModule::Invalid(why) if why.contains("of code, of at most 262144")),
        "{refused:?}"
    );
}

#[test]
fn one_that_writes_bytes_that_are_not_utf8_has_no_verdict() {
    let writes = |kind| format!("(call $output (i32.const {kind}) (i32.const 96) (i32.const 2))");
    assert_eq!(fails(&format!("{} (i32.const 3)", writes(2))).0, Failure::Verdict);
    assert_eq!(fails(&format!("{} (i32.const 2)", writes(0))).0, Failure::Verdict);
    assert_eq!(fails(&format!("{} (i32.const 2)", writes(1))).0, Failure::Verdict);
    assert_eq!(fails("(i32.const 77)").0, Failure::Verdict);
}

/// Nothing of the host calls a module back; it may start itself anew, within its fuel.
#[test]
fn one_that_enters_itself_again_ends() {
    let text = guest("(call $again) (i32.const 0)").replace(
        "(memory (export",
        "(func $again (export \"_initialize\") (if (i32.eqz (i32.load (i32.const 512)))
            (then (i32.store (i32.const 512) (i32.const 1)))
            (else (call $again))))
         (memory (export",
    );
    let mut instance = compiled(&text).instance(&"".into()).expect("it starts");
    assert_eq!(call(&mut *instance, "").result.expect_err("it fails").failure, Failure::Stack);
}

#[test]
fn one_that_sleeps_is_told_that_it_cannot() {
    let text = guest("(call $poll (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0))").replace(
        "(memory (export",
        r#"(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
         (memory (export"#,
    );
    let mut instance = compiled(&text).instance(&"".into()).expect("it starts");
    let failed = call(&mut *instance, "").result.expect_err("52 is no verdict");
    assert_eq!(failed.failure, Failure::Verdict);
}

/// A clock ends what fuel would not: here a call with more fuel than any has.
#[test]
fn the_clock_ends_what_has_too_much_fuel() {
    let runtime = carillon_modules::WasmRuntime::new(carillon_modules::Bounds::default());
    let code = wat::parse_str(guest("(loop $l (br $l)) (unreachable)")).expect("a module");
    let mut endless = runtime.compile(&code).expect("a module").instance(&"".into()).expect("an instance");
    let begun = Instant::now();
    let done = call_with(&mut *endless, "", u64::MAX / 2);
    assert_eq!(done.result.expect_err("it ends").failure, Failure::Deadline);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}
