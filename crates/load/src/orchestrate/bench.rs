//! The state that requests, the conductor and the display share: workers, the test under way, those that wait and those
//! that ended.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::request::Planned;
use super::roster::Roster;
use super::trial::Trial;
use crate::report::{Record, Report, Status};

/// Tests that may wait for the one under way.
const QUEUE_MAX: usize = 16;
/// Reports of ended tests that are kept, the latest.
const ENDED_MAX: usize = 32;

/// Shared state, and what rings when it changed.
#[derive(Debug, Default)]
pub(super) struct Bench {
    state: Mutex<State>,
    changed: Condvar,
    /// The same for those who wait without a thread of their own.
    rung: tokio::sync::Notify,
}

/// Everything there is to know.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) roster: Roster,
    /// The test under way.
    pub(super) running: Option<(String, Trial)>,
    waiting: VecDeque<(String, Arc<Planned>)>,
    ended: BTreeMap<String, Arc<Report>>,
    ended_order: VecDeque<String>,
    /// The orchestrator is to end.
    pub(super) closing: bool,
}

impl Bench {
    /// The state, to look at or change; [`Self::ring`] after a change.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // Whoever panicked with it ended a thread, not the numbers.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes everyone who waits for a change.
    pub(super) fn ring(&self) {
        self.changed.notify_all();
        self.rung.notify_waiters();
    }

    /// Waits for a change, at most so long.
    pub(super) fn wait<'a>(&self, state: MutexGuard<'a, State>, timeout: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Rung at the next change after this call.
    pub(super) fn next_change(&self) -> tokio::sync::futures::Notified<'_> {
        self.rung.notified()
    }
}

impl State {
    /// Puts a test at the end of the queue; `false` if it is full.
    pub(super) fn submit(&mut self, id: String, plan: Planned) -> bool {
        let room = self.waiting.len() < QUEUE_MAX && !self.closing;
        if room {
            self.waiting.push_back((id, Arc::new(plan)));
        }
        room
    }

    /// Takes the next test and makes it the one under way.
    pub(super) fn start_next(&mut self) -> Option<(String, Arc<Planned>)> {
        let (id, plan) = self.waiting.pop_front()?;
        let record = Record::new(id.clone(), plan.scenario.clone(), plan.target.clone());
        self.running = Some((id.clone(), Trial::new(record)));
        Some((id, plan))
    }

    /// The test under way has ended.
    pub(super) fn end(&mut self, status: Status, reason: Option<String>) {
        let Some((id, mut trial)) = self.running.take() else { return };
        trial.finish();
        self.keep(id, trial.report(status, reason));
    }

    /// Ends a test that waits, or asks the one under way to end; `false` if there is no such test.
    pub(super) fn abort(&mut self, id: &str) -> bool {
        if let Some((_, trial)) = self.running.as_mut().filter(|(running, _)| running == id) {
            trial.aborted = true;
            return true;
        }
        if let Some(at) = self.waiting.iter().position(|(waiting, _)| waiting == id) {
            let report =
                self.waiting.remove(at).map(|(id, plan)| waiting_report(&id, &plan, Status::Aborted));
            if let Some(report) = report {
                self.keep(id.to_owned(), report);
            }
            return true;
        }
        self.ended.contains_key(id)
    }

    /// The report of a test, as far as it is.
    pub(super) fn report(&self, id: &str) -> Option<Arc<Report>> {
        if let Some((_, trial)) = self.running.as_ref().filter(|(running, _)| running == id) {
            return Some(Arc::new(trial.report(Status::Running, None)));
        }
        if let Some((_, plan)) = self.waiting.iter().find(|(waiting, _)| waiting == id) {
            return Some(Arc::new(waiting_report(id, plan, Status::Queued)));
        }
        self.ended.get(id).cloned()
    }

    /// Whether a test has ended, or never was.
    pub(super) fn is_over(&self, id: &str) -> bool {
        let running = self.running.as_ref().is_some_and(|(running, _)| running == id);
        !running && !self.waiting.iter().any(|(waiting, _)| waiting == id)
    }

    /// All tests, the oldest first, with their status and what they are of.
    pub(super) fn list(&self) -> Vec<(String, Status, String)> {
        let ended = self.ended_order.iter().filter_map(|id| {
            let report = self.ended.get(id)?;
            Some((id.clone(), report.status, report.scenario.name.clone()))
        });
        let running = self
            .running
            .iter()
            .map(|(id, trial)| (id.clone(), Status::Running, trial.record.scenario_name().to_owned()));
        let waiting = self.waiting.iter();
        let waiting = waiting.map(|(id, plan)| (id.clone(), Status::Queued, plan.scenario.name.clone()));
        ended.chain(running).chain(waiting).collect()
    }

    fn keep(&mut self, id: String, report: Report) {
        self.ended_order.push_back(id.clone());
        self.ended.insert(id, Arc::new(report));
        if self.ended_order.len() > ENDED_MAX
            && let Some(oldest) = self.ended_order.pop_front()
        {
            self.ended.remove(&oldest);
        }
    }
}

fn waiting_report(id: &str, plan: &Planned, status: Status) -> Report {
    Trial::new(Record::new(id.to_owned(), plan.scenario.clone(), plan.target.clone())).report(status, None)
}
