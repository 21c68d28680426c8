//! Traces of notifications that are not (or not yet) in the store: those for `active` and `connected` audiences, and the
//! times at which stored ones were given to a connection. Bounded: the oldest are forgotten first.

use crate::model::{Audience, Map, NotificationId, Trace};
use std::collections::VecDeque;

/// Of the notifications that are not kept, so many are listed by each shard: what a list costs it is bounded.
const LISTED_MAX: usize = 4096;

/// Traces in memory.
#[derive(Debug, Default)]
pub struct Traces {
    by_id: Map<NotificationId, Trace>,
    /// In the order they came; ids whose trace is gone are passed over.
    order: VecDeque<NotificationId>,
    /// The newest that are not kept: nowhere but here.
    unkept: VecDeque<NotificationId>,
}

impl Traces {
    /// Keeps a trace, or its newer state; forgets the oldest over `max`.
    pub fn put(&mut self, trace: Trace, max: usize) {
        let (id, is_kept) = (trace.id, trace.audience == Audience::Always);
        if self.by_id.insert(id, trace).is_none() {
            self.order.push_back(id);
            if !is_kept {
                self.note_unkept(id);
            }
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

    /// The traces of the newest notifications that are not kept, newest first.
    pub fn unkept(&self) -> impl Iterator<Item = &Trace> {
        self.unkept.iter().rev().filter_map(|id| self.by_id.get(id))
    }

    /// Forgets a trace that the store has from now on.
    pub fn remove(&mut self, id: NotificationId) -> Option<Trace> {
        self.by_id.remove(&id)
    }

    fn note_unkept(&mut self, id: NotificationId) {
        if self.unkept.len() == LISTED_MAX {
            self.unkept.pop_front();
        }
        self.unkept.push_back(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DomainId, Notification, Payload, Priority, UnixMs};
    use carillon_wire::jid::BareJid;

    fn trace(n: u64, audience: Audience) -> Trace {
        Trace::of(&Notification {
            id: NotificationId::new(UnixMs(n), 0, 0),
            domain: DomainId(1),
            to: BareJid::new("alice@localhost").unwrap(),
            audience,
            priority: Priority::Normal,
            expires: None,
            collapse_key: None,
            key: None,
            payload: Payload::Json("1".into()),
            accepted: UnixMs(n),
            send_at: None,
        })
    }

    #[test]
    fn lists_what_is_not_kept_newest_first_and_no_more_than_so_many() {
        let mut traces = Traces::default();
        for n in 0..10_000 {
            let audience = if n % 2 == 0 { Audience::Active } else { Audience::Always };
            traces.put(trace(n, audience), 100_000);
        }
        traces.put(trace(9998, Audience::Active), 100_000);
        let listed: Vec<u64> = traces.unkept().map(|trace| trace.id.time().0).collect();
        assert_eq!((listed.len(), listed[0], listed[1]), (LISTED_MAX, 9998, 9996));
        traces.remove(NotificationId::new(UnixMs(9998), 0, 0));
        assert_eq!(traces.unkept().next().unwrap().id.time(), UnixMs(9996));
    }
}
