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
pub(super) struct LastItems {
    state: Mutex<State>,
    bytes_max: usize,
}

#[derive(Default)]
struct State {
    items: HashMap<TopicId, Arc<Item>>,
    bytes: usize,
}

impl LastItems {
    /// Keeps at most `bytes_max` of payload.
    pub(super) fn new(bytes_max: usize) -> LastItems {
        LastItems { state: Mutex::default(), bytes_max }
    }

    /// The item of `topic` that `revision` made, if it is here.
    pub(super) fn find(&self, topic: TopicId, revision: Revision) -> Option<Arc<Item>> {
        self.lock().items.get(&topic).filter(|item| item.revision == revision).cloned()
    }

    /// Keeps a committed item in place of an older one of its topic. Gives the one to use: of two threads that read
    /// the same item at once both get the one that was first.
    pub(super) fn keep(&self, item: Arc<Item>) -> Arc<Item> {
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
            *state = State::default();
        }
        state.bytes += cost;
        state.items.insert(item.topic, item.clone());
        item
    }

    // No code that can panic runs under the lock, so a poisoned one is whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cost_bytes(item: &Item) -> usize {
    item.payload.len() + ITEM_OVERHEAD_BYTES
}
