//! What the store counts for the operator.

use std::sync::atomic::{AtomicU64, Ordering};

/// Figures that grow from the start.
#[derive(Default)]
pub(super) struct Counters {
    answered: AtomicU64,
    commits: AtomicU64,
    writes: AtomicU64,
}

impl Counters {
    /// Notes questions answered.
    pub(super) fn answered(&self, count: usize) {
        self.answered.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Notes a commit that `writes` shared.
    pub(super) fn committed(&self, writes: usize) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.writes.fetch_add(writes as u64, Ordering::Relaxed);
    }

    /// Answered, commits and writes so far.
    pub(super) fn read(&self) -> (u64, u64, u64) {
        let of = |n: &AtomicU64| n.load(Ordering::Relaxed);
        (of(&self.answered), of(&self.commits), of(&self.writes))
    }
}
