//! Who of a worker's threads is still at the step under way.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::control::Fault;

/// A barrier that threads reach one by one and the engine watches.
#[derive(Debug, Default)]
pub(super) struct Steps {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Counts steps begun: a late word about an old one is not taken for the new one's.
    serial: u64,
    /// Threads that are not done.
    busy: usize,
    fault: Option<Fault>,
}

impl Steps {
    /// Begins a step of so many threads; gives its serial number.
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

    /// A thread cannot go on. The first reason is kept.
    pub(super) fn fault(&self, fault: Fault) {
        self.lock().fault.get_or_insert(fault);
        self.changed.notify_all();
    }

    /// Whether all are done.
    pub(super) fn all_done(&self) -> bool {
        self.lock().busy == 0
    }

    /// Why a thread cannot go on, if one cannot.
    pub(super) fn broken(&self) -> Option<Fault> {
        self.lock().fault.clone()
    }

    /// Waits until all are done or one cannot go on; `false` if neither is so in time.
    pub(super) fn wait(&self, timeout: Duration) -> bool {
        let going = |state: &mut State| state.busy > 0 && state.fault.is_none();
        let waited = self.changed.wait_timeout_while(self.lock(), timeout, going);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_done_when_all_are_and_old_news_do_not_count() {
        let steps = Steps::default();
        let first = steps.begin(2);
        steps.done(first);
        assert!(!steps.wait(Duration::ZERO));
        let second = steps.begin(1);
        steps.done(first);
        assert!(!steps.all_done());
        steps.done(second);
        assert!(steps.wait(Duration::ZERO));
    }

    #[test]
    fn a_fault_ends_the_waiting() {
        let steps = Steps::default();
        steps.begin(1);
        let fault = |why: &str| Fault::Worker { why: why.to_owned() };
        steps.fault(fault("first"));
        steps.fault(fault("second"));
        assert!(steps.wait(Duration::ZERO));
        assert_eq!(steps.broken(), Some(fault("first")));
    }
}
