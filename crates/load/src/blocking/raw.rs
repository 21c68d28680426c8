//! A connection without a client: raw bytes, with or without TLS, for tests of invalid input.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::socket::{READ_BYTES, WRITE_TIMEOUT, is_broken, is_timeout};
use crate::client::Profile;

/// A connection for raw bytes.
#[derive(Debug)]
pub struct Raw {
    socket: Socket,
    received: Vec<u8>,
}

#[derive(Debug)]
enum Socket {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Raw {
    /// Connects without sending anything.
    pub fn connect(address: impl ToSocketAddrs) -> io::Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_write_timeout(Some(WRITE_TIMEOUT))?;
        Ok(Self { socket: Socket::Plain(socket), received: Vec::new() })
    }

    /// Performs the TLS handshake of the profile on the connection as it stands, and forgets what was received.
    pub fn secure(self, domain: &str, profile: &Profile, timeout: Duration) -> io::Result<Self> {
        let Socket::Plain(socket) = self.socket else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "TLS in TLS"));
        };
        socket.set_read_timeout(Some(timeout))?;
        let mut stream = handshake(socket, domain, &profile.tls)?;
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(Self { socket: Socket::Tls(Box::new(stream)), received: Vec::new() })
    }

    /// Opens a stream to `domain`, asks for STARTTLS and performs the handshake. No stream is open afterwards.
    pub fn starttls(mut self, domain: &str, profile: &Profile, timeout: Duration) -> io::Result<Self> {
        self.send(Self::header(domain))?;
        self.receive_until("</stream:features>", timeout)?;
        self.send("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")?;
        self.receive_until("<proceed", timeout)?;
        self.secure(domain, profile, timeout)
    }

    /// A stream header for `domain`.
    pub fn header(domain: &str) -> String {
        format!(
            "<?xml version='1.0'?><stream:stream to='{domain}' version='1.0' xmlns='jabber:client' \
             xmlns:stream='http://etherx.jabber.org/streams'>"
        )
    }

    /// Sends raw bytes, inside TLS if there is TLS.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        match &mut self.socket {
            Socket::Plain(socket) => socket.write_all(bytes.as_ref()),
            Socket::Tls(stream) => stream.write_all(bytes.as_ref()).and_then(|()| stream.flush()),
        }
    }

    /// Sends bytes below TLS.
    pub fn send_beneath(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.tcp().write_all(bytes)
    }

    /// All bytes received so far, including those that a method returned before.
    pub fn received(&self) -> String {
        String::from_utf8_lossy(&self.received).into_owned()
    }

    /// Forgets what was received.
    pub fn forget(&mut self) {
        self.received.clear();
    }

    /// Reads until `text` was received; returns everything received. An error if the connection ends first, or the
    /// time does.
    pub fn receive_until(&mut self, text: &str, timeout: Duration) -> io::Result<String> {
        let deadline = Instant::now() + timeout;
        loop {
            let received = self.received();
            if received.contains(text) {
                return Ok(received);
            }
            if !self.read(deadline)? {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    format!("no {text:?} in {received:?}"),
                ));
            }
        }
    }

    /// Ends our side of the connection and keeps the other open.
    pub fn finish(&mut self) -> io::Result<()> {
        if let Socket::Tls(stream) = &mut self.socket {
            stream.conn.send_close_notify();
            stream.flush()?;
        }
        self.tcp().shutdown(Shutdown::Write)
    }

    /// Reads once; `false` at the end of the connection, however it ended.
    fn read(&mut self, deadline: Instant) -> io::Result<bool> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let message = format!("no more in time after {:?}", self.received());
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        self.tcp().set_read_timeout(Some(left))?;
        let mut buffer = [0; READ_BYTES];
        let result = match &mut self.socket {
            Socket::Plain(socket) => socket.read(&mut buffer),
            Socket::Tls(stream) => stream.read(&mut buffer),
        };
        match result {
            Ok(length) => {
                self.received.extend_from_slice(&buffer[..length]);
                Ok(length > 0)
            }
            Err(error) if is_timeout(&error) => Ok(true),
            Err(error) if is_broken(&error) || error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn tcp(&mut self) -> &mut TcpStream {
        match &mut self.socket {
            Socket::Plain(socket) => socket,
            Socket::Tls(stream) => &mut stream.sock,
        }
    }
}

fn handshake(
    socket: TcpStream,
    domain: &str,
    config: &Arc<ClientConfig>,
) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let name = ServerName::try_from(domain.to_owned())
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let connection = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(connection, socket))
}
