//! A connection after its handshake, whichever record layer it is on.

use super::fault::Fault;
use super::{Buffered, Keys};

/// A connection after its handshake. Two words; what it points to is all that is kept for it.
#[derive(Debug)]
pub enum Link {
    /// TLS 1.3 on the own record layer.
    Extracted(Box<Keys>),
    /// TLS 1.2 on rustls' record layer.
    Buffered(Box<Buffered>),
}

/// What [`Link::open`] did with its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Bytes of the input that are dealt with. The others are the beginning of a record: hand them in again, as they
    /// are, when more has come.
    pub consumed: usize,
    /// The peer sent `close_notify`: nothing more will come, but it may still read (RFC 8446 §6.1).
    pub closed: bool,
}

/// What a link cannot know of itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Circumstances {
    /// Minutes of a clock that never goes back.
    pub minute: u32,
    /// Whether anything sealed earlier still waits to be sent. Then an answer that may be given later is: a peer that
    /// asks and does not read must not make the queue grow.
    pub has_queue: bool,
}

impl Link {
    /// Seals `plain` and appends the records to `out`, one for every 16 KiB. Several stanzas given as one slice share a
    /// record.
    pub fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        match self {
            Link::Extracted(keys) => keys.seal(plain, out),
            Link::Buffered(connection) => connection.seal(plain, out),
        }
    }

    /// Opens every whole record at the start of `input`, decrypting in place, and appends its data to `plain`.
    ///
    /// What the peer must be told is appended to `reply`: send it before anything sealed later. That includes the alert
    /// of a fault; after one the connection is dead, and `plain` has the data of the records before the bad one.
    pub fn open(
        &mut self,
        input: &mut [u8],
        plain: &mut Vec<u8>,
        reply: &mut Vec<u8>,
        circumstances: Circumstances,
    ) -> Result<Opened, Fault> {
        match self {
            Link::Extracted(keys) => keys.open(input, plain, reply, circumstances),
            Link::Buffered(connection) => connection.open(input, plain, reply),
        }
    }

    /// Says that nothing more will be sent; sealing fails from now on. A second call does nothing.
    pub fn close_notify(&mut self, out: &mut Vec<u8>) {
        match self {
            Link::Extracted(keys) => keys.close_notify(out),
            Link::Buffered(connection) => connection.close_notify(out),
        }
    }
}

impl Opened {
    /// The peer is done: whatever there is has been dealt with.
    pub(super) fn ended(input: &[u8]) -> Opened {
        Opened { consumed: input.len(), closed: true }
    }
}
