//! What the store counts for the operator.

use carillon_core::model::Durations;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Figures that grow from the start.
#[derive(Default)]
pub(super) struct Counters {
    answered: AtomicU64,
    commits: AtomicU64,
    writes: AtomicU64,
    /// Only the writer's thread and whoever reads the figures take the lock.
    commit: Mutex<Durations>,
}

impl Counters {
    /// Notes questions answered.
    pub(super) fn answered(&self, count: usize) {
        self.answered.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Notes a commit that `writes` shared, and how long it `took`.
    pub(super) fn committed(&self, writes: usize, took: Duration) {
        self.commit.lock().unwrap_or_else(PoisonError::into_inner).record(took);
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.writes.fetch_add(writes as u64, Ordering::Relaxed);
    }

    /// How long commits took so far.
    pub(super) fn commit(&self) -> Durations {
        *self.commit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answered, commits and writes so far.
    pub(super) fn read(&self) -> (u64, u64, u64) {
        let of = |n: &AtomicU64| n.load(Ordering::Relaxed);
        (of(&self.answered), of(&self.commits), of(&self.writes))
    }
}
