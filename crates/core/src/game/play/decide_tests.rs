//! Matches that a module decides, by a module that is made of Rust.

use super::*;
use crate::game::tests::{Rig, Seen, rules};
use crate::model::MatchRules;
use crate::ports::modules::*;
use carillon_wire::frame::game::Mode;
use std::sync::Arc;

/// A module whose state is the sum of all inputs, of which the first byte counts. An `x` is a trap; an `o` ends the match.
#[derive(Clone, Debug)]
struct Sums {
    hash: u8,
    /// It takes no state.
    is_stubborn: bool,
}

#[derive(Debug)]
struct SumInstance(Sums, u32);

impl Compiled for Sums {
    fn hash(&self) -> ModuleHash {
        [self.hash; 32]
    }

    fn hooks(&self) -> HookSet {
        HookSet::MATCH
    }

    fn instance(&self, _: &Arc<str>) -> Result<Box<dyn Instance>, Failed> {
        Ok(Box::new(SumInstance(self.clone(), 0)))
    }

    fn match_instance(&self, config: &Arc<str>) -> Result<(Box<dyn Instance>, u64), Failed> {
        Ok((self.instance(config)?, 10))
    }
}

fn trap() -> Failed {
    Failed { failure: Failure::Trap, detail: "x".into() }
}

impl SumInstance {
    fn act(&mut self, hook: ModuleHook, subject: &MatchSubject) -> Result<MatchVerdict, Failed> {
        let mut verdict = MatchVerdict::default();
        match hook {
            ModuleHook::MatchTick => {
                let mut rest = &subject.inputs[..];
                while let [kind, low, high, behind @ ..] = rest {
                    let (input, after) = behind.split_at(usize::from(*low) + 256 * usize::from(*high));
                    rest = after;
                    match (*kind, input.first()) {
                        (1 | 2, Some(b'x')) => return Err(trap()),
                        (1, Some(b'o')) => verdict.is_over = true,
                        (1 | 2, Some(byte)) => self.1 += u32::from(*byte - b'0'),
                        _ => {}
                    }
                }
                verdict.update = format!("{}", self.1).into_bytes();
                verdict.own.push((1, format!("{} for you", self.1).into_bytes()));
                verdict.outcome = format!("sum {}", self.1).into_bytes();
            }
            ModuleHook::MatchSave => verdict.state = self.1.to_le_bytes().to_vec(),
            ModuleHook::MatchLoad if self.0.is_stubborn => return Err(trap()),
            ModuleHook::MatchLoad => self.1 = u32::from_le_bytes(subject.state[..].try_into().unwrap()),
            other => panic!("{other:?}"),
        }
        Ok(verdict)
    }
}

impl Instance for SumInstance {
    fn call(&mut self, call: Call) -> Done {
        let Subject::Match(subject) = &call.subject else { panic!("{:?}", call.subject) };
        let result = self.act(call.hook, subject).map(|verdict| Verdict::Match(Box::new(verdict)));
        Done { subject: call.subject, result, fuel: 100, notes: Notes::default() }
    }

    fn renew(&mut self, _: u64) -> Result<u64, Failed> {
        panic!("a match has another instance")
    }
}

fn version(hash: u8, is_stubborn: bool) -> Version {
    let compiled = Arc::new(Sums { hash, is_stubborn });
    Version { name: "sums".into(), hash: [hash; 32], config: "".into(), compiled }
}

fn begun(rules: MatchRules) -> Rig {
    let mut rig = Rig::with_version(2, rules, Some(&version(1, false)));
    for seat in 0..2 {
        rig.join(seat, seat.into(), 0).unwrap();
    }
    rig.seen(0);
    rig.seen(1);
    rig
}

fn authoritative() -> MatchRules {
    MatchRules { module: Some("sums".into()), ..rules(Mode::Authoritative) }
}

fn update(tick: u32, text: &str) -> Seen {
    Seen::Update { tick, text: text.into() }
}

