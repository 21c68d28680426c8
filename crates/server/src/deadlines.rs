//! The server's own timers, which are few: how long a connection may take to become known to the core, and how long to
//! go when the core has let it go. Everything in between is on the core's wheel.

use carillon_core::model::{ConnId, Mono};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What must have happened by a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deadline {
    /// The handshake and the upgrade are complete.
    Opening,
    /// The connection is gone.
    Leaving,
}

/// Deadlines in order. What happened in time is not taken out but found stale when it is due, so that there are at most
/// as many as connections came and went within one timeout.
#[derive(Default)]
pub(crate) struct Deadlines(BinaryHeap<Reverse<(Mono, Deadline, u32, u32)>>);

impl Deadlines {
    /// Sets one.
    pub(crate) fn set(&mut self, at: Mono, deadline: Deadline, id: ConnId) {
        self.0.push(Reverse((at, deadline, id.slot, id.generation)));
    }

    /// When the next is due.
    pub(crate) fn next(&self) -> Option<Mono> {
        self.0.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes one that is due.
    pub(crate) fn due(&mut self, now: Mono) -> Option<(Deadline, ConnId)> {
        if self.next()? > now {
            return None;
        }
        let Reverse((_, deadline, slot, generation)) = self.0.pop()?;
        if self.0.is_empty() {
            self.0.shrink_to(64);
        }
        Some((deadline, ConnId { slot, generation }))
    }
}
