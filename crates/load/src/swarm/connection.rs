//! One client with its socket. There are many thousands of them, so an idle one holds little.

use std::io::{self, Read, Write};

use mio::net::TcpStream;

use super::any_client::{AnyClient, AnyOutbox};

/// A client's connection.
#[derive(Debug)]
pub(super) struct Connection {
    socket: TcpStream,
    pub(super) client: AnyClient,
    /// Bytes that the socket has not accepted yet.
    unsent: Vec<u8>,
    pub(super) state: ConnectionState,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionState {
    /// The connection is being made.
    Connecting,
    /// The client is logging in.
    LoggingIn,
    /// The client is in session.
    Ready,
}

impl Connection {
    pub(super) fn new(socket: TcpStream, client: AnyClient) -> Self {
        Self { socket, client, unsent: Vec::new(), state: ConnectionState::Connecting }
    }

    pub(super) fn socket(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    /// The socket is writable: for the first time when the connection has just been established.
    pub(super) fn writable(&mut self, out: &mut AnyOutbox) {
        if self.state == ConnectionState::Connecting {
            match self.socket.take_error() {
                Ok(None) => {}
                Ok(Some(error)) | Err(error) => return self.client.connection_failed(error.kind(), out),
            }
            // A socket may be reported as writable before it is connected.
            if self.socket.peer_addr().is_err() {
                return;
            }
            // Without this the next small write waits for the last one's acknowledgement.
            let _ = self.socket.set_nodelay(true);
            self.state = ConnectionState::LoggingIn;
            self.client.start(out);
        }
        self.flush(out);
    }

    /// The socket is readable. With `drain` it is read to its end.
    pub(super) fn readable(&mut self, scratch: &mut [u8], drain: bool, out: &mut AnyOutbox) {
        while !self.client.is_over() {
            match self.socket.read(scratch) {
                Ok(0) => self.client.receive_end(out),
                Ok(length) => {
                    self.client.receive(&scratch[..length], out);
                    self.flush(out);
                    // A short read: the kernel has no more, and will report more.
                    if length < scratch.len() && !drain {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.client.connection_failed(error.kind(), out),
            }
        }
    }

    /// Sends what the client has to send, as far as the socket accepts it.
    pub(super) fn flush(&mut self, out: &mut AnyOutbox) {
        let bytes = self.client.bytes(out);
        if !self.unsent.is_empty() {
            self.unsent.append(bytes);
            let unsent = std::mem::take(&mut self.unsent);
            bytes.extend_from_slice(&unsent);
        }
        let sent = send(&mut self.socket, bytes);
        self.keep(sent, out);
    }

    fn keep(&mut self, sent: io::Result<usize>, out: &mut AnyOutbox) {
        match sent {
            Ok(length) => self.unsent = self.client.bytes(out)[length..].to_vec(),
            Err(error) => self.client.connection_failed(error.kind(), out),
        }
        self.client.bytes(out).clear();
    }
}

/// Writes until everything is written or the socket is full; returns the number of bytes.
fn send(socket: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match socket.write(&bytes[sent..]) {
            Ok(length) => sent += length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}
