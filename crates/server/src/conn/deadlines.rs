//! The server's own timers: how long a connection may take until the core knows it, and how long until it is gone once
//! the core has closed it. All other timers are the core's.

use carillon_core::model::{ConnId, Mono};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What must be true by a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deadline {
    /// The PROXY header is complete.
    Announced,
    /// The handshake and the upgrade are complete.
    Opening,
    /// The connection is gone.
    Leaving,
}

/// Deadlines in order of time. A deadline that was met is not removed; it is ignored when it is due. So there are at most
/// as many as connections came and went within one timeout.
#[derive(Default)]
pub(crate) struct Deadlines(BinaryHeap<Reverse<(Mono, Deadline, u32, u32)>>);

impl Deadlines {
    /// Adds a deadline.
    pub(crate) fn set(&mut self, at: Mono, deadline: Deadline, id: ConnId) {
        self.0.push(Reverse((at, deadline, id.slot, id.generation)));
    }

    /// When the next deadline is due.
    pub(crate) fn next(&self) -> Option<Mono> {
        self.0.peek().map(|Reverse((at, ..))| *at)
    }

    /// Removes and returns a deadline that is due.
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
