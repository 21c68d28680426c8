//! What the requests to webhooks came to, for `/metrics`.

use super::rules::Outcome;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the start, and how far the last webhook is behind.
#[derive(Debug, Default)]
pub(super) struct Counters {
    taken: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    gone: AtomicU64,
    events: AtomicU64,
    letters: AtomicU64,
    behind: AtomicU64,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// Requests, by what came of them.
    pub(crate) requests: [(&'static str, u64); 4],
    /// Events that receivers took.
    pub(crate) events: u64,
    /// Events that became dead letters.
    pub(crate) letters: u64,
    /// Events between the newest and the cursor of the webhook that is the furthest behind.
    pub(crate) behind: u64,
}

impl Counters {
    /// Counts a request with so many events.
    pub(super) fn request(&self, outcome: &Outcome, events: usize) {
        let by_outcome = match outcome {
            Outcome::Taken => &self.taken,
            Outcome::Refused(_) => &self.refused,
            Outcome::Down(..) => &self.failed,
            Outcome::Gone(_) => &self.gone,
        };
        by_outcome.fetch_add(1, Ordering::Relaxed);
        if *outcome == Outcome::Taken {
            self.events.fetch_add(events as u64, Ordering::Relaxed);
        }
    }

    /// Counts dead letters.
    pub(super) fn letters(&self, count: usize) {
        self.letters.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Notes how far the last one is behind.
    pub(super) fn set_behind(&self, events: u64) {
        self.behind.store(events, Ordering::Relaxed);
    }

    pub(super) fn figures(&self) -> Figures {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Figures {
            requests: [
                ("taken", of(&self.taken)),
                ("refused", of(&self.refused)),
                ("failed", of(&self.failed)),
                ("gone", of(&self.gone)),
            ],
            events: of(&self.events),
            letters: of(&self.letters),
            behind: of(&self.behind),
        }
    }
}
