//! A batch of sends to many connections: gathered while effects are carried out, handed to the kernel together.
//!
//! Sending is the main cost of a delivery, and much of it is the system call. Where io_uring is allowed one system call
//! sends a whole batch; where it is not, each send is a system call of its own, and nothing else differs. A batch is sent
//! before the carrying out of its effects ends, and has at most one part per connection, so that nothing overtakes the
//! bytes which a full socket did not take.

mod ring;

use carillon_core::model::ConnId;
use ring::Ring;
use std::io::{self, ErrorKind};
use std::os::fd::{BorrowedFd, RawFd};

/// A batch of sends. Each shard has one and reuses it.
#[derive(Default)]
pub(crate) struct SendBatch {
    ring: Option<Box<Ring>>,
    /// Sealed records and plain bytes of all parts, one after the other.
    bytes: Vec<u8>,
    parts: Vec<Part>,
    taken: Vec<Taken>,
}

/// The part of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) conn: ConnId,
    /// Its socket, which is open while the part exists: the batch is sent before a connection is dropped.
    socket: RawFd,
    start: usize,
    end: usize,
}

/// How many bytes a socket took, or the negative error number of the system.
type Taken = i32;

impl SendBatch {
    /// A batch that is sent by io_uring, if the system lets this thread have one.
    pub(crate) fn by_ring() -> SendBatch {
        match Ring::new(BATCH) {
            Ok(ring) => SendBatch { ring: Some(Box::new(ring)), ..SendBatch::default() },
            Err(error) => {
                tracing::info!(%error, "no io_uring here: every delivery is a system call of its own");
                SendBatch::default()
            }
        }
    }

    /// Whether a ring sends.
    #[cfg(test)]
    pub(crate) fn has_ring(&self) -> bool {
        self.ring.is_some()
    }

    /// Where the bytes of the next part are appended.
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// What was appended from `start` on is for this connection.
    pub(crate) fn add(&mut self, conn: ConnId, socket: RawFd, start: usize) {
        self.parts.push(Part { conn, socket, start, end: self.bytes.len() });
    }

    /// Whether the batch is to be sent before another part is added.
    pub(crate) fn is_full(&self) -> bool {
        match self.ring {
            Some(_) => self.parts.len() >= BATCH || self.bytes.len() >= BATCH_BYTES,
            // Each part is sent at once, while it is in the cache.
            None => !self.parts.is_empty(),
        }
    }

    /// The number of parts.
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Sends all parts by one system call, if there is a ring and more than one part. Whether it did. [`SendBatch::next`]
    /// tells how much each socket took: nothing, if nothing was sent.
    pub(crate) fn send(&mut self) -> bool {
        self.taken.clear();
        let Some(ring) = self.ring.as_mut().filter(|_| self.parts.len() > 1) else { return false };
        let bytes = &self.bytes;
        let parts = self.parts.iter().map(|part| (part.borrow(), &bytes[part.start..part.end]));
        if let Err(error) = ring.send(parts, &mut self.taken) {
            tracing::error!(%error, "io_uring failed: from now on every delivery is a system call of its own");
            self.ring = None;
            // The first parts are those that the kernel took; of the others nothing was sent.
            self.taken.resize(self.parts.len(), 0);
        }
        true
    }

    /// Removes a part, the last first: its connection, how much the socket took, and its bytes. A full socket took
    /// nothing.
    pub(crate) fn next(&mut self) -> Option<(ConnId, io::Result<usize>, &[u8])> {
        let part = self.parts.pop()?;
        let taken = match self.taken.pop() {
            None => Ok(0),
            Some(taken @ 0..) => Ok(taken as usize),
            Some(error) => match io::Error::from_raw_os_error(-error) {
                error if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
                error => Err(error),
            },
        };
        Some((part.conn, taken, &self.bytes[part.start..part.end]))
    }

    /// Clears the batch, and frees memory beyond what is usual.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(2 * BATCH_BYTES);
    }
}

impl Part {
    #[expect(unsafe_code, reason = "a borrow of the connection would lock all of them while the batch grows")]
    fn borrow(&self) -> BorrowedFd<'_> {
        // SAFETY: the socket belongs to the connection, and no connection is dropped before the batch is sent.
        unsafe { BorrowedFd::borrow_raw(self.socket) }
    }
}

/// Parts per system call: two slices of a fan-out.
const BATCH: usize = 128;
/// A batch of this many bytes is sent: they stay in the processor's cache until the kernel has copied them.
const BATCH_BYTES: usize = 128 * 1024;
