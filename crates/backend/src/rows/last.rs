//! The last items of topics in memory, so that all who log in share one.

use carillon_core::model::{Item, Revision, TopicId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What an item costs besides its payload, roughly.
const ITEM_OVERHEAD_BYTES: usize = 256;

/// The last items of topics that were read or published.
///
/// It is never wrong and needs no invalidation: an item is asked for by the revision that the asker's own snapshot says
/// is the topic's last, and what a revision made never changes.
pub(crate) struct LastItems {
    state: Mutex<ItemsByTopic>,
    bytes_max: usize,
}

#[derive(Default)]
struct ItemsByTopic {
    items: HashMap<TopicId, Arc<Item>>,
    bytes: usize,
}

impl LastItems {
    /// Keeps at most `bytes_max` of payload.
    pub(crate) fn new(bytes_max: usize) -> LastItems {
        LastItems { state: Mutex::default(), bytes_max }
    }

    /// The item of `topic` that `revision` made, if it is here.
    pub(crate) fn find(&self, topic: TopicId, revision: Revision) -> Option<Arc<Item>> {
        self.lock().items.get(&topic).filter(|item| item.revision == revision).cloned()
    }

    /// Keeps a committed item in place of an older one of its topic. Gives the one to use: of two threads that read
    /// the same item at once both get the one that was first.
    pub(crate) fn keep(&self, item: Arc<Item>) -> Arc<Item> {
        let cost = cost_bytes(&item);
        if cost > self.bytes_max / 4 {
            return item;
        }
        let mut state = self.lock();
        if let Some(kept) = state.items.get(&item.topic) {
            if kept.revision == item.revision {
                return kept.clone();
            }
            if kept.revision > item.revision {
                return item;
            }
            state.bytes -= cost_bytes(kept);
        }
        // Starting afresh is simpler than finding out which are old, and costs one read of each item still wanted.
        if state.bytes + cost > self.bytes_max {
            *state = ItemsByTopic::default();
        }
        state.bytes += cost;
        state.items.insert(item.topic, item.clone());
        item
    }

    // No code that can panic runs under the lock, so a poisoned one is whole.
    fn lock(&self) -> MutexGuard<'_, ItemsByTopic> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cost_bytes(item: &Item) -> usize {
    item.payload.len() + ITEM_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use carillon_core::model::{DomainId, UnixMs};

    fn item(topic: u32, revision: u64, payload_bytes: usize) -> Arc<Item> {
        Arc::new(Item {
            topic: TopicId(topic),
            domain: DomainId(1),
            name: "news".into(),
            id: "1".into(),
            publisher: None,
            published: UnixMs(0),
            payload: Bytes::from(vec![0; payload_bytes]),
            revision: Revision(revision),
        })
    }

    #[test]
    fn finds_the_revision_that_was_asked_for_and_no_other() {
        let last = LastItems::new(10_000);
        let (old, new) = (item(1, 5, 10), item(1, 7, 10));
        last.keep(new.clone());
        last.keep(old);
        assert!(last.find(TopicId(1), Revision(5)).is_none(), "an older one does not push out a newer one");
        assert!(Arc::ptr_eq(&last.find(TopicId(1), Revision(7)).expect("kept"), &new));
        assert!(Arc::ptr_eq(&last.keep(item(1, 7, 10)), &new), "all get the one that was first");
        assert!(last.find(TopicId(2), Revision(7)).is_none());
    }

    #[test]
    fn stays_within_its_bound() {
        let last = LastItems::new(10_000);
        for n in 0..1000 {
            last.keep(item(n % 50, u64::from(n), 500));
            assert!(last.lock().bytes <= 10_000);
        }
        assert!(last.find(TopicId(49), Revision(999)).is_some());
        last.keep(item(7, 5000, 9_000));
        assert!(
            last.find(TopicId(7), Revision(5000)).is_none(),
            "one that would push out all others is not kept"
        );
        let state = last.lock();
        assert_eq!(state.bytes, state.items.values().map(|item| cost_bytes(item)).sum::<usize>());
    }
}
