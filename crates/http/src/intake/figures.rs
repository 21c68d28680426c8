//! What is counted of a queue, and how taking from it goes.

use carillon_core::ports::Depth;
use std::collections::BTreeMap;
use std::time::Instant;

/// What was counted of a queue on this node since its start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    /// How it goes.
    pub(crate) state: QueueState,
    /// Deliveries that came.
    pub(crate) received: u64,
    /// Of those, deliveries that the queue had made before.
    pub(crate) redelivered: u64,
    /// Messages that were done.
    pub(crate) accepted: u64,
    /// Of those, messages of which all was done before.
    pub(crate) repeated: u64,
    /// Messages that became dead letters, by reason.
    pub(crate) dead: BTreeMap<Box<str>, u64>,
    /// Deliveries that were put back, by reason.
    pub(crate) put_back: BTreeMap<Box<str>, u64>,
    /// Deliveries of which the queue could not be told what became of them.
    pub(crate) unsettled: u64,
    /// Times that the queue failed.
    pub(crate) faults: u64,
    /// Deliveries under way.
    pub(crate) in_flight: u64,
    /// What their bodies have, in bytes.
    pub(crate) in_flight_bytes: u64,
    /// What the queue counted last, and when.
    pub(crate) depth: Option<(Depth, Instant)>,
}

/// How taking from a queue goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum QueueState {
    /// It has not begun.
    #[default]
    Starting,
    /// Messages are taken.
    Pulling,
    /// None are taken, because the node is not ready, or ends.
    Resting,
    /// None are taken until the store has caught up.
    Behind(Box<str>),
    /// The queue cannot be reached.
    Away(Box<str>),
    /// The queue, or its settings, have to be changed.
    Wrong(Box<str>),
}

impl QueueState {
    /// A word for it.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            QueueState::Starting => "starting",
            QueueState::Pulling => "pulling",
            QueueState::Resting => "resting",
            QueueState::Behind(_) => "behind",
            QueueState::Away(_) => "away",
            QueueState::Wrong(_) => "wrong",
        }
    }

    /// All words.
    pub(crate) const WORDS: [&'static str; 6] = ["starting", "pulling", "resting", "behind", "away", "wrong"];

    /// Why it is so, where something is wrong.
    pub(crate) fn why(&self) -> Option<&str> {
        match self {
            QueueState::Starting | QueueState::Pulling | QueueState::Resting => None,
            QueueState::Behind(why) | QueueState::Away(why) | QueueState::Wrong(why) => Some(why),
        }
    }
}

impl Figures {
    /// Counts one of a reason; says how often it was counted.
    pub(super) fn of_reason(counts: &mut BTreeMap<Box<str>, u64>, reason: &str) -> u64 {
        let count = counts.entry(reason.into()).or_default();
        *count += 1;
        *count
    }
}
