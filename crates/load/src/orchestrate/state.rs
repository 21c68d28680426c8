//! The state that HTTP requests, the runner and the display share: workers, the running test, the queue and the reports of
//! ended tests.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::request::PlannedTest;
use super::running_test::RunningTest;
use super::workers::WorkerRegistry;
use crate::report::{Record, Report, Status};

/// The most tests that may wait for the running one.
const QUEUE_MAX: usize = 16;
/// The number of latest reports that are kept.
const ENDED_MAX: usize = 32;

/// The shared state, and the notification of its changes.
#[derive(Debug, Default)]
pub(super) struct SharedState {
    state: Mutex<OrchestratorState>,
    changed: Condvar,
    /// The same for tasks.
    changed_async: tokio::sync::Notify,
}

/// The state itself.
#[derive(Debug, Default)]
pub(super) struct OrchestratorState {
    pub(super) workers: WorkerRegistry,
    /// The running test.
    pub(super) running: Option<(String, RunningTest)>,
    waiting: VecDeque<(String, Arc<PlannedTest>)>,
    ended: BTreeMap<String, Arc<Report>>,
    ended_order: VecDeque<String>,
    /// The orchestrator is ending.
    pub(super) closing: bool,
}

impl SharedState {
    /// The state, for reading or changing; call [`Self::notify`] after a change.
    pub(super) fn lock(&self) -> MutexGuard<'_, OrchestratorState> {
        // Each change is complete before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all that wait for a change.
    pub(super) fn notify(&self) {
        self.changed.notify_all();
        self.changed_async.notify_waiters();
    }

    /// Waits for a change until a timeout.
    pub(super) fn wait<'a>(
        &self,
        state: MutexGuard<'a, OrchestratorState>,
        timeout: Duration,
    ) -> MutexGuard<'a, OrchestratorState> {
        self.changed.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Notified at the next change after this call.
    pub(super) fn next_change(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed_async.notified()
    }
}

impl OrchestratorState {
    /// Puts a test at the end of the queue; `false` if it is full.
    pub(super) fn submit(&mut self, id: String, plan: PlannedTest) -> bool {
        let room = self.waiting.len() < QUEUE_MAX && !self.closing;
        if room {
            self.waiting.push_back((id, Arc::new(plan)));
        }
        room
    }

    /// Starts the next test of the queue.
    pub(super) fn start_next(&mut self) -> Option<(String, Arc<PlannedTest>)> {
        let (id, plan) = self.waiting.pop_front()?;
        let mut record = Record::new(id.clone(), plan.scenario.clone(), plan.target.clone());
        if let Some(upgrade) = &plan.upgrade {
            record.plan_upgrade(upgrade.command.clone(), upgrade.event);
        }
        self.running = Some((id.clone(), RunningTest::new(record)));
        Some((id, plan))
    }

    /// Ends the running test.
    pub(super) fn end(&mut self, status: Status, reason: Option<String>) {
        let Some((id, mut current)) = self.running.take() else { return };
        current.finish();
        self.keep(id, current.report(status, reason));
    }

    /// Removes a waiting test or asks the running one to end; `false` if there is no such test.
    pub(super) fn abort(&mut self, id: &str) -> bool {
        if let Some((_, current)) = self.running.as_mut().filter(|(running, _)| running == id) {
            current.aborted = true;
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

    /// The report of a test so far.
    pub(super) fn report(&self, id: &str) -> Option<Arc<Report>> {
        if let Some((_, current)) = self.running.as_ref().filter(|(running, _)| running == id) {
            return Some(Arc::new(current.report(Status::Running, None)));
        }
        if let Some((_, plan)) = self.waiting.iter().find(|(waiting, _)| waiting == id) {
            return Some(Arc::new(waiting_report(id, plan, Status::Queued)));
        }
        self.ended.get(id).cloned()
    }

    /// Whether a test has ended or is unknown.
    pub(super) fn is_over(&self, id: &str) -> bool {
        let running = self.running.as_ref().is_some_and(|(running, _)| running == id);
        !running && !self.waiting.iter().any(|(waiting, _)| waiting == id)
    }

    /// All tests, the oldest first, with their status and scenario.
    pub(super) fn list(&self) -> Vec<(String, Status, String)> {
        let ended = self.ended_order.iter().filter_map(|id| {
            let report = self.ended.get(id)?;
            Some((id.clone(), report.status, report.scenario.name.clone()))
        });
        let running = self
            .running
            .iter()
            .map(|(id, current)| (id.clone(), Status::Running, current.record.scenario_name().to_owned()));
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

fn waiting_report(id: &str, plan: &PlannedTest, status: Status) -> Report {
    RunningTest::new(Record::new(id.to_owned(), plan.scenario.clone(), plan.target.clone()))
        .report(status, None)
}
