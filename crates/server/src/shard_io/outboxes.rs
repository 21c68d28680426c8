//! What a shard has for other shards.

use crate::inbox::{Inbox, InboxItem};
use carillon_core::model::ShardId;
use std::collections::VecDeque;
use std::sync::Arc;

/// Items for other shards, gathered during a turn. While a shard does not take its items they stay here, and clients are not
/// read.
pub(crate) struct Outboxes {
    pub(crate) inboxes: Arc<[Arc<Inbox>]>,
    batches: Vec<VecDeque<InboxItem>>,
    held_back: bool,
}

impl Outboxes {
    pub(crate) fn new(inboxes: Arc<[Arc<Inbox>]>) -> Outboxes {
        let batches = inboxes.iter().map(|_| VecDeque::new()).collect();
        Outboxes { inboxes, batches, held_back: false }
    }

    /// Adds an item to the batch of a shard.
    pub(crate) fn add(&mut self, to: ShardId, item: InboxItem) {
        self.batches[usize::from(to.0)].push_back(item);
    }

    /// Hands every batch over. A batch that is not taken stays, in its order.
    pub(crate) fn send(&mut self) {
        self.held_back = false;
        for (inbox, batch) in self.inboxes.iter().zip(&mut self.batches) {
            if batch.is_empty() {
                continue;
            }
            if !inbox.append(batch) {
                self.held_back = true;
            } else if batch.capacity() > BATCH_CAPACITY {
                batch.shrink_to(BATCH_CAPACITY);
            }
        }
    }

    /// Whether a shard is so far behind that its items are held back: then clients are not read.
    pub(crate) fn is_held_back(&self) -> bool {
        self.held_back
    }
}

/// Capacity that a batch keeps after a burst, in items.
const BATCH_CAPACITY: usize = 4096;
