//! The questions that wait: bounded, taken in batches.

use super::question::Question;
use carillon_core::ports::{Answer, Fault};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A queue keeps the memory for this many questions when it is empty; what a storm needed beyond is given back.
const KEPT_WHEN_EMPTY: usize = 1024;

/// The questions that wait for the threads of one kind.
pub(super) struct Queue {
    state: Mutex<State>,
    ready: Condvar,
    max: usize,
    bytes_max: usize,
}

struct State {
    waiting: VecDeque<Question>,
    /// What they carry.
    bytes: usize,
    closed: bool,
}

/// What a thread gets that asks for work.
pub(super) enum Taken {
    /// At least one question, in the order they were asked.
    Batch(Vec<Question>),
    /// Nothing for as long as it was willing to wait.
    Idle,
    /// Nothing, and nothing will come.
    Closed,
}

impl Queue {
    /// A queue of at most `max` questions, which carry at most `bytes_max` if they are more than one.
    pub(super) fn new(max: usize, bytes_max: usize) -> Queue {
        let state = State { waiting: VecDeque::new(), bytes: 0, closed: false };
        Queue { state: Mutex::new(state), ready: Condvar::new(), max, bytes_max }
    }

    /// Adds a question; one there is no room for is answered at once.
    pub(super) fn push(&self, question: Question) {
        let bytes = question.bytes();
        let mut state = self.lock();
        let is_too_much = bytes > 0 && state.bytes + bytes > self.bytes_max && !state.waiting.is_empty();
        let fault = if state.closed {
            Fault::Closed
        } else if state.waiting.len() >= self.max || is_too_much {
            Fault::Busy
        } else {
            state.bytes += bytes;
            state.waiting.push_back(question);
            drop(state);
            return self.ready.notify_one();
        };
        // The asker's code does not run under the lock.
        drop(state);
        question.respond.with(Answer::Failed(fault));
    }

    /// Waits for questions, for `patience` at most where given, and takes the `share`-th part of them (rounded up), so
    /// that the other threads find some too; at most `max`.
    pub(super) fn take(&self, share: usize, max: usize, patience: Option<Duration>) -> Taken {
        let mut state = self.lock();
        while state.waiting.is_empty() {
            if state.closed {
                return Taken::Closed;
            }
            state = match patience {
                None => self.ready.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(patience) => {
                    let (state, timeout) =
                        self.ready.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner);
                    if timeout.timed_out() && state.waiting.is_empty() && !state.closed {
                        return Taken::Idle;
                    }
                    state
                }
            };
        }
        let count = state.waiting.len().div_ceil(share).min(max);
        let batch: Vec<Question> = state.waiting.drain(..count).collect();
        state.bytes -= batch.iter().map(Question::bytes).sum::<usize>();
        if state.waiting.is_empty() {
            state.waiting.shrink_to(KEPT_WHEN_EMPTY);
        }
        Taken::Batch(batch)
    }

    /// Takes no more questions. Those that wait are still handed out.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.ready.notify_all();
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    // No code that can panic runs under the lock, so a poisoned one is whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
