//! The way out of a connection: straight into the socket while it takes it, into a bounded queue when it does not.

use super::{Conn, Protocol, Stage, Transport};
use crate::tls::Fault;
use std::io::{self, ErrorKind};

/// What the socket has not taken yet. There is none for a connection whose peer reads.
#[derive(Debug, Default)]
pub(crate) struct Outflow {
    bytes: Vec<u8>,
    sent: usize,
    /// The core wants to know when the queue's first so many bytes have left.
    watch: Option<usize>,
    overflow: Overflow,
    /// It waits for what is said next, not for the socket: see [`Conn::hold_back`].
    held: bool,
}

/// Whether the queue reached its bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Overflow {
    #[default]
    None,
    /// It did, the core has not heard of it yet: what it sends in ignorance would leave a gap, so none of it is taken.
    Untold,
    /// The core knows. What it sends now are its last words, for which there is a little more room.
    Told,
}

/// What became of something that was to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The socket or the queue has it.
    Taken,
    /// It was not taken: the queue is full. `first` the first time.
    Overflowed {
        /// Whether the core is to be told.
        first: bool,
    },
}

/// How far a queue was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// The socket is full; what was watched has left (or nothing was).
    Partly {
        /// Something watched has left.
        watched: bool,
    },
    /// Nothing is left.
    Wholly {
        /// Something watched has left.
        watched: bool,
    },
}

/// Why a connection is of no use any more.
#[derive(Debug)]
pub(crate) enum ConnError {
    /// The socket failed.
    Socket,
    /// TLS failed.
    Tls(Fault),
}

impl From<io::Error> for ConnError {
    fn from(_: io::Error) -> ConnError {
        ConnError::Socket
    }
}

impl Conn {
    /// Sends data of the stream or of its WebSocket, sealed if the connection is secured. `bound` limits the queue, but
    /// an empty queue takes whatever there is. `sealed` is scratch.
    pub(crate) fn send(
        &mut self,
        data: &[u8],
        bound: usize,
        sealed: &mut Vec<u8>,
    ) -> Result<Sent, ConnError> {
        sealed.clear();
        let sent = self.seal(data, bound, sealed)?;
        if !sealed.is_empty() {
            self.write(sealed)?;
        }
        Ok(sent)
    }

    /// The same, but what the socket is to be given is appended to `out`, for the caller to send at once; nothing is, if a
    /// queue has it or nobody.
    pub(crate) fn seal(&mut self, data: &[u8], bound: usize, out: &mut Vec<u8>) -> Result<Sent, ConnError> {
        if self.outflow.as_ref().is_some_and(|outflow| outflow.is_held_beyond(data.len(), bound)) {
            self.flush()?;
        }
        if let Some(outflow) = &mut self.outflow
            && !outflow.has_room(data.len(), bound)
        {
            let first = outflow.overflow == Overflow::None;
            if first {
                outflow.overflow = Overflow::Untold;
            }
            return Ok(Sent::Overflowed { first });
        }
        // Behind what waits, if anything does: sealed into its place, no copy.
        let out = self.outflow.as_mut().map_or(out, |outflow| &mut outflow.bytes);
        match &mut self.transport {
            // There is no way to say anything now: neither in the clear nor, yet, under TLS.
            Transport::Handshaking(_) => {}
            Transport::Secured(link) => link.seal(data, out).map_err(ConnError::Tls)?,
            Transport::Plain => out.extend_from_slice(data),
        }
        Ok(Sent::Taken)
    }

