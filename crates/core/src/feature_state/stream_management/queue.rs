//! What a client was sent and has not acknowledged, in order (XEP-0198): counting alone, without a connection or a clock.

use crate::form::{Form, Malformed, Reader, Writer};
use std::collections::VecDeque;

/// What was sent since stream management was enabled and is not acknowledged, oldest first.
#[derive(Debug)]
pub(crate) struct Queue<E> {
    /// Stanzas acknowledged by the client, modulo 2^32.
    acknowledged: u32,
    /// Whether the client has not answered the last `<r/>`.
    requested: bool,
    entries: VecDeque<E>,
    /// Sum of [`Entry::bytes`].
    bytes: usize,
}

// How many bytes an entry keeps is counted anew: another release may keep it otherwise.
impl<E: Form + Entry> Form for Queue<E> {
    fn write(&self, out: &mut Writer) {
        let Queue { acknowledged, requested, entries, bytes: _ } = self;
        acknowledged.write(out);
        requested.write(out);
        entries.write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Queue<E>, Malformed> {
        let (acknowledged, requested) = (Form::read(input)?, Form::read(input)?);
        let entries = VecDeque::<E>::read(input)?;
        let bytes = entries.iter().map(Entry::bytes).sum();
        Ok(Queue { acknowledged, requested, entries, bytes })
    }
}

/// A stanza that was sent.
pub(crate) trait Entry {
    /// Bytes that it keeps in memory beyond its own size.
    fn bytes(&self) -> usize;

    /// Whether its acknowledgement is requested at once, because something waits for it.
    fn is_awaited(&self) -> bool;
}

/// How much a client may leave unacknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) stanzas: usize,
    pub(crate) bytes: usize,
}

/// What follows from a stanza that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Nothing,
    /// An acknowledgement is to be requested.
    Request,
    /// The client leaves more unacknowledged than it may.
    Overflow,
}

/// An acknowledgement of more than was sent (XEP-0198 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany {
    /// How many were sent, modulo 2^32.
    pub(crate) sent: u32,
}

impl<E> Default for Queue<E> {
    fn default() -> Queue<E> {
        Queue { acknowledged: 0, requested: false, entries: VecDeque::new(), bytes: 0 }
    }
}

impl<E: Entry> Queue<E> {
    /// A stanza was sent.
    pub(crate) fn push(&mut self, entry: E, bounds: Bounds) -> Next {
        let is_awaited = entry.is_awaited();
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
        if self.len() > bounds.stanzas || self.bytes > bounds.bytes {
            return Next::Overflow;
        }
        if self.requested || !(is_awaited || self.len() >= REQUEST_AFTER) {
            return Next::Nothing;
        }
        self.requested = true;
        Next::Request
    }

    /// The client says that it received `h` stanzas, modulo 2^32: what it acknowledges by that, oldest first.
    pub(crate) fn acknowledge(&mut self, h: u32) -> Result<impl Iterator<Item = E>, TooMany> {
        self.can_be_acknowledged(h)?;
        let count = h.wrapping_sub(self.acknowledged) as usize;
        self.acknowledged = h;
        self.requested = false;
        self.bytes -= self.entries.iter().take(count).map(Entry::bytes).sum::<usize>();
        Ok(self.entries.drain(..count))
    }

    /// Whether another acknowledgement is to be requested, because one that is awaited was not among the last.
    pub(crate) fn request_again(&mut self) -> bool {
        let is_due = !self.requested && self.entries.iter().any(Entry::is_awaited);
        self.requested |= is_due;
        is_due
    }

    /// How many stanzas were sent, modulo 2^32.
    pub(crate) fn sent(&self) -> u32 {
        self.acknowledged.wrapping_add(self.entries.len() as u32)
    }

    /// Whether the first `count` stanzas, modulo 2^32, are acknowledged.
    pub(crate) fn is_acknowledged(&self, count: u32) -> bool {
        count.wrapping_sub(self.acknowledged).cast_signed() <= 0
    }

    /// Whether a client can have received `h` stanzas, modulo 2^32.
    pub(crate) fn can_be_acknowledged(&self, h: u32) -> Result<(), TooMany> {
        let is_too_many = h.wrapping_sub(self.acknowledged) as usize > self.entries.len();
        if is_too_many { Err(TooMany { sent: self.sent() }) } else { Ok(()) }
    }

    /// Takes out what the client has not received and is not to be sent any more. What follows it moves up: the client counts what it
    /// receives.
    pub(crate) fn retain(&mut self, is_sent: impl FnMut(&E) -> bool) {
        self.entries.retain(is_sent);
        self.bytes = self.entries.iter().map(Entry::bytes).sum();
    }

