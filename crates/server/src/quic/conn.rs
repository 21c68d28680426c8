//! A connection of QUIC, as a player has it: one stream of the client's for what must arrive, and datagrams.

use crate::listen::Permit;
use bytes::Bytes;
use carillon_core::model::{ConnId, Mono};
use quinn_proto::{Connection, Dir, ReadError, SendDatagramError, StreamId, VarInt};
use std::time::Instant;

/// A connection that is processed on this shard.
pub(crate) struct QuicConn {
    pub(super) inner: Connection,
    /// Its name, once the core knows it; none again when the core has heard of its end.
    pub(super) id: Option<ConnId>,
    /// Its place among the connections that the node may have; released when it is dropped.
    pub(super) permit: Permit,
    /// The socket that its client sends to.
    pub(super) via: u8,
    stream: Option<StreamId>,
    stage: Stage,
    /// The stream may have something to read.
    readable: bool,
    /// The core takes nothing now.
    pub(super) paused: bool,
    /// What the stream has no room for yet.
    queue: Vec<u8>,
    /// The core waits to hear that the queue is empty.
    watched: bool,
    overflowed: bool,
    /// When its timers are looked at next.
    pub(super) wake: Mono,
    /// It is among those to drive, and to send.
    pub(super) touched: (bool, bool),
}

/// Whether a connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    /// The core has closed it: what is left of the stream is sent, until a time.
    Leaving(Mono),
    /// It is closed.
    Closed,
}

/// What a stream has to read.
pub(super) enum Read {
    Bytes(Bytes),
    Nothing,
    /// The client ends the stream.
    End,
}

/// What became of bytes for the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Taken,
    /// They were dropped, as too much waits.
    Overflowed {
        /// For the first time.
        first: bool,
    },
}

impl QuicConn {
    pub(super) fn new(inner: Connection, permit: Permit, via: u8) -> QuicConn {
        QuicConn {
            inner,
            id: None,
            permit,
            via,
            stream: None,
            stage: Stage::Open,
            readable: false,
            paused: false,
            queue: Vec::new(),
            watched: false,
            overflowed: false,
            wake: Mono(u64::MAX),
            touched: (false, false),
        }
    }

    /// The handshake is done.
    pub(super) fn opened(&mut self) {
        self.permit.opened();
    }

    /// Whether its client takes datagrams.
    pub(super) fn has_datagrams(&mut self) -> bool {
        self.inner.datagrams().max_size().is_some()
    }

    /// The client has opened its stream.
    pub(super) fn accept_stream(&mut self) {
        if let Some(stream) = self.inner.streams().accept(Dir::Bi) {
            self.stream = Some(stream);
            self.readable = true;
        }
    }

    /// The stream has something to read, perhaps.
    pub(super) fn readable(&mut self) {
        self.readable = true;
    }

    /// Reads a part of the stream.
    pub(super) fn read(&mut self) -> Read {
        let Some(stream) = self.stream.filter(|_| self.readable) else { return Read::Nothing };
        let mut stream = self.inner.recv_stream(stream);
        let read = match stream.read(true) {
            Ok(mut chunks) => {
                let read = match chunks.next(READ_BYTES) {
                    Ok(Some(chunk)) => Read::Bytes(chunk.bytes),
                    Err(ReadError::Blocked) => Read::Nothing,
                    Ok(None) | Err(ReadError::Reset(_)) => Read::End,
                };
                // It is transmitted with whatever else there is at the end of the turn.
                let _ = chunks.finalize();
                read
            }
            Err(_) => Read::End,
        };
        self.readable = matches!(read, Read::Bytes(_));
        read
    }

