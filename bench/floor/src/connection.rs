//! A socket and its TLS.

use std::io::{self, Read, Write};

use carillon_server::tls::{Circumstances, Handshake, Link, Progress, Settings};
use mio::net::TcpStream;

use crate::talk::Stage;

/// One client.
pub(crate) struct Connection {
    socket: TcpStream,
    cover: Cover,
    pub(crate) stage: Stage,
    /// The full JID, once bound.
    pub(crate) jid: Vec<u8>,
    /// Bytes that are the beginning of a record.
    record: Vec<u8>,
    /// Text that is the beginning of a unit.
    pub(crate) text: Vec<u8>,
    /// Bytes the socket did not take.
    unsent: Vec<u8>,
}

/// What the bytes are wrapped in.
enum Cover {
    /// Nothing.
    None,
    /// A handshake goes on.
    Handshake(Handshake),
    /// TLS.
    Link(Link),
}

/// The connection is of no more use.
pub(crate) struct Gone;

impl From<io::Error> for Gone {
    fn from(_: io::Error) -> Self {
        Self
    }
}

impl Connection {
    pub(crate) fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            cover: Cover::None,
            stage: Stage::Clear,
            jid: Vec::new(),
            record: Vec::new(),
            text: Vec::new(),
            unsent: Vec::new(),
        }
    }

    pub(crate) fn socket(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    /// Whatever comes now is TLS.
    pub(crate) fn begin_tls(&mut self, tls: &Settings) {
        self.cover = Cover::Handshake(Handshake::new(tls));
    }

    /// Reads what there is into `text`.
    pub(crate) fn read(&mut self, scratch: &mut [u8]) -> Result<(), Gone> {
        loop {
            match self.socket.read(scratch) {
                Ok(0) => return Err(Gone),
                Ok(length) => {
                    self.take(&scratch[..length])?;
                    // Less than there was room for: the kernel had no more.
                    if length < scratch.len() {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(_) => return Err(Gone),
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        if matches!(self.cover, Cover::None) {
            self.text.extend_from_slice(bytes);
            return Ok(());
        }
        let mut record = std::mem::take(&mut self.record);
        record.extend_from_slice(bytes);
        let mut reply = Vec::new();
        let mut done = 0;
        if let Cover::Handshake(_) = self.cover {
            let Cover::Handshake(handshake) = std::mem::replace(&mut self.cover, Cover::None) else {
                unreachable!("just looked at")
            };
            let consumed = match handshake.feed(&record, &mut reply).map_err(|_| Gone)? {
                Progress::Pending { handshake, consumed } => {
                    self.cover = Cover::Handshake(handshake);
                    consumed
                }
                Progress::Done { link, consumed, .. } => {
                    self.cover = Cover::Link(link);
                    self.stage = Stage::Secure;
                    consumed
                }
            };
            done += consumed;
        }
        if let Cover::Link(link) = &mut self.cover {
            let opened = link
                .open(&mut record[done..], &mut self.text, &mut reply, Circumstances::default())
                .map_err(|_| Gone)?;
            done += opened.consumed;
            if opened.closed {
                return Err(Gone);
            }
        }
        // Nothing is kept for an idle connection.
        self.record = if done < record.len() { record.split_off(done) } else { Vec::new() };
        if reply.is_empty() { Ok(()) } else { self.write(&reply) }
    }

    /// Sends text, sealed when there is TLS.
    pub(crate) fn send(&mut self, text: &[u8], sealed: &mut Vec<u8>) -> Result<(), Gone> {
        match &mut self.cover {
            Cover::Link(link) => {
                sealed.clear();
                link.seal(text, sealed).map_err(|_| Gone)?;
                let sealed = std::mem::take(sealed);
                self.write(&sealed)
            }
            Cover::None | Cover::Handshake(_) => self.write(text),
        }
    }

    /// The socket has room again.
    pub(crate) fn flush(&mut self) -> Result<(), Gone> {
        let unsent = std::mem::take(&mut self.unsent);
        self.write(&unsent)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        let mut sent = 0;
        while self.unsent.is_empty() && sent < bytes.len() {
            match self.socket.write(&bytes[sent..]) {
                Ok(length) => sent += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return Err(Gone),
            }
        }
        self.unsent.extend_from_slice(&bytes[sent..]);
        Ok(())
    }
}