#[test]
fn all_are_given_what_the_module_makes_of_a_tick() {
    let mut rig = begun(authoritative());
    rig.send(0, 1, &["3"]).unwrap();
    rig.send(1, 2, &["4"]).unwrap();
    rig.after(300);
    // Who sent nothing repeats the last input; who never did, does nothing.
    assert_eq!(rig.seen(0), [update(1, "3"), update(2, "10"), update(3, "17")]);
    assert_eq!(rig.seen(1), [update(1, "3 for you"), update(2, "10 for you"), update(3, "17 for you")]);
    // Three ticks, and the third is saved.
    assert_eq!(rig.figures.module_fuel, 10 + 3 * 100 + 100);
    rig.send(0, 4, &["o"]).unwrap();
    assert_eq!(rig.after(100), Some(EndReason::Finished));
    let (result, _) = rig.with(|play, sink| play.end(EndReason::Finished, sink));
    assert_eq!(result.outcome, b"sum 21");
}

#[test]
fn who_comes_back_is_given_the_state_and_not_what_was_before() {
    let mut rig = begun(authoritative());
    rig.send(0, 1, &["1"]).unwrap();
    rig.after(500);
    rig.with(|play, sink| play.lost(1, sink));
    rig.after(2000);
    rig.join(1, 7, 5).unwrap();
    rig.after(200);
    let seen = rig.seen(7);
    assert!(matches!(seen[0], Seen::Welcome { have: 5, .. }), "{seen:?}");
    let state = String::from_utf8(26_u32.to_le_bytes().to_vec()).unwrap();
    assert_eq!(seen[1..], [Seen::Snapshot { tick: 26, text: state }, update(27, "27 for you")]);
    // Who has everything is given what follows.
    rig.join(1, 8, 27).unwrap();
    rig.after(100);
    assert_eq!(rig.seen(8)[1..], [update(28, "28 for you")]);
    assert_eq!(rig.figures.snapshots, 1);
}

#[test]
fn a_match_goes_on_from_what_was_saved_when_its_module_fails() {
    let mut rig = begun(authoritative());
    rig.send(0, 1, &["1"]).unwrap();
    rig.after(1500);
    let seen = rig.seen(0);
    assert_eq!(seen.len(), 15);
    rig.send(0, 16, &["x"]).unwrap();
    rig.send(0, 17, &["2"]).unwrap();
    rig.after(100);
    assert_eq!(rig.seen(0), []);
    rig.after(100);
    let seen = rig.seen(0);
    let [Seen::Snapshot { tick: 17, text }] = &seen[..] else { panic!("{seen:?}") };
    let sum = u32::from_le_bytes(text.as_bytes().try_into().unwrap());
    // At most a second is lost: ten ticks.
    assert!((5 + 2..=15 + 2).contains(&sum), "{sum}");
    rig.after(100);
    assert_eq!(rig.seen(0), [update(18, &(sum + 2).to_string())]);
    assert_eq!(rig.figures.module_failures.iter().collect::<Vec<_>>(), [("trap", 1)]);
    // It fails on and on: it is over.
    rig.send(0, 19, &["x"]).unwrap();
    assert_eq!(rig.after(200), Some(EndReason::Module));
}

#[test]
fn a_match_ends_with_the_first_failure_where_that_is_wanted() {
    let mut rig = begun(MatchRules { ends_on_failure: true, ..authoritative() });
    rig.send(0, 3, &["x"]).unwrap();
    assert_eq!(rig.after(300), Some(EndReason::Module));
    let (result, _) = rig.with(|play, sink| play.end(EndReason::Module, sink));
    assert!(result.outcome.is_empty());
}

#[test]
fn another_version_takes_over_between_two_ticks() {
    let mut rig = begun(authoritative());
    rig.send(0, 1, &["1"]).unwrap();
    rig.after(300);
    rig.with(|play, _| play.change_to(&version(2, false)));
    rig.after(200);
    assert_eq!(rig.seen(0)[3..], [update(4, "4"), update(5, "5")]);
    assert_eq!(rig.play.view().module, Some(("sums".into(), [2; 32])));
    assert_eq!(rig.figures.module_swaps, 1);
    // One that does not take the state does not take over, and nobody notices.
    rig.with(|play, _| play.change_to(&version(3, true)));
    rig.after(200);
    assert_eq!(rig.seen(0), [update(6, "6"), update(7, "7")]);
    assert_eq!(rig.play.view().module, Some(("sums".into(), [2; 32])));
    assert_eq!(rig.figures.module_failures.iter().collect::<Vec<_>>(), [("take-over", 1)]);
}

#[test]
fn what_clients_say_came_of_it_means_nothing() {
    let mut rig = begun(authoritative());
    rig.after(200);
    for seat in 0..2 {
        assert_eq!(rig.with(|play, _| play.outcome(seat, b"I won")), None);
    }
}