    /// Sends bytes of the stream: what has no room waits, `bound` bytes at most.
    pub(super) fn write(&mut self, bytes: &[u8], bound: usize) -> Written {
        if self.stage != Stage::Open {
            return Written::Taken;
        }
        let bound = if self.overflowed { bound.saturating_add(LAST_WORDS_BYTES_MAX) } else { bound };
        if !self.queue.is_empty() && self.queue.len().saturating_add(bytes.len()) > bound {
            let first = !std::mem::replace(&mut self.overflowed, true);
            return Written::Overflowed { first };
        }
        let taken = if self.queue.is_empty() { self.write_now(bytes) } else { 0 };
        self.queue.extend_from_slice(bytes.get(taken..).unwrap_or_default());
        Written::Taken
    }

    fn write_now(&mut self, bytes: &[u8]) -> usize {
        let Some(stream) = self.stream else { return 0 };
        // Blocked; or the client does not read, which ends the connection by itself.
        self.inner.send_stream(stream).write(bytes).unwrap_or(0)
    }

    /// Sends a datagram; whether there is one, else its bytes are for the stream.
    pub(super) fn write_datagram(&mut self, bytes: &[u8]) -> bool {
        if self.stage != Stage::Open {
            return true;
        }
        match self.inner.datagrams().send(Bytes::copy_from_slice(bytes), true) {
            Ok(()) | Err(SendDatagramError::Blocked(_)) => true,
            Err(
                SendDatagramError::UnsupportedByPeer
                | SendDatagramError::Disabled
                | SendDatagramError::TooLarge,
            ) => false,
        }
    }

    /// The stream has room again. Whether the core waits to hear that the queue is empty, and it is.
    pub(super) fn writable(&mut self) -> bool {
        if !self.queue.is_empty() {
            let queue = std::mem::take(&mut self.queue);
            let taken = self.write_now(&queue);
            self.queue = queue;
            self.queue.drain(..taken);
            if self.queue.is_empty() {
                self.queue = Vec::new();
                self.finish_if_leaving();
            }
        }
        self.queue.is_empty() && std::mem::take(&mut self.watched)
    }

    /// Whether everything that was written is with the transport; else [`QuicConn::writable`] will say so.
    pub(super) fn watch(&mut self) -> bool {
        self.watched = !self.queue.is_empty();
        !self.watched
    }

    /// Closes it: what is left of the stream is sent first, until a time at most.
    pub(super) fn leave(&mut self, until: Mono, now: Instant) {
        if self.stage != Stage::Open {
            return;
        }
        self.stage = Stage::Leaving(until);
        self.id = None;
        match self.stream {
            Some(_) => self.finish_if_leaving(),
            None => self.close(0, now),
        }
    }

    fn finish_if_leaving(&mut self) {
        if let (Stage::Leaving(_), Some(stream), true) = (self.stage, self.stream, self.queue.is_empty()) {
            // It may be stopped: then its end is not acknowledged, and the time is up at some point.
            let _ = self.inner.send_stream(stream).finish();
        }
    }

    /// The client has all of the stream.
    pub(super) fn finished(&mut self, now: Instant) {
        if matches!(self.stage, Stage::Leaving(_)) {
            self.close(0, now);
        }
    }

    /// Until when what is left of the stream is sent.
    pub(super) fn leaves_at(&self) -> Option<Mono> {
        match self.stage {
            Stage::Leaving(until) => Some(until),
            Stage::Open | Stage::Closed => None,
        }
    }

    /// Ends it now, and says so: nothing else is sent.
    pub(super) fn close(&mut self, code: u32, now: Instant) {
        if self.stage != Stage::Closed {
            self.stage = Stage::Closed;
            self.queue = Vec::new();
            self.inner.close(now, VarInt::from_u32(code), Bytes::new());
        }
    }

    /// It was lost, or ended by its client.
    pub(super) fn lost(&mut self) {
        self.stage = Stage::Closed;
        self.queue = Vec::new();
    }
}

/// Bytes of the stream that are given to the core at once.
const READ_BYTES: usize = 16 * 1024;
/// Room past the bound for an error.
const LAST_WORDS_BYTES_MAX: usize = 4096;
