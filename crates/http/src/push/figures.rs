//! What pushes came to, for `/metrics`.

use super::rules::Came;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the start, and how it is now.
#[derive(Debug, Default)]
pub(super) struct Counters {
    taken: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    gone: AtomicU64,
    postponed: AtomicU64,
    looks: AtomicU64,
    waiting: AtomicU64,
    closed: AtomicU64,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// Pushes, by what came of a request.
    pub(crate) pushes: [(&'static str, u64); 4],
    /// Pushes that were put off without a request.
    pub(crate) postponed: u64,
    /// How often the store was asked whether a push is due.
    pub(crate) looks: u64,
    /// Pushes in memory.
    pub(crate) waiting: u64,
    /// Push services that get nothing because they fail.
    pub(crate) closed: u64,
}

impl Counters {
    /// Counts what came of a request.
    pub(super) fn request(&self, came: &Came) {
        let counter = match came {
            Came::Taken => &self.taken,
            Came::Refused(_) => &self.refused,
            Came::Failed(..) => &self.failed,
            Came::Gone => &self.gone,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts pushes that were put off.
    pub(super) fn postponed(&self, count: usize) {
        self.postponed.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Counts a question whether a push is due.
    pub(super) fn looked(&self) {
        self.looks.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes how it is.
    pub(super) fn note(&self, waiting: usize, closed: usize) {
        self.waiting.store(waiting as u64, Ordering::Relaxed);
        self.closed.store(closed as u64, Ordering::Relaxed);
    }

    pub(super) fn figures(&self) -> Figures {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Figures {
            pushes: [
                ("taken", of(&self.taken)),
                ("refused", of(&self.refused)),
                ("failed", of(&self.failed)),
                ("gone", of(&self.gone)),
            ],
            postponed: of(&self.postponed),
            looks: of(&self.looks),
            waiting: of(&self.waiting),
            closed: of(&self.closed),
        }
    }
}
