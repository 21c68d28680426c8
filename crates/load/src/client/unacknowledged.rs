//! Stanzas that were sent and that the server has not acknowledged (XEP-0198 §4), kept to be sent again on a resumed stream.

use std::collections::VecDeque;

/// An acknowledgement is requested after this many stanzas at the latest.
const REQUEST_EVERY: u32 = 8;
/// An acknowledgement is requested when this fraction of the bound has been sent since the last request.
const REQUEST_FRACTION: usize = 4;
/// How far the client's own answers may exceed the bound, as a multiple of it.
const ANSWERS_FACTOR: usize = 2;

/// Sent stanzas in order, as text that declares no namespace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unacknowledged {
    stanzas: VecDeque<Box<[u8]>>,
    bytes: usize,
    /// Stanzas that the server has acknowledged, modulo 2^32.
    acknowledged: u32,
    /// Stanzas and bytes since the last request for an acknowledgement.
    unrequested: u32,
    unrequested_bytes: usize,
}

/// The server acknowledges more stanzas than were sent, or fewer than it has acknowledged before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfRange {
    /// The acknowledged number.
    pub(crate) handled: u32,
    /// The number of sent stanzas, modulo 2^32.
    pub(crate) sent: u32,
}

impl Unacknowledged {
    /// Nothing was sent yet, and counting begins at a number: of stanzas that were acknowledged before.
    #[cfg(test)]
    pub(crate) fn from_count(acknowledged: u32) -> Self {
        Self { acknowledged, ..Self::default() }
    }

    /// Whether a stanza of this size fits within a bound in bytes. One that is larger than the bound may be sent alone.
    pub(crate) fn has_room(&self, bytes: usize, bytes_max: usize) -> bool {
        self.stanzas.is_empty() || self.bytes + bytes <= bytes_max
    }

    /// Whether even an answer of the client's own, which is not held back by the bound, has no room.
    pub(crate) fn is_overfull(&self, bytes_max: usize) -> bool {
        self.bytes > bytes_max.saturating_mul(ANSWERS_FACTOR)
    }

    /// Keeps a stanza that is sent now.
    pub(crate) fn push(&mut self, stanza: &[u8]) {
        self.bytes += stanza.len();
        self.unrequested_bytes += stanza.len();
        self.unrequested += 1;
        self.stanzas.push_back(stanza.into());
    }

    /// Whether it is time to request an acknowledgement.
    pub(crate) fn wants_request(&self, bytes_max: usize) -> bool {
        self.unrequested >= REQUEST_EVERY || self.unrequested_bytes * REQUEST_FRACTION > bytes_max
    }

    /// Whether stanzas were sent since the last request.
    pub(crate) fn is_unrequested(&self) -> bool {
        self.unrequested > 0
    }

    /// An acknowledgement is requested now.
    pub(crate) fn requested(&mut self) {
        (self.unrequested, self.unrequested_bytes) = (0, 0);
    }

    /// Drops what the server has handled: `handled` stanzas in all, modulo 2^32.
    pub(crate) fn acknowledge(&mut self, handled: u32) -> Result<(), OutOfRange> {
        let newly = handled.wrapping_sub(self.acknowledged) as usize;
        if newly > self.stanzas.len() {
            return Err(OutOfRange { handled, sent: self.sent() });
        }
        self.bytes -= self.stanzas.drain(..newly).map(|stanza| stanza.len()).sum::<usize>();
        self.acknowledged = handled;
        Ok(())
    }

    /// The stanzas in the order in which they were sent.
    pub(crate) fn stanzas(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.stanzas.iter().map(AsRef::as_ref)
    }

    /// The stanzas, taken out.
    pub(crate) fn into_stanzas(self) -> Vec<Box<[u8]>> {
        self.stanzas.into()
    }

    /// Stanzas that were sent in all, modulo 2^32.
    fn sent(&self) -> u32 {
        self.acknowledged.wrapping_add(self.stanzas.len() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sent: &Unacknowledged) -> Vec<&[u8]> {
        sent.stanzas().collect()
    }

    #[test]
    fn counts_wrap_at_2_to_the_32() {
        let mut sent = Unacknowledged::from_count(u32::MAX - 1);
        for stanza in [b"a", b"b", b"c"] {
            sent.push(stanza);
        }
        assert_eq!(sent.acknowledge(u32::MAX), Ok(()));
        assert_eq!(texts(&sent), [b"b", b"c"]);
        assert_eq!(sent.acknowledge(2), Err(OutOfRange { handled: 2, sent: 1 }));
        assert_eq!(sent.acknowledge(u32::MAX - 1), Err(OutOfRange { handled: u32::MAX - 1, sent: 1 }));
        assert_eq!(sent.acknowledge(0), Ok(()));
        assert_eq!(texts(&sent), [b"c"]);
        assert_eq!(sent.acknowledge(1), Ok(()));
        assert_eq!((sent.bytes, sent.stanzas().len()), (0, 0));
    }

    #[test]
    fn the_bound_is_in_bytes_and_requests_come_before_it() {
        let mut sent = Unacknowledged::default();
        assert!(sent.has_room(1000, 100), "alone");
        sent.push(&[b'x'; 60]);
        assert!(sent.has_room(40, 100) && !sent.has_room(41, 100));
        assert!(sent.wants_request(100) && !sent.wants_request(1000));
        sent.requested();
        assert!(!sent.wants_request(100) && !sent.is_unrequested());
        (0..REQUEST_EVERY).for_each(|_| sent.push(b"x"));
        assert!(sent.wants_request(1 << 20));
        sent.push(&[b'x'; 133]);
        assert!(sent.is_overfull(100) && !sent.is_overfull(101));
    }
}
