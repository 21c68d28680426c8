//! What clients were sent and have not acknowledged, in all sessions of a shard together: one sum, and the sessions by the size of their
//! queues, so that a large one is found without looking at the others. A session whose queue is small is in no list.

use crate::model::{Map, PubsubEvent, SessionId, Set};
use std::sync::Arc;

/// The unacknowledged stanzas of a shard.
#[derive(Debug, Default)]
pub struct Queued {
    /// Bytes of all queues. What several of them share counts once.
    bytes: usize,
    /// Sessions whose queues have at least `CLASS_BYTES_MIN << n` bytes, and less than twice as many.
    classes: [Set<SessionId>; CLASSES],
    /// Events in queues, by their address, and in how many queues each is.
    events: Map<usize, u32>,
    /// Sessions that are about to end, with at least so many bytes.
    ending: Map<SessionId, usize>,
    ending_bytes: usize,
}

/// Queues of fewer bytes are not listed.
const CLASS_BYTES_MIN: usize = 1024;
const CLASSES: usize = 24;

impl Queued {
    /// Bytes of all queues.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// A queue has so many bytes more that are its own.
    pub fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// They are gone.
    pub fn remove(&mut self, bytes: usize) {
        self.bytes -= bytes;
    }

    /// A queue has an event, which it shares with others.
    pub fn add_event(&mut self, event: &Arc<PubsubEvent>) {
        let queues = self.events.entry(Arc::as_ptr(event) as usize).or_default();
        *queues += 1;
        if *queues == 1 {
            self.bytes += event.bytes();
        }
    }

    /// A queue has it no longer.
    pub fn remove_event(&mut self, event: &Arc<PubsubEvent>) {
        let address = Arc::as_ptr(event) as usize;
        let Some(queues) = self.events.get_mut(&address) else { return };
        *queues -= 1;
        if *queues == 0 {
            self.events.remove(&address);
            self.bytes -= event.bytes();
            if self.events.is_empty() && self.events.capacity() > KEPT {
                self.events = Map::default();
            }
        }
    }

    /// The queue of a session went from one size to another, in bytes.
    pub fn resize(&mut self, session: SessionId, before: usize, after: usize) {
        if after == 0
            && let Some(bytes) = self.ending.remove(&session)
        {
            self.ending_bytes -= bytes;
        }
        let (from, to) = (class(before), class(after));
        if from == to {
            return;
        }
        if let Some(sessions) = from.and_then(|class| self.classes.get_mut(class)) {
            sessions.remove(&session);
            if sessions.is_empty() && sessions.capacity() > KEPT {
                *sessions = Set::default();
            }
        }
        if let Some(sessions) = to.and_then(|class| self.classes.get_mut(class))
            && !self.ending.contains_key(&session)
        {
            sessions.insert(session);
        }
    }

    /// A session that has to end so that all queues have at most so many bytes, the larger ones first. It is not named twice.
    pub fn too_large(&mut self, bytes_max: usize) -> Option<SessionId> {
        if self.bytes.saturating_sub(self.ending_bytes) <= bytes_max {
            return None;
        }
        let listed = |(class, sessions): (usize, &Set<SessionId>)| Some((class, *sessions.iter().next()?));
        let (class, session) = self.classes.iter().enumerate().rev().find_map(listed)?;
        self.classes.get_mut(class).map(|sessions| sessions.remove(&session));
        let bytes = CLASS_BYTES_MIN << class;
        self.ending.insert(session, bytes);
        self.ending_bytes += bytes;
        Some(session)
    }
}

/// The list of queues of this size.
fn class(bytes: usize) -> Option<usize> {
    let class = (bytes / CLASS_BYTES_MIN).checked_ilog2()? as usize;
    Some(class.min(CLASSES - 1))
}

/// Capacity that an empty list keeps.
const KEPT: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn session(slot: u32) -> SessionId {
        SessionId { slot, generation: 1 }
    }

    proptest! {
        /// Compared with a plain list of sizes: who is named is among the largest, by a factor of two, and all are named that have to end.
        #[test]
        fn the_largest_end_first(steps in prop::collection::vec((0u32..20, 0usize..1 << 20), 1..200), bytes_max in 0usize..4 << 20) {
            let (mut queued, mut sizes) = (Queued::default(), Map::<u32, usize>::default());
            for (slot, bytes) in steps {
                let before = sizes.insert(slot, bytes).unwrap_or(0);
                queued.add(bytes);
                queued.remove(before);
                queued.resize(session(slot), before, bytes);
                prop_assert_eq!(queued.bytes(), sizes.values().sum::<usize>());
                let mut named = Vec::new();
                while let Some(ends) = queued.too_large(bytes_max) {
                    named.push(ends.slot);
                }
                for slot in named {
                    let bytes = sizes.remove(&slot).expect("it is there, and named once");
                    prop_assert!(sizes.values().all(|other| *other < bytes * 2 || *other < CLASS_BYTES_MIN));
                    queued.remove(bytes);
                    queued.resize(session(slot), bytes, 0);
                }
                prop_assert!(queued.bytes() <= bytes_max || sizes.values().all(|bytes| *bytes < CLASS_BYTES_MIN));
            }
            for (slot, bytes) in sizes {
                queued.remove(bytes);
                queued.resize(session(slot), bytes, 0);
            }
            prop_assert_eq!((queued.bytes(), queued.ending_bytes, queued.ending.len()), (0, 0, 0));
            prop_assert!(queued.classes.iter().all(Set::is_empty));
        }
    }
}
