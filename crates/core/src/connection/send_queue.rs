//! The outgoing bytes of one connection: written at once while the socket takes them, queued up to a bound when it does not.
//!
//! The driver offers, writes and reports; the queue decides:
//!
//! ```text
//!  offer(len) ─► Taken ──────► append to tail(direct) ─► direct has bytes: write them, then wrote(bytes, n)
//!     │                                └─ else they wait behind others: nothing to write
//!     ├────────► FlushFirst ─► write unsent(), then sent(n); offer again
//!     └────────► Overflowed ─► drop the bytes; tell the session if it is the first time
//!
//!  the socket is writable again ─► write unsent(), then sent(n)
//! ```
//!
//! What is offered is bounded in bytes. What the transport itself has to say ([`SendQueue::append`]: a handshake, an alert) is
//! not, as it is small and a peer cannot ask for it while a queue stands.

use crate::form::{Form, Malformed, Reader, Writer};

/// The bytes that a socket has not taken yet. One word while there are none.
#[derive(Debug, Default)]
pub struct SendQueue(Option<Box<Buffer>>);

crate::form! { struct SendQueue(buffer) }

/// Whether a queue takes bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// They are taken: append them to [`SendQueue::tail`].
    Taken,
    /// They are too many to be held back with the others: flush the queue first, then offer them again.
    FlushFirst,
    /// They are dropped: the queue is full.
    Overflowed {
        /// Whether this is the first time: then the session is to be told.
        first: bool,
    },
}

#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// How many of `bytes` the socket has taken.
    sent: usize,
    /// The session wants to know when this many of `bytes` are sent.
    watched: Option<usize>,
    overflow: Overflow,
    /// Whether the bytes wait for more bytes, and not for the socket: see [`SendQueue::hold`].
    held: bool,
}

// What the socket has taken is not written.
impl Form for Buffer {
    fn write(&self, out: &mut Writer) {
        let Buffer { bytes, sent, watched, overflow, held } = self;
        out.string(bytes.get(*sent..).unwrap_or_default());
        watched.map(|watched| watched - sent).write(out);
        overflow.write(out);
        held.write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Buffer, Malformed> {
        Ok(Buffer {
            bytes: Vec::read(input)?,
            sent: 0,
            watched: Option::read(input)?,
            overflow: Overflow::read(input)?,
            held: bool::read(input)?,
        })
    }
}

/// Whether the queue ever reached its bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Overflow {
    #[default]
    None,
    /// It did, and the session was not told yet. Nothing that it sends is taken, because the peer would see a gap.
    Unreported,
    /// The session knows. It still sends its stream error, for which there is a little more room.
    Reported,
}

crate::form! { enum Overflow { 0 = None, 1 = Unreported, 2 = Reported } }

impl SendQueue {
    /// Asks whether `len` bytes of the session are taken. They are while not more than `bound` wait, and in any case when
    /// none do: a large stanza is sent whole.
    pub fn offer(&mut self, len: usize, bound: usize) -> Offered {
        let Some(backlog) = &mut self.0 else { return Offered::Taken };
        if backlog.held && backlog.queued().saturating_add(len) > HELD_BYTES_MAX.min(bound) {
            return Offered::FlushFirst;
        }
        if backlog.has_room(len, bound) {
            return Offered::Taken;
        }
        let first = backlog.overflow == Overflow::None;
        if first {
            backlog.overflow = Overflow::Unreported;
        }
        Offered::Overflowed { first }
    }

    /// Where bytes that were taken are appended: behind those that wait, or to `direct`, which is written at once.
    pub fn tail<'a>(&'a mut self, direct: &'a mut Vec<u8>) -> &'a mut Vec<u8> {
        match &mut self.0 {
            Some(backlog) if backlog.waits() => &mut backlog.bytes,
            _ => direct,
        }
    }

    /// Appends bytes of the transport behind those that wait. False if none wait: then the bytes are to be written at once.
    pub fn append(&mut self, bytes: &[u8]) -> bool {
        match &mut self.0 {
            Some(backlog) if backlog.waits() => {
                backlog.bytes.extend_from_slice(bytes);
                true
            }
            _ => false,
        }
    }

    /// The socket was given `bytes` at once and took the first `taken` of them: the others are queued.
    pub fn wrote(&mut self, bytes: &[u8], taken: usize) {
        if let Some(rest) = bytes.get(taken..).filter(|rest| !rest.is_empty()) {
            self.backlog().bytes.extend_from_slice(rest);
        }
    }

