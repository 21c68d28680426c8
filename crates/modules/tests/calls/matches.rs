//! Modules that decide matches.

use crate::guests::*;
use carillon_core::model::UnixMs;
use carillon_core::ports::modules::*;

/// A module that decides matches, whose state is four bytes at 0: it adds the first byte of each input to them.
fn guest(tick: &str, save: &str, load: &str) -> String {
    format!(
        r#"(module
  (import "carillon:hooks@1" "field" (func $field (param i32 i32 i32) (result i32)))
  (import "carillon:hooks@1" "output" (func $output (param i32 i32 i32)))
  (import "carillon:hooks@1" "now" (func $now (result i64)))
  (import "carillon:hooks@1" "random" (func $random (result i64)))
  (memory (export "memory") 1)
  (func (export "match_tick") (result i32) {tick})
  (func (export "match_save") (result i32) {save})
  (func (export "match_load") (result i32) {load}))"#
    )
}

const ADDS: &str = "(drop (call $field (i32.const 10) (i32.const 16) (i32.const 64)))
    (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.load8_u (i32.const 19))))
    (call $output (i32.const 4) (i32.const 0) (i32.const 4))
    (i32.store8 (i32.const 32) (i32.const 1)) (i32.store8 (i32.const 33) (i32.const 7))
    (call $output (i32.const 5) (i32.const 32) (i32.const 2))
    (i32.const 0)";
const SAVES: &str = "(call $output (i32.const 6) (i32.const 0) (i32.const 4)) (i32.const 0)";
const LOADS: &str = "(drop (call $field (i32.const 11) (i32.const 0) (i32.const 4))) (i32.const 0)";

fn instance(tick: &str) -> Box<dyn Instance> {
    compiled(&guest(tick, SAVES, LOADS)).match_instance(&"".into()).expect("an instance").0
}

fn subject(input: &[u8]) -> MatchSubject {
    let mut inputs = Vec::new();
    SeatInput::Given(input).put(&mut inputs);
    SeatInput::Left.put(&mut inputs);
    MatchSubject {
        tick: 300,
        seats: 2,
        tick_rate: 15,
        seed: 0x0102_0304_0506_0708,
        inputs,
        state: Vec::new(),
    }
}

fn ask(instance: &mut dyn Instance, hook: ModuleHook, subject: MatchSubject) -> Result<MatchVerdict, Failed> {
    let subject = Subject::Match(Box::new(subject));
    let done = instance.call(Call { hook, subject, now: UnixMs(20_000), seed: 3, fuel: CALL_FUEL });
    done.result.map(|verdict| match verdict {
        Verdict::Match(verdict) => *verdict,
        other => panic!("{other:?}"),
    })
}

fn failure(tick: &str) -> Failure {
    ask(&mut *instance(tick), ModuleHook::MatchTick, subject(b"x")).expect_err("it fails").failure
}

#[test]
fn a_state_lives_in_the_instance_and_goes_to_another_by_save_and_load() {
    let mut one = instance(ADDS);
    for sum in [5, 10] {
        let verdict = ask(&mut *one, ModuleHook::MatchTick, subject(&[5])).unwrap();
        assert_eq!((verdict.update, verdict.own), (vec![sum, 0, 0, 0], vec![(1, vec![7])]));
        assert!(!verdict.is_over);
    }
    let state = ask(&mut *one, ModuleHook::MatchSave, subject(b"")).unwrap().state;
    let mut other = instance(ADDS);
    ask(&mut *other, ModuleHook::MatchLoad, MatchSubject { state, ..subject(b"") }).unwrap();
    let verdict = ask(&mut *other, ModuleHook::MatchTick, subject(&[1])).unwrap();
    assert_eq!(verdict.update, [11, 0, 0, 0]);
}

#[test]
fn a_module_is_told_the_tick_the_seats_and_the_seed() {
    let says = "(call $output (i32.const 4) (i32.const 64) (call $field (i32.const 12) (i32.const 64) (i32.const 99))) (i32.const 0)";
    let about = ask(&mut *instance(says), ModuleHook::MatchTick, subject(b"")).unwrap().update;
    assert_eq!(about, [44, 1, 0, 0, 2, 15, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1]);
    let says = "(call $output (i32.const 4) (i32.const 64) (call $field (i32.const 10) (i32.const 64) (i32.const 99))) (i32.const 0)";
    let inputs = ask(&mut *instance(says), ModuleHook::MatchTick, subject(b"ab")).unwrap().update;
    assert_eq!(inputs, [1, 2, 0, b'a', b'b', 3, 0, 0]);
}

#[test]
fn a_match_is_over_with_an_outcome() {
    let ends = "(call $output (i32.const 7) (i32.const 0) (i32.const 3)) (i32.const 1)";
    let verdict = ask(&mut *instance(ends), ModuleHook::MatchTick, subject(b"")).unwrap();
    assert_eq!((verdict.is_over, verdict.outcome), (true, vec![0; 3]));
}

#[test]
fn what_is_too_long_or_means_nothing_is_a_failure() {
    assert_eq!(failure("(i32.const 2)"), Failure::Verdict);
    assert_eq!(failure("(unreachable)"), Failure::Trap);
    assert_eq!(failure("(loop (br 0)) (i32.const 0)"), Failure::Fuel);
    let output = |kind, bytes| {
        format!("(call $output (i32.const {kind}) (i32.const 0) (i32.const {bytes})) (i32.const 0)")
    };
    assert_eq!(failure(&output(4, 4097)), Failure::Output);
    assert_eq!(failure(&output(5, 0)), Failure::Output);
    assert_eq!(failure(&output(5, 4098)), Failure::Output);
    assert_eq!(failure(&output(6, 61_441)), Failure::Output);
    assert_eq!(failure(&output(7, 513)), Failure::Output);
    assert_eq!(failure(&output(9, 1)), Failure::Output);
    // 65 pages are more than 4 MiB.
    let grows =
        "(if (i32.eq (memory.grow (i32.const 64)) (i32.const -1)) (then (unreachable))) (i32.const 0)";
    assert_eq!(failure(grows), Failure::Memory);
    let mut silent = compiled(&guest(ADDS, "(i32.const 0)", LOADS)).match_instance(&"".into()).unwrap().0;
    let failed = ask(&mut *silent, ModuleHook::MatchSave, subject(b"")).unwrap_err();
    assert_eq!(failed.failure, Failure::Verdict);
    let mut stubborn = compiled(&guest(ADDS, SAVES, "(i32.const 1)")).match_instance(&"".into()).unwrap().0;
    let failed = ask(&mut *stubborn, ModuleHook::MatchLoad, subject(b"")).unwrap_err();
    assert_eq!(&*failed.detail, "it does not take the state");
}

#[test]
fn the_same_ticks_have_the_same_outcomes() {
    let tick =
        "(i64.store (i32.const 0) (i64.add (i64.load (i32.const 0)) (i64.xor (call $random) (call $now))))
        (call $output (i32.const 4) (i32.const 0) (i32.const 8)) (i32.const 0)";
    let run = || {
        let mut instance = instance(tick);
        (0..20)
            .map(|_| ask(&mut *instance, ModuleHook::MatchTick, subject(b"")).unwrap().update)
            .collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

#[test]
fn a_module_decides_matches_with_all_three_functions_or_not_at_all() {
    let text = guest(ADDS, SAVES, LOADS).replace("match_load", "match_other");
    let wrong = runtime().compile(&wat::parse_str(text).unwrap()).unwrap_err();
    let NotAModule::Invalid(why) = wrong else { panic!("{wrong:?}") };
    assert!(why.contains("`match_load`"), "{why}");
}
