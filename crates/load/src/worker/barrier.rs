//! Which of a worker's threads are not done with the current step.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::control::Fault;

/// A barrier that the threads reach one by one and on which the engine waits.
#[derive(Debug, Default)]
pub(super) struct StepBarrier {
    state: Mutex<BarrierState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct BarrierState {
    /// Counts the steps: a late report about an earlier step is not taken for one about this step.
    serial: u64,
    /// Threads that are not done.
    busy: usize,
    fault: Option<Fault>,
}

impl StepBarrier {
    /// Begins a step of this many threads and returns its serial number.
    pub(super) fn begin(&self, threads: usize) -> u64 {
        let mut state = self.lock();
        state.serial += 1;
        state.busy = threads;
        state.serial
    }

    /// A thread is done with a step.
    pub(super) fn done(&self, serial: u64) {
        let mut state = self.lock();
        if state.serial == serial {
            state.busy = state.busy.saturating_sub(1);
        }
        self.changed.notify_all();
    }

    /// A thread has failed. The first reason is kept.
    pub(super) fn fault(&self, fault: Fault) {
        self.lock().fault.get_or_insert(fault);
        self.changed.notify_all();
    }

    /// Whether all are done.
    pub(super) fn all_done(&self) -> bool {
        self.lock().busy == 0
    }

    /// Why a thread has failed, if one has.
    pub(super) fn failure(&self) -> Option<Fault> {
        self.lock().fault.clone()
    }

    /// Waits until all are done or one has failed; `false` on timeout.
    pub(super) fn wait(&self, timeout: Duration) -> bool {
        let going = |state: &mut BarrierState| state.busy > 0 && state.fault.is_none();
        let waited = self.changed.wait_timeout_while(self.lock(), timeout, going);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    fn lock(&self) -> MutexGuard<'_, BarrierState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_done_when_all_are_and_late_reports_do_not_count() {
        let barrier = StepBarrier::default();
        let first = barrier.begin(2);
        barrier.done(first);
        assert!(!barrier.wait(Duration::ZERO));
        let second = barrier.begin(1);
        barrier.done(first);
        assert!(!barrier.all_done());
        barrier.done(second);
        assert!(barrier.wait(Duration::ZERO));
    }

    #[test]
    fn a_fault_ends_the_waiting() {
        let barrier = StepBarrier::default();
        barrier.begin(1);
        let fault = |why: &str| Fault::Worker { why: why.to_owned() };
        barrier.fault(fault("first"));
        barrier.fault(fault("second"));
        assert!(barrier.wait(Duration::ZERO));
        assert_eq!(barrier.failure(), Some(fault("first")));
    }
}
