//! What a client was sent and has not acknowledged, in order: pure counting.

use crate::shard::{Recipients, Tracked};
use carillon_wire::stanza::Stanza;
use std::collections::VecDeque;
use std::sync::Arc;

/// What was sent since stream management was enabled and is not acknowledged, oldest first.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Stanzas acknowledged by the client, modulo 2^32.
    acknowledged: u32,
    entries: VecDeque<Entry>,
    /// Bytes that the entries keep in memory beyond their own size.
    bytes: usize,
}

/// Something sent and not yet acknowledged.
#[derive(Debug)]
pub(super) enum Entry {
    /// It may be lost.
    Anything,
    /// It goes on when the connection ends, unless another session has it.
    Chat(Box<Stanza>, Option<Arc<Recipients>>),
    /// A feature is told when it is acknowledged.
    Tracked(Tracked, u128),
}

/// An acknowledgement of more than was sent (XEP-0198 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany {
    /// How many were sent, modulo 2^32.
    pub(super) sent: u32,
}

impl Queue {
    /// A stanza was sent.
    pub(super) fn push(&mut self, entry: Entry) {
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
    }

    /// The client says that it received `h` stanzas, modulo 2^32: what it acknowledges by that.
    pub(super) fn acknowledge(&mut self, h: u32) -> Result<impl Iterator<Item = Entry>, TooMany> {
        let count = h.wrapping_sub(self.acknowledged) as usize;
        if count > self.entries.len() {
            return Err(TooMany { sent: self.acknowledged.wrapping_add(self.entries.len() as u32) });
        }
        self.acknowledged = h;
        self.bytes -= self.entries.iter().take(count).map(Entry::bytes).sum::<usize>();
        Ok(self.entries.drain(..count))
    }

    /// How many stanzas are not acknowledged.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes that they keep in memory beyond their own size.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether any of them is one that must not be lost.
    pub(super) fn has_any_that_matters(&self) -> bool {
        self.entries.iter().any(Entry::matters)
    }

    /// What was never acknowledged.
    pub(super) fn into_entries(self) -> impl Iterator<Item = Entry> {
        self.entries.into_iter()
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        match self {
            Entry::Chat(stanza, _) => stanza.payload.bytes().len(),
            Entry::Anything | Entry::Tracked(..) => 0,
        }
    }

    /// Whether it must not be lost.
    pub(super) fn matters(&self) -> bool {
        !matches!(self, Entry::Anything)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_wire::stanza::MessageType;
    use carillon_wire::xml::Element;
    use proptest::prelude::*;

    const KIND: Tracked = Tracked(*b"test");

    /// What a client does, and what it is sent.
    #[derive(Clone, Debug)]
    enum Step {
        SendAnything,
        SendChat(usize),
        SendTracked,
        /// Acknowledges so many more than before.
        Acknowledge(u32),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            Just(Step::SendAnything),
            (0usize..300).prop_map(Step::SendChat),
            Just(Step::SendTracked),
            (0u32..6).prop_map(Step::Acknowledge),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        /// From any count on, across its end at 2^32: what is acknowledged is what was sent, in order, each once; more is
        /// refused and changes nothing; the bytes are those of what is left.
        #[test]
        fn acknowledges_in_order_and_no_more_than_was_sent(start: u32, steps in steps()) {
            let mut queue = Queue { acknowledged: start, ..Queue::default() };
            let (mut sent, mut acknowledged) = (0u128, 0u128);
            for step in steps {
                match step {
                    Step::SendAnything => queue.push(Entry::Anything),
                    Step::SendChat(bytes) => {
                        let body = Element::new("body", "jabber:client").with_text("x".repeat(bytes));
                        let stanza = Stanza::message(MessageType::Chat).with_payload(body);
                        queue.push(Entry::Chat(Box::new(stanza), None));
                    }
                    Step::SendTracked => queue.push(Entry::Tracked(KIND, sent)),
                    Step::Acknowledge(more) => {
                        let h = start.wrapping_add(acknowledged as u32).wrapping_add(more);
                        let before = (queue.len(), queue.bytes());
                        let done: Result<Vec<Entry>, TooMany> = queue.acknowledge(h).map(Iterator::collect);
                        match done {
                            Ok(entries) => {
                                for entry in entries {
                                    if let Entry::Tracked(_, id) = entry {
                                        prop_assert_eq!(id, acknowledged);
                                    }
                                    acknowledged += 1;
                                }
                            }
                            Err(TooMany { sent: told }) => {
                                prop_assert!(acknowledged + u128::from(more) > sent);
                                prop_assert_eq!(told, start.wrapping_add(sent as u32));
                                prop_assert_eq!((queue.len(), queue.bytes()), before);
                            }
                        }
                        continue;
                    }
                }
                sent += 1;
            }
            prop_assert_eq!(queue.len() as u128, sent - acknowledged);
            prop_assert_eq!(queue.bytes(), queue.entries.iter().map(Entry::bytes).sum::<usize>());
            prop_assert_eq!(queue.into_entries().count() as u128, sent - acknowledged);
        }
    }
}