    /// Writes bytes as they are: sealed ones, or a handshake's.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(outflow) = &mut self.outflow {
            outflow.bytes.extend_from_slice(bytes);
            return Ok(());
        }
        let taken = write(&self.socket, bytes)?;
        if taken < bytes.len() {
            self.outflow = Some(Box::new(Outflow { bytes: bytes[taken..].to_vec(), ..Outflow::default() }));
        }
        Ok(())
    }

    /// Holds `bytes` back, and with them what is sent until [`Conn::flush`]: all of it leaves by one system call, and the
    /// peer is woken once. Not beyond the input in hand, and not beyond some bytes.
    pub(crate) fn hold_back(&mut self, bytes: &[u8]) {
        let outflow = self.outflow.get_or_insert_default();
        // What the socket did not take before is waited for in any case.
        outflow.held |= outflow.queued() == 0;
        outflow.bytes.extend_from_slice(bytes);
    }

    /// Whether something is held back.
    pub(crate) fn is_held(&self) -> bool {
        self.outflow.as_ref().is_some_and(|outflow| outflow.held)
    }

    /// Goes on writing the queue, as the socket takes bytes again.
    pub(crate) fn flush(&mut self) -> io::Result<Flushed> {
        let Some(outflow) = &mut self.outflow else { return Ok(Flushed::Wholly { watched: false }) };
        outflow.held = false;
        outflow.sent += write(&self.socket, &outflow.bytes[outflow.sent..])?;
        let watched = outflow.watch.take_if(|watch| *watch <= outflow.sent).is_some();
        if outflow.queued() > 0 {
            outflow.compact();
            return Ok(Flushed::Partly { watched });
        }
        if outflow.overflow == Overflow::None {
            self.outflow = None;
        } else {
            // The gap is remembered until the connection ends.
            (outflow.bytes, outflow.sent) = (Vec::new(), 0);
        }
        Ok(Flushed::Wholly { watched })
    }

    /// Whether anything waits to be written.
    pub(crate) fn has_queue(&self) -> bool {
        self.outflow.as_ref().is_some_and(|outflow| outflow.queued() > 0)
    }

    /// Asks to be told when what was sent so far has left. Whether it has already.
    pub(crate) fn watch_flush(&mut self) -> bool {
        match &mut self.outflow {
            Some(outflow) if outflow.queued() > 0 => {
                outflow.watch = Some(outflow.bytes.len());
                false
            }
            _ => true,
        }
    }

    /// How many of the last bytes that were sent the peer's TCP has not acknowledged, those that wait here included. All
    /// there are, where something that was to be sent was not taken or where it cannot be said.
    pub(crate) fn unacked(&self) -> u64 {
        let queued = match &self.outflow {
            Some(outflow) if outflow.overflow != Overflow::None => return u64::MAX,
            Some(outflow) => outflow.queued() as u64,
            None => 0,
        };
        unacked(&self.socket).map_or(u64::MAX, |bytes| queued + bytes)
    }

    /// The core was told that the queue is full.
    pub(crate) fn overflow_reported(&mut self) {
        if let Some(outflow) = &mut self.outflow {
            outflow.overflow = Overflow::Told;
        }
    }

    /// Says the last words of WebSocket and TLS, behind everything else, and takes leave: from now on nothing is sent.
    pub(crate) fn send_close(&mut self, code: u16, sealed: &mut Vec<u8>) -> Result<(), ConnError> {
        if let Protocol::WebSocket(_) = self.protocol {
            let mut frame = Vec::new();
            carillon_wire::frame::websocket::encode_close(&mut frame, code, "");
            self.send(&frame, usize::MAX, sealed)?;
        }
        if let Transport::Secured(link) = &mut self.transport {
            sealed.clear();
            link.close_notify(sealed);
            self.write(sealed)?;
        }
        self.stage = Stage::Leaving;
        Ok(())
    }
}

impl Outflow {
    /// Bytes that wait.
    pub(crate) fn queued(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Whether `len` bytes more are too many to be held back.
    fn is_held_beyond(&self, len: usize, bound: usize) -> bool {
        self.held && self.queued().saturating_add(len) > HELD_BYTES_MAX.min(bound)
    }

    /// Whether `len` bytes more are taken.
    fn has_room(&self, len: usize, bound: usize) -> bool {
        let queued = self.queued();
        match self.overflow {
            Overflow::None => queued == 0 || queued.saturating_add(len) <= bound,
            Overflow::Untold => false,
            Overflow::Told => queued.saturating_add(len) <= bound.saturating_add(LAST_WORDS_BYTES_MAX),
        }
    }

    /// Forgets what was sent, once that is worth the copying.
    fn compact(&mut self) {
        if self.sent >= COMPACT_BYTES && self.sent * 2 >= self.bytes.len() {
            self.bytes.drain(..self.sent);
            self.watch = self.watch.map(|watch| watch - self.sent);
            self.sent = 0;
        }
    }
}

/// Writes until the socket is full (then the edge that says it is not any more will come); says how much it took.
fn write(socket: &socket2::Socket, bytes: &[u8]) -> io::Result<usize> {
    let mut taken = 0;
    while taken < bytes.len() {
        match socket.send(&bytes[taken..]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => taken += n,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(taken)
}

/// Bytes that the kernel has of a socket and its peer has not acknowledged (tcp(7), SIOCOUTQ). Of a connection that was reset
/// they stay.
#[expect(unsafe_code, reason = "the kernel is given a number to write to")]
fn unacked(socket: &socket2::Socket) -> io::Result<u64> {
    const SIOCOUTQ: rustix::ioctl::Opcode = 0x5411;
    // SAFETY: SIOCOUTQ writes one C int.
    let bytes =
        unsafe { rustix::ioctl::ioctl(socket, rustix::ioctl::Getter::<SIOCOUTQ, std::ffi::c_int>::new())? };
    // It is never negative.
    Ok(u64::try_from(bytes).unwrap_or(u64::MAX))
}

/// Bytes held back at most: those of one record.
const HELD_BYTES_MAX: usize = 16 * 1024;
/// Room past the bound for a stream error and the stream's end.
const LAST_WORDS_BYTES_MAX: usize = 4096;
/// Sent bytes are cut off a queue when there are so many.
const COMPACT_BYTES: usize = 64 * 1024;