    /// Holds `bytes` back, and with them what is taken until the next flush, so that all of it leaves by one system call and
    /// the peer is woken once. If bytes wait for the socket already, these do, too.
    pub fn hold(&mut self, bytes: &[u8]) {
        let backlog = self.backlog();
        backlog.held |= backlog.queued() == 0;
        backlog.bytes.extend_from_slice(bytes);
    }

    /// Whether bytes are held back: they need a flush, as no socket will ask for them.
    pub fn is_held(&self) -> bool {
        self.0.as_ref().is_some_and(|backlog| backlog.held)
    }

    /// The bytes to be written next; [`SendQueue::sent`] is told how many were.
    pub fn unsent(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |backlog| backlog.bytes.get(backlog.sent..).unwrap_or_default())
    }

    /// The socket took the first `count` of [`SendQueue::unsent`]. Whether the last byte that was watched is among them.
    pub fn sent(&mut self, count: usize) -> bool {
        let Some(backlog) = &mut self.0 else { return false };
        backlog.held = false;
        backlog.sent += count;
        let watched = backlog.watched.take_if(|watched| *watched <= backlog.sent).is_some();
        if backlog.queued() > 0 {
            backlog.compact();
        } else if backlog.overflow == Overflow::None {
            self.0 = None;
        } else {
            // That bytes are missing is remembered until the connection ends.
            (backlog.bytes, backlog.sent) = (Vec::new(), 0);
        }
        watched
    }

    /// Whether no bytes wait and none were ever dropped.
    pub fn is_idle(&self) -> bool {
        self.0.is_none()
    }

    /// Bytes of memory that it takes: more than wait, as room is made ahead.
    pub fn memory_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |backlog| backlog.bytes.capacity())
    }

    /// How many bytes wait.
    pub fn queued(&self) -> usize {
        self.0.as_ref().map_or(0, |backlog| backlog.queued())
    }

    /// Asks to be told by [`SendQueue::sent`] when all that was taken so far is sent. Whether it is already. A later request
    /// replaces an earlier one.
    pub fn watch(&mut self) -> bool {
        match &mut self.0 {
            Some(backlog) if backlog.queued() > 0 => {
                backlog.watched = Some(backlog.bytes.len());
                false
            }
            _ => true,
        }
    }

    /// Whether the session waits to be told that what was taken is sent.
    pub fn is_watched(&self) -> bool {
        self.0.as_ref().is_some_and(|backlog| backlog.watched.is_some())
    }

    /// How many of the last bytes the peer has not acknowledged: those that wait, and `in_socket`, which is asked only if it
    /// matters. All there are, [`u64::MAX`], if bytes were dropped or the socket does not know.
    pub fn unacked(&self, in_socket: impl FnOnce() -> Option<u64>) -> u64 {
        let queued = match &self.0 {
            Some(backlog) if backlog.overflow != Overflow::None => return u64::MAX,
            Some(backlog) => backlog.queued() as u64,
            None => 0,
        };
        in_socket().map_or(u64::MAX, |bytes| queued.saturating_add(bytes))
    }

    /// The session was told of the overflow: what it sends from now on are its last words.
    pub fn overflow_reported(&mut self) {
        if let Some(backlog) = &mut self.0
            && backlog.overflow == Overflow::Unreported
        {
            backlog.overflow = Overflow::Reported;
        }
    }

    /// Frees everything, as nothing more will be written.
    pub fn discard(&mut self) {
        self.0 = None;
    }

    fn backlog(&mut self) -> &mut Buffer {
        self.0.get_or_insert_default()
    }
}

impl Buffer {
    fn queued(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Whether new bytes have to wait, too.
    fn waits(&self) -> bool {
        self.held || self.queued() > 0
    }

    fn has_room(&self, len: usize, bound: usize) -> bool {
        let queued = self.queued();
        match self.overflow {
            Overflow::None => queued == 0 || queued.saturating_add(len) <= bound,
            Overflow::Unreported => false,
            Overflow::Reported => queued.saturating_add(len) <= bound.saturating_add(LAST_WORDS_BYTES_MAX),
        }
    }

    /// Removes sent bytes once there are enough to be worth the copying.
    fn compact(&mut self) {
        if self.sent >= COMPACT_BYTES && self.sent * 2 >= self.bytes.len() {
            self.bytes.drain(..self.sent);
            self.watched = self.watched.map(|watched| watched - self.sent);
            self.sent = 0;
        }
    }
}

/// Bytes held back at most: those of one TLS record.
const HELD_BYTES_MAX: usize = 16 * 1024;
/// Room past the bound for a stream error and the stream's end.
const LAST_WORDS_BYTES_MAX: usize = 4096;
/// Sent bytes are removed from a queue when there are this many.
const COMPACT_BYTES: usize = 64 * 1024;
