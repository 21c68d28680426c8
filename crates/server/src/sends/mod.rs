//! What is about to be sent to many connections: gathered while effects are carried out, handed to the kernel together.
//!
//! To send is what a delivery costs, and much of that is the way into the kernel. Where io_uring is allowed one system call
//! sends to a whole batch; where it is not, each send is a system call of its own, and nothing else differs. A batch never
//! outlives the carrying out of the effects it came from, and has at most one part a connection, so that bytes which a
//! full socket did not take are never overtaken.

mod ring;

use carillon_core::model::ConnId;
use ring::Ring;
use std::io::{self, ErrorKind};
use std::os::fd::{BorrowedFd, RawFd};

/// A batch of sends. One for a shard, used again and again.
#[derive(Default)]
pub(crate) struct SendBatch {
    ring: Option<Box<Ring>>,
    /// Sealed records and plain bytes of all parts, one behind the other.
    bytes: Vec<u8>,
    parts: Vec<Part>,
    taken: Vec<Taken>,
}

/// What one connection is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) conn: ConnId,
    /// Its socket, which stays open while the part is here: who lets go of a connection sends the batch before.
    socket: RawFd,
    start: usize,
    end: usize,
}

/// How many bytes a socket took, or the system's error number, negative.
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

    /// Whether it is time to send.
    pub(crate) fn is_full(&self) -> bool {
        match self.ring {
            Some(_) => self.parts.len() >= BATCH || self.bytes.len() >= BATCH_BYTES,
            // What was just written is in the cache still.
            None => !self.parts.is_empty(),
        }
    }

    /// How many parts wait to be sent.
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Sends all parts by one system call, if there is a ring and more than one; whether it did. What each socket took is
    /// told by [`SendBatch::next`]: nothing, if they were not sent.
    pub(crate) fn send(&mut self) -> bool {
        self.taken.clear();
        let Some(ring) = self.ring.as_mut().filter(|_| self.parts.len() > 1) else { return false };
        let bytes = &self.bytes;
        let parts = self.parts.iter().map(|part| (part.borrow(), &bytes[part.start..part.end]));
        if let Err(error) = ring.send(parts, &mut self.taken) {
            tracing::error!(%error, "io_uring failed: from now on every delivery is a system call of its own");
            self.ring = None;
            // Those that the kernel took are the first; of the others nothing was sent.
            self.taken.resize(self.parts.len(), 0);
        }
        true
    }

    /// A part, what its socket took of it, and its bytes; from the last to the first. A full socket took nothing.
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

    /// Makes room for the next batch; gives back what an unusual one took.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(2 * BATCH_BYTES);
    }
}

impl Part {
    #[expect(unsafe_code, reason = "a borrow of the connection would lock all of them while the batch grows")]
    fn borrow(&self) -> BorrowedFd<'_> {
        // SAFETY: the socket is its connection's, and the connection is not let go of before the batch is sent.
        unsafe { BorrowedFd::borrow_raw(self.socket) }
    }
}

/// Sends of one system call: two slices of a walk.
const BATCH: usize = 128;
/// Bytes after which a batch is sent: what stays in a core's cache until the kernel has copied it.
const BATCH_BYTES: usize = 128 * 1024;
