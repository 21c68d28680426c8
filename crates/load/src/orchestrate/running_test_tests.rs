//! Progress as it comes, comes twice, or does not come.

use super::*;
use crate::report::samples::{scenario, target};

const LIMITS: SilenceLimits = SilenceLimits { ask: Duration::from_secs(2), give_up: Duration::from_secs(10) };

fn current() -> RunningTest {
    let mut current = RunningTest::new(Record::new("t".to_owned(), scenario(), target()));
    current.join(1, "one".to_owned(), 6);
    current.join(2, "two".to_owned(), 4);
    current
}

fn progress(sequence: u64, position: Position, done: bool) -> Progress {
    let counts = BTreeMap::from([("logins".to_owned(), 1)]);
    Progress { sequence, position, done, counts, ..Progress::default() }
}

#[test]
fn what_is_said_twice_counts_once() {
    let mut current = current();
    let said = progress(1, Position::default(), true);
    current.take(1, &said);
    current.take(1, &said);
    assert_eq!(current.report(Status::Running, None).counts["logins"], 1);
    current.take(1, &progress(2, Position::default(), true));
    assert_eq!(current.report(Status::Running, None).counts["logins"], 2);
}

#[test]
fn a_step_is_done_when_everyone_is() {
    let mut current = current();
    let step = Position { phase: 0, step: 1 };
    current.take(1, &progress(1, step, true));
    assert!(!current.all_done(step));
    current.take(2, &progress(1, Position::default(), true));
    assert!(!current.all_done(step) && current.all_done(Position::default()));
    current.take(2, &progress(2, step, true));
    assert!(current.all_done(step));
}

#[test]
fn who_is_silent_is_asked_and_then_given_up() {
    let mut current = current();
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    assert_eq!(current.silent(at(1), LIMITS), Silent::default());
    assert_eq!(current.silent(at(3), LIMITS).asked, [1, 2]);
    assert_eq!(current.silent(at(4), LIMITS), Silent::default());
    let silent = current.silent(at(11), LIMITS);
    assert_eq!(silent.lost, [1, 2]);
    assert!(current.has_no_workers());
    let report = current.report(Status::Failed, None);
    assert_eq!(report.failed, 10);
    assert!(report.notes[0].contains("one was lost"), "{:?}", report.notes);
    assert!(report.workers.iter().all(|worker| worker.state == WorkerState::Lost));
    // It comes back too late.
    current.take(1, &progress(1, Position::default(), true));
    assert!(current.has_no_workers() && current.report(Status::Failed, None).counts.is_empty());
}
