//! The way out of a connection: the socket and TLS around its [`SendQueue`], which says what is written at once and what waits.

use super::connection::{Conn, Protocol, Stage, Transport};
use crate::tls::Fault;
use carillon_core::connection::Offered;
use std::io::{self, ErrorKind};

/// What became of data that was to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) outcome: SendOutcome,
    /// What the core watched has left meanwhile.
    pub(crate) watched: bool,
}

/// Whether data was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendOutcome {
    /// The socket or the queue has it.
    Taken,
    /// It was dropped, as the queue is full.
    Overflowed {
        /// For the first time: the core is to be told.
        first: bool,
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
    /// an empty queue takes data of any length. `sealed` is scratch.
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

    /// Like [`Conn::send`], but what is to be written at once is appended to `direct`, and the caller writes it.
    pub(crate) fn seal(
        &mut self,
        data: &[u8],
        bound: usize,
        direct: &mut Vec<u8>,
    ) -> Result<Sent, ConnError> {
        let mut watched = false;
        let outcome = loop {
            match self.send_queue.offer(data.len(), bound) {
                Offered::Taken => break SendOutcome::Taken,
                Offered::Overflowed { first } => break SendOutcome::Overflowed { first },
                Offered::FlushFirst => watched |= self.flush()?,
            }
        };
        if outcome == SendOutcome::Taken {
            // Sealed into its place: no copy.
            let out = self.send_queue.tail(direct);
            match &mut self.transport {
                // Nothing can be sent now: neither in the clear nor, yet, under TLS.
                Transport::Announced(_) | Transport::Handshaking(_) => {}
                Transport::Secured(link) => link.seal(data, out).map_err(ConnError::Tls)?,
                Transport::Plain => out.extend_from_slice(data),
            }
        }
        Ok(Sent { outcome, watched })
    }

    /// Writes bytes as they are: sealed ones, or a handshake's.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.send_queue.append(bytes) {
            let taken = write(&self.socket, bytes)?;
            self.send_queue.wrote(bytes, taken);
        }
        Ok(())
    }

    /// Writes the queue, as far as the socket takes it. Whether what the core watched has left with it.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        let taken = write(&self.socket, self.send_queue.unsent())?;
        Ok(self.send_queue.sent(taken))
    }

    /// Whether anything waits to be written.
    pub(crate) fn has_queue(&self) -> bool {
        self.send_queue.queued() > 0
    }

    /// How many of the last bytes that were sent the peer's TCP has not acknowledged, those that wait here included.
    pub(crate) fn unacked(&self) -> u64 {
        self.send_queue.unacked(|| unacked(&self.socket).ok())
    }

    /// Sends the closing messages of WebSocket and TLS, behind everything else; from now on nothing is sent.
    pub(crate) fn send_close(&mut self, code: u16, sealed: &mut Vec<u8>) -> Result<(), ConnError> {
        if let Protocol::WebSocket(_) | Protocol::PlayerSocket(_) = self.protocol {
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

/// Writes until the socket is full, and says how many bytes it took. A full socket announces its next room by an edge.
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

/// How many bytes of a socket the kernel has and its peer has not acknowledged (tcp(7), SIOCOUTQ). After a reset they stay
/// unacknowledged.
#[expect(unsafe_code, reason = "the kernel is given a number to write to")]
fn unacked(socket: &socket2::Socket) -> io::Result<u64> {
    const SIOCOUTQ: rustix::ioctl::Opcode = 0x5411;
    // SAFETY: SIOCOUTQ writes one C int.
    let bytes =
        unsafe { rustix::ioctl::ioctl(socket, rustix::ioctl::Getter::<SIOCOUTQ, std::ffi::c_int>::new())? };
    // It is never negative.
    Ok(u64::try_from(bytes).unwrap_or(u64::MAX))
}
