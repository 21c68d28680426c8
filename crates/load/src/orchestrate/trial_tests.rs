//! Progress as it comes, comes twice, or does not come.

use super::*;
use crate::report::samples::{scenario, target};

const PATIENCE: Patience = Patience { ask: Duration::from_secs(2), give_up: Duration::from_secs(10) };

fn trial() -> Trial {
    let mut trial = Trial::new(Record::new("t".to_owned(), scenario(), target()));
    trial.join(1, "one".to_owned(), 6);
    trial.join(2, "two".to_owned(), 4);
    trial
}

fn progress(sequence: u64, position: Position, done: bool) -> Progress {
    let counts = BTreeMap::from([("logins".to_owned(), 1)]);
    Progress { sequence, position, done, counts, ..Progress::default() }
}

#[test]
fn what_is_said_twice_counts_once() {
    let mut trial = trial();
    let said = progress(1, Position::default(), true);
    trial.take(1, &said);
    trial.take(1, &said);
    assert_eq!(trial.report(Status::Running, None).counts["logins"], 1);
    trial.take(1, &progress(2, Position::default(), true));
    assert_eq!(trial.report(Status::Running, None).counts["logins"], 2);
}

#[test]
fn a_step_is_done_when_everyone_is() {
    let mut trial = trial();
    let step = Position { phase: 0, step: 1 };
    trial.take(1, &progress(1, step, true));
    assert!(!trial.all_done(step));
    trial.take(2, &progress(1, Position::default(), true));
    assert!(!trial.all_done(step) && trial.all_done(Position::default()));
    trial.take(2, &progress(2, step, true));
    assert!(trial.all_done(step));
}

#[test]
fn who_is_silent_is_asked_and_then_given_up() {
    let mut trial = trial();
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    assert_eq!(trial.silent(at(1), PATIENCE), Silent::default());
    assert_eq!(trial.silent(at(3), PATIENCE).asked, [1, 2]);
    assert_eq!(trial.silent(at(4), PATIENCE), Silent::default());
    let silent = trial.silent(at(11), PATIENCE);
    assert_eq!(silent.lost, [1, 2]);
    assert!(trial.is_deserted());
    let report = trial.report(Status::Failed, None);
    assert_eq!(report.failed, 10);
    assert!(report.notes[0].contains("one was lost"), "{:?}", report.notes);
    assert!(report.workers.iter().all(|worker| worker.state == WorkerState::Lost));
    // It comes back too late.
    trial.take(1, &progress(1, Position::default(), true));
    assert!(trial.is_deserted() && trial.report(Status::Failed, None).counts.is_empty());
}