    /// The connection is gone: an `<r/>` on its way is not answered any more.
    pub(crate) fn is_cut(&mut self) {
        self.requested = false;
    }

    /// What is not acknowledged, oldest first.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &E> {
        self.entries.iter()
    }

    /// The same, to be changed; but not [`Entry::bytes`].
    pub(crate) fn entries_mut(&mut self) -> impl Iterator<Item = &mut E> {
        self.entries.iter_mut()
    }

    /// Bytes that it takes in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes + self.entries.len() * size_of::<E>()
    }

    /// How many stanzas are not acknowledged.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// What was never acknowledged, oldest first.
    pub(crate) fn into_entries(self) -> impl Iterator<Item = E> {
        self.entries.into_iter()
    }
}

/// Unacknowledged stanzas after which an acknowledgement is requested although none of them is awaited.
const REQUEST_AFTER: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A stanza, by its place among all that were sent.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Sent {
        number: u64,
        bytes: usize,
        is_awaited: bool,
    }

    impl Entry for Sent {
        fn bytes(&self) -> usize {
            self.bytes
        }

        fn is_awaited(&self) -> bool {
            self.is_awaited
        }
    }

    /// What a client is sent, and what it says.
    #[derive(Clone, Debug)]
    enum Step {
        Push {
            bytes: usize,
            is_awaited: bool,
        },
        /// Acknowledges so many more than before.
        Acknowledge(u32),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (0usize..300, any::<bool>()).prop_map(|(bytes, is_awaited)| Step::Push { bytes, is_awaited }),
            1 => (0usize..300).prop_map(|bytes| Step::Push { bytes, is_awaited: false }),
            1 => (0u32..6).prop_map(Step::Acknowledge),
        ];
        prop::collection::vec(step, 0..300)
    }

    /// Counts that are about to begin again at 0, and any others.
    fn starts() -> impl Strategy<Value = u32> {
        prop_oneof![(0u32..200).prop_map(|below| u32::MAX - below), any::<u32>()]
    }

    proptest! {
        /// The queue is compared with all that was ever sent, and how many of it were acknowledged, counted in 64 bits.
        #[test]
        fn is_what_was_sent_without_what_was_acknowledged(
            start in starts(),
            stanzas in 1usize..60,
            bytes in 0usize..12_000,
            any_is_awaited: bool,
            steps in steps(),
        ) {
            let bounds = Bounds { stanzas, bytes };
            let mut queue = Queue { acknowledged: start, ..Queue::default() };
            let (mut sent, mut acknowledged) = (Vec::<Sent>::new(), 0usize);
            // Whether a request is unanswered.
            let mut requested = false;
            for step in steps {
                match step {
                    Step::Push { bytes, is_awaited } => {
                        let is_awaited = is_awaited && any_is_awaited;
                        let entry = Sent { number: sent.len() as u64, bytes, is_awaited };
                        sent.push(entry);
                        let left = &sent[acknowledged..];
                        let held: usize = left.iter().map(|entry| entry.bytes).sum();
                        let expected = if left.len() > bounds.stanzas || held > bounds.bytes {
                            Next::Overflow
                        } else if !requested && (is_awaited || left.len() >= REQUEST_AFTER) {
                            requested = true;
                            Next::Request
                        } else {
                            Next::Nothing
                        };
                        prop_assert_eq!(queue.push(entry, bounds), expected);
                    }
                    Step::Acknowledge(more) => {
                        let h = start.wrapping_add(acknowledged as u32).wrapping_add(more);
                        let left = &sent[acknowledged..];
                        let done = queue.acknowledge(h).map(Iterator::collect::<Vec<_>>);
                        if more as usize > left.len() {
                            let all = start.wrapping_add(sent.len() as u32);
                            prop_assert_eq!(done, Err(TooMany { sent: all }));
                        } else {
                            prop_assert_eq!(done.expect("as many were sent"), &left[..more as usize]);
                            acknowledged += more as usize;
                            requested = sent[acknowledged..].iter().any(|entry| entry.is_awaited);
                            prop_assert_eq!(queue.request_again(), requested);
                            prop_assert!(!queue.request_again(), "one request at a time");
                        }
                    }
                }
                let left = &sent[acknowledged..];
                prop_assert_eq!(queue.len(), left.len());
                prop_assert_eq!(queue.bytes, left.iter().map(|entry| entry.bytes).sum::<usize>());
            }
            prop_assert_eq!(queue.into_entries().collect::<Vec<_>>(), &sent[acknowledged..]);
        }
    }
}
