//! What a connection that writes counts for the operator.

use carillon_core::ports::StoreLane;
use std::sync::atomic::{AtomicU64, Ordering};

/// Figures that grow from the start.
#[derive(Debug, Default)]
pub(super) struct Figures {
    commits: AtomicU64,
    round_trips: AtomicU64,
    connects: AtomicU64,
    repeats: AtomicU64,
    settled: AtomicU64,
    unknown: AtomicU64,
}

impl Figures {
    /// A group was committed.
    pub(super) fn committed(&self) {
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    /// An answer is waited for.
    pub(super) fn asks(&self) {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
    }

    /// The connection was made.
    pub(super) fn connected(&self) {
        self.connects.fetch_add(1, Ordering::Relaxed);
    }

    /// A group is done again.
    pub(super) fn repeats(&self) {
        self.repeats.fetch_add(1, Ordering::Relaxed);
    }

    /// It was found out whether a commit without an answer had been done.
    pub(super) fn settled(&self) {
        self.settled.fetch_add(1, Ordering::Relaxed);
    }

    /// It could not be found out.
    pub(super) fn unknown(&self) {
        self.unknown.fetch_add(1, Ordering::Relaxed);
    }

    /// All of them, with what waits.
    pub(super) fn read(&self, waiting: usize, waiting_bytes: usize) -> StoreLane {
        let of = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        StoreLane {
            waiting: waiting as u64,
            waiting_bytes: waiting_bytes as u64,
            commits: of(&self.commits),
            round_trips: of(&self.round_trips),
            connects: of(&self.connects),
            repeats: of(&self.repeats),
            settled: of(&self.settled),
            unknown: of(&self.unknown),
        }
    }
}
