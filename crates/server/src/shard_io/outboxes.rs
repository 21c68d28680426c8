//! What a shard has for other shards.

use crate::channels::inbox::{Inbox, InboxItem};
use carillon_core::model::Place;
use std::collections::VecDeque;
use std::sync::Arc;

/// Items for other shards, gathered during a turn. While a shard does not take its items they stay here, and clients are not
/// read. When they have [`HELD_BYTES_MAX`] bytes, the shard takes no commands from outside either: what it then still has to do
/// was accepted before.
pub(crate) struct Outboxes {
    pub(crate) inboxes: Arc<[Arc<Inbox>]>,
    own: Place,
    batches: Vec<Batch>,
    held_back: bool,
    congested: bool,
}

/// The items for one shard.
#[derive(Default)]
struct Batch {
    items: VecDeque<InboxItem>,
    bytes: usize,
}

impl Outboxes {
    /// The outboxes of shard `own`.
    pub(crate) fn new(inboxes: Arc<[Arc<Inbox>]>, own: Place) -> Outboxes {
        let batches = inboxes.iter().map(|_| Batch::default()).collect();
        Outboxes { inboxes, own, batches, held_back: false, congested: false }
    }

    /// Adds an item to the batch of a shard of this node.
    pub(crate) fn add(&mut self, to: Place, item: InboxItem) {
        let Some(batch) = self.batches.get_mut(usize::from(to.shard.0)) else { return };
        batch.bytes += item.memory_bytes();
        batch.items.push_back(item);
    }

    /// Hands every batch over. A batch that is not taken stays, in its order.
    pub(crate) fn send(&mut self) {
        let mut held_bytes = 0;
        self.held_back = false;
        for (inbox, batch) in self.inboxes.iter().zip(&mut self.batches) {
            if batch.items.is_empty() {
                continue;
            }
            if !inbox.append(&mut batch.items, batch.bytes) {
                self.held_back = true;
                held_bytes += batch.bytes;
                continue;
            }
            batch.bytes = 0;
            if batch.items.capacity() > BATCH_CAPACITY {
                batch.items.shrink_to(BATCH_CAPACITY);
            }
        }
        let congested = held_bytes >= HELD_BYTES_MAX;
        if congested != self.congested {
            self.congested = congested;
            self.inboxes[usize::from(self.own.shard.0)].set_congested(congested);
        }
    }

    /// Whether a shard is so far behind that its items are held back: then clients are not read.
    pub(crate) fn is_held_back(&self) -> bool {
        self.held_back
    }
}

/// Capacity that a batch keeps after a burst, in items.
const BATCH_CAPACITY: usize = 4096;
/// Bytes of items held back, of all shards together, past which commands are refused.
const HELD_BYTES_MAX: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_core::command::{Command, ReplyTo};
    use carillon_core::message::ShardMessage;
    use carillon_core::model::{NodeId, NotificationId, ShardId};
    use carillon_wire::stanza::{MessageType, Stanza};
    use mio::{Poll, Token, Waker};

    fn at(shard: u16) -> Place {
        Place { node: NodeId(0), shard: ShardId(shard) }
    }

    fn is_offered(inbox: &Inbox) -> bool {
        let command = Command::Trace { id: NotificationId(1) };
        inbox.offer(ShardMessage::Command { command, reply: ReplyTo { node: NodeId(0), number: 0 } }).is_ok()
    }

    #[test]
    fn a_shard_that_holds_too_much_for_another_takes_no_commands() {
        let polls = [(); 3].map(|()| Poll::new().unwrap());
        let inbox = |poll: &Poll| Arc::new(Inbox::new(Waker::new(poll.registry(), Token(0)).unwrap()));
        let inboxes: Arc<[Arc<Inbox>]> = polls.iter().map(inbox).collect();
        let mut outboxes = Outboxes::new(Arc::clone(&inboxes), at(0));
        let mib = Stanza::message(MessageType::Chat).with_id("x".repeat(1 << 20));
        let mut turn = |stanzas: usize| {
            for n in 0..stanzas {
                let to = at(1 + n as u16 % 2);
                outboxes.add(
                    to,
                    InboxItem::ShardMessage(ShardMessage::Stanza { stanza: mib.clone(), settlement: None }),
                );
            }
            outboxes.send();
            (outboxes.is_held_back(), is_offered(&inboxes[0]))
        };
        let full = crate::channels::inbox::BYTES_MAX / (1 << 20);
        assert_eq!(turn(2 * full), (false, true), "it fills the inboxes of the others");
        assert_eq!(turn(10), (true, true), "it holds back, and clients are not read");
        assert_eq!(turn(HELD_BYTES_MAX / (1 << 20)), (true, false));
        inboxes[1].take(&mut VecDeque::new());
        assert_eq!(turn(0), (true, true), "half of it is gone");
        inboxes[2].take(&mut VecDeque::new());
        assert_eq!(turn(0), (false, true));
        let mut items = VecDeque::new();
        inboxes[1].take(&mut items);
        assert_eq!(items.len(), 5 + HELD_BYTES_MAX / (2 << 20), "nothing is lost");
    }
}
