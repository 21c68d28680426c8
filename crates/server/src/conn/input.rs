//! The way in of a connection: from its socket to the bytes of its stream, through a scratch buffer that all connections
//! of the shard share. The core may pause it; then decrypted bytes are kept.

use super::connection::{Conn, PendingInput, Readiness, Transport};
use crate::tls::{Circumstances, Fault, Link, Progress, Secured};
use carillon_core::connection::Resumed;
use carillon_core::model::Mono;
use std::io::{ErrorKind, Read};

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// The number of bytes at the start of the scratch buffer, including those of an incomplete record that came earlier.
    Bytes(usize),
    /// The socket has no more for now.
    Nothing,
    /// The peer will send no more.
    End,
    /// The socket failed.
    Broken,
}

/// The result of feeding a handshake.
pub(crate) enum HandshakeStep {
    /// It needs more input.
    Pending,
    /// It is complete; the bytes of the scratch buffer from `consumed` on belong to the connection.
    Done {
        /// What the handshake agreed on.
        secured: Box<Secured>,
        /// How many bytes belong to the handshake.
        consumed: usize,
    },
}

impl Conn {
    /// Reads once from the socket into `scratch`, behind the incomplete record of an earlier read.
    pub(crate) fn receive(&mut self, scratch: &mut [u8]) -> ReadOutcome {
        let start = match &mut self.pending_input {
            Some(pending) => {
                let kept = pending.record.len();
                scratch[..kept].copy_from_slice(&pending.record);
                kept
            }
            None => 0,
        };
        let room = READ_BYTES.min(scratch.len() - start);
        loop {
            return match (&self.socket).read(&mut scratch[start..start + room]) {
                Ok(0) => ReadOutcome::End,
                Ok(n) => {
                    // A short read has emptied the socket, and the next bytes make a new edge. The peer's end, once
                    // announced, makes no edge: it is read for.
                    if n < room && self.readiness == Readiness::Ready {
                        self.readiness = Readiness::Dry;
                    }
                    self.forget_record();
                    ReadOutcome::Bytes(start + n)
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.readiness = Readiness::Dry;
                    ReadOutcome::Nothing
                }
                Err(_) => ReadOutcome::Broken,
            };
        }
    }

    /// Feeds the handshake, if there is one. What it sends is appended to `reply`, also on a fault.
    pub(crate) fn feed_handshake(
        &mut self,
        input: &[u8],
        reply: &mut Vec<u8>,
    ) -> Result<Option<HandshakeStep>, Fault> {
        let Some(handshake) = self.transport.take_handshake() else { return Ok(None) };
        match handshake.feed(input, reply)? {
            Progress::Pending { handshake, consumed } => {
                self.transport = Transport::Handshaking(Box::new(handshake));
                self.keep_record(&input[consumed..]);
                Ok(Some(HandshakeStep::Pending))
            }
            Progress::Done { link, secured, consumed } => {
                self.transport = Transport::Secured(link);
                Ok(Some(HandshakeStep::Done { secured, consumed }))
            }
        }
    }

    /// Decrypts what was received and appends it to `plain`. Whether the peer closed its side of TLS. What TLS sends is
    /// appended to `reply`, also on a fault.
    pub(crate) fn open(
        &mut self,
        input: &mut [u8],
        plain: &mut Vec<u8>,
        reply: &mut Vec<u8>,
        now: Mono,
    ) -> Result<bool, Fault> {
        let circumstances = Circumstances { minute: (now.0 / MINUTE_MS) as u32, has_queue: self.has_queue() };
        let Transport::Secured(link) = &mut self.transport else {
            plain.extend_from_slice(input);
            return Ok(false);
        };
        let opened = Link::open(link, input, plain, reply, circumstances)?;
        self.keep_record(&input[opened.consumed..]);
        Ok(opened.closed)
    }

    /// Keeps decrypted bytes until the core wants them.
    pub(crate) fn keep_plain(&mut self, plain: &[u8]) {
        if !plain.is_empty() {
            self.pending_input.get_or_insert_default().paused.push(plain);
        }
    }

    /// Keeps the peer's end until the core has taken what came before it.
    pub(crate) fn keep_end(&mut self) {
        self.pending_input.get_or_insert_default().paused.end();
    }

    /// Takes the first of what was kept, if there is anything.
    pub(crate) fn take_kept(&mut self) -> Option<Resumed> {
        let resumed = self.pending_input.as_mut()?.paused.take();
        self.drop_empty_input();
        resumed
    }

    /// Whether the core can be given input without a read from the socket.
    pub(crate) fn has_kept(&self) -> bool {
        self.pending_input.as_ref().is_some_and(|pending| !pending.paused.is_empty())
    }

    /// Keeps what was received until more comes: the beginning of a record, or of a PROXY header.
    pub(crate) fn keep_record(&mut self, partial: &[u8]) {
        if !partial.is_empty() {
            // `receive` has moved the earlier part into the scratch buffer.
            self.pending_input.get_or_insert_default().record = partial.to_vec();
        }
    }

    fn forget_record(&mut self) {
        if let Some(pending) = &mut self.pending_input {
            pending.record = Vec::new();
            self.drop_empty_input();
        }
    }

    fn drop_empty_input(&mut self) {
        let is_empty = |pending: &PendingInput| pending.record.is_empty() && pending.paused.is_empty();
        if self.pending_input.as_deref().is_some_and(is_empty) {
            self.pending_input = None;
        }
    }
}

const MINUTE_MS: u64 = 60_000;
/// Bytes of one read.
pub(crate) const READ_BYTES: usize = 64 * 1024;
/// Bytes of the scratch buffer: one read behind the largest incomplete record (2^14 + 2048 + header).
pub(crate) const SCRATCH_BYTES: usize = READ_BYTES + 20 * 1024;
