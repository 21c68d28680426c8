//! Questions that wait: bounded in bytes, each answered once.

use crate::answering::Answering;
use carillon_core::model::Epoch;
use carillon_core::ports::{Claimed, Policy};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// What a question takes besides the name of its account.
const QUESTION_BYTES: usize = 128;

/// Something that is asked of an account.
pub(super) struct Asked {
    pub(super) account: Box<str>,
    pub(super) what: What,
    at: Instant,
}

/// What is asked.
pub(super) enum What {
    Claim(Policy, Answering<Claimed>),
    Locate(Answering<Option<Epoch>>),
    Forget(Epoch),
}

impl Asked {
    pub(super) fn new(account: Box<str>, what: What) -> Asked {
        Asked { account, what, at: Instant::now() }
    }

    fn bytes(&self) -> usize {
        self.account.len() + QUESTION_BYTES
    }
}

/// Questions that wait.
pub(super) struct Queue {
    bytes_max: usize,
    state: Mutex<QueueState>,
    pub(super) wakes: Notify,
}

#[derive(Default)]
struct QueueState {
    asked: VecDeque<Asked>,
    bytes: usize,
    is_closed: bool,
}

impl Queue {
    pub(super) fn new(bytes_max: usize) -> Queue {
        Queue { bytes_max, state: Mutex::default(), wakes: Notify::new() }
    }

    /// Adds a question, or answers it where there is no room.
    pub(super) fn push(&self, asked: Asked) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = if state.is_closed || state.bytes + asked.bytes() > self.bytes_max {
            Some(asked)
        } else {
            state.bytes += asked.bytes();
            state.asked.push_back(asked);
            None
        };
        // A reply may ask again.
        drop(state);
        match refused {
            Some(asked) => drop(asked),
            None => self.wakes.notify_one(),
        }
    }

    /// The oldest, so many at most.
    pub(super) fn take(&self, count: usize) -> Vec<Asked> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let count = count.min(state.asked.len());
        let taken: Vec<Asked> = state.asked.drain(..count).collect();
        state.bytes -= taken.iter().map(Asked::bytes).sum::<usize>();
        taken
    }

    /// Puts questions back that were taken, in their order. What is only tidiness is left out.
    pub(super) fn put_back(&self, asked: Vec<Asked>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for one in asked.into_iter().rev().filter(|one| !matches!(one.what, What::Forget(_))) {
            state.bytes += one.bytes();
            state.asked.push_front(one);
        }
    }

    /// Answers those that wait for so long.
    pub(super) fn expire(&self, age: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let count = state.asked.iter().take_while(|asked| asked.at.elapsed() >= age).count();
        let expired: Vec<Asked> = state.asked.drain(..count).collect();
        state.bytes -= expired.iter().map(Asked::bytes).sum::<usize>();
        drop(state);
        drop(expired);
    }

    /// Answers all that wait, and takes no more.
    pub(super) fn close(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_closed = true;
        state.bytes = 0;
        let left = std::mem::take(&mut state.asked);
        drop(state);
        drop(left);
        self.wakes.notify_one();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_closed
    }
}
