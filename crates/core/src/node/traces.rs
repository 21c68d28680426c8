//! Traces of notifications that are not (or not yet) in the store: those for `active` and `connected` audiences, and the
//! times at which stored ones were given to a connection. Bounded: the oldest are forgotten first.

use crate::model::{Map, NotificationId, Trace};
use std::collections::VecDeque;

/// Traces in memory.
#[derive(Debug, Default)]
pub struct Traces {
    by_id: Map<NotificationId, Trace>,
    /// In the order they came; ids whose trace is gone are passed over.
    order: VecDeque<NotificationId>,
}

impl Traces {
    /// Keeps a trace, or its newer state; forgets the oldest over `max`.
    pub fn put(&mut self, trace: Trace, max: usize) {
        let id = trace.id;
        if self.by_id.insert(id, trace).is_none() {
            self.order.push_back(id);
        }
        while self.order.len() > max {
            let oldest = self.order.pop_front().expect("longer than max");
            self.by_id.remove(&oldest);
        }
    }

    /// A trace.
    pub fn find(&self, id: NotificationId) -> Option<&Trace> {
        self.by_id.get(&id)
    }

    /// A trace, to be changed.
    pub fn find_mut(&mut self, id: NotificationId) -> Option<&mut Trace> {
        self.by_id.get_mut(&id)
    }

    /// Forgets a trace that the store has from now on.
    pub fn remove(&mut self, id: NotificationId) -> Option<Trace> {
        self.by_id.remove(&id)
    }
}
