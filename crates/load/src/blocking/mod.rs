//! One client that the calling thread drives over a socket with timeouts: for tests, demonstrations and publishers.
//!
//! Waiting for one event never loses another: what arrives meanwhile is kept in order for later calls.

mod raw;
mod socket;
mod wait;

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use carillon_wire::jid::Jid;
use carillon_wire::stanza::Stanza;

use crate::client::{self, ClientEvent, End, Entropy, Options, Outbox, Resumable, SendOutcome};
pub use raw::Raw;
use socket::{READ_BYTES, WRITE_TIMEOUT, is_broken, is_timeout};

/// The time limit of [`Client::connect`] for the whole login.
pub const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);
/// The shortest time to wait for the network.
const READ_TIME: Duration = Duration::from_millis(1);

/// A logged-in client.
pub struct Client {
    connection: Connection,
    jid: Jid,
}

/// Why a client could not log in.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address cannot be resolved or reached.
    #[error("cannot connect: {0}")]
    Connect(#[source] io::Error),
    /// The login was not complete in time.
    #[error("no login within {:.1} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// The socket failed.
    #[error("connection: {0}")]
    Io(#[source] io::Error),
    /// The stream ended before the login was complete.
    #[error("login: {0}")]
    Ended(End),
}

/// Why nothing more can be received or sent.
#[derive(Debug, thiserror::Error)]
pub enum StreamLost {
    /// The stream is over.
    #[error("the stream is over: {0}")]
    Ended(End),
    /// The socket failed.
    #[error("connection: {0}")]
    Io(#[from] io::Error),
    /// The awaited event did not occur in time.
    #[error("nothing of that kind within {:.1} s", .0.as_secs_f64())]
    Timeout(Duration),
}

/// The result of [`Client::recv_or_interrupt`].
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it is returned, and taken apart at once")]
pub enum Received {
    /// An event on the stream.
    Event(ClientEvent),
    /// The descriptor became readable.
    Interrupted,
    /// Neither in time: a timeout.
    Nothing,
}

/// A stream with its socket, logged in or not.
struct Connection {
    socket: TcpStream,
    machine: client::Client,
    outbox: Outbox,
    events: VecDeque<ClientEvent>,
    end: Option<End>,
    serial: u64,
}

impl Client {
    /// Connects and logs in, within [`LOGIN_TIMEOUT`].
    pub fn connect(address: impl ToSocketAddrs, options: Options) -> Result<Self, ConnectError> {
        Self::connect_within(address, options, LOGIN_TIMEOUT)
    }

    /// Connects and logs in: returns when the resource is bound, and stream management on if it was asked for.
    pub fn connect_within(
        address: impl ToSocketAddrs,
        options: Options,
        timeout: Duration,
    ) -> Result<Self, ConnectError> {
        Self::log_in(address, options, None, timeout)
    }

    /// Connects and resumes an earlier stream (XEP-0198 §5), or begins a new session if that is not possible, within
    /// [`LOGIN_TIMEOUT`]. The events say which.
    pub fn resume(
        address: impl ToSocketAddrs,
        options: Options,
        resumable: Box<Resumable>,
    ) -> Result<Self, ConnectError> {
        Self::log_in(address, options, Some(resumable), LOGIN_TIMEOUT)
    }

    fn log_in(
        address: impl ToSocketAddrs,
        options: Options,
        resumable: Option<Box<Resumable>>,
        timeout: Duration,
    ) -> Result<Self, ConnectError> {
        let deadline = Instant::now() + timeout;
        let socket = reach(address, timeout)?;
        let mut connection = Connection::new(socket, options, resumable).map_err(ConnectError::Io)?;
        loop {
            if let Some(jid) = connection.machine.ready() {
                let jid = jid.clone();
                return Ok(Self { connection, jid });
            }
            if let Some(end) = connection.end {
                return Err(ConnectError::Ended(end));
            }
            if !connection.pump(deadline).map_err(ConnectError::Io)? {
                return Err(ConnectError::Timeout(timeout));
            }
        }
    }

    /// The full JID that the server bound.
    pub fn jid(&self) -> &Jid {
        &self.jid
    }

    /// The next event, including those of the login; `None` on timeout. An error after [`ClientEvent::Closed`].
    pub fn recv(&mut self, timeout: Duration) -> Result<Option<ClientEvent>, StreamLost> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(event) = self.connection.events.pop_front() {
                return Ok(Some(event));
            }
            self.connection.check_open()?;
            if !self.connection.pump(deadline)? {
                return Ok(None);
            }
        }
    }

    /// The next event, unless a descriptor becomes readable first: a pipe that a signal writes to, for example.
    pub fn recv_or_interrupt(
        &mut self,
        interrupt: &impl AsFd,
        timeout: Duration,
    ) -> Result<Received, StreamLost> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(event) = self.connection.events.pop_front() {
                return Ok(Received::Event(event));
            }
            self.connection.check_open()?;
            match wait::either(&self.connection.socket, interrupt, deadline)? {
                wait::Readable::Second => return Ok(Received::Interrupted),
                wait::Readable::Neither => return Ok(Received::Nothing),
                // The socket is readable, so the read does not wait until the deadline.
                wait::Readable::First => self.connection.pump(deadline.max(Instant::now() + READ_TIME))?,
            };
        }
    }

    /// The first stanza that is wanted, among those kept and those to come.
    pub fn wait_for(
        &mut self,
        mut wanted: impl FnMut(&Stanza) -> bool,
        timeout: Duration,
    ) -> Result<Stanza, StreamLost> {
        let wanted = |event: &ClientEvent| matches!(event, ClientEvent::Stanza(stanza) if wanted(stanza));
        match self.wait_for_event(wanted, timeout)? {
            ClientEvent::Stanza(stanza) => Ok(stanza),
            other => unreachable!("only stanzas are wanted, not {other:?}"),
        }
    }

    /// The first event that is wanted, among those kept and those to come.
    pub fn wait_for_event(
        &mut self,
        mut wanted: impl FnMut(&ClientEvent) -> bool,
        timeout: Duration,
    ) -> Result<ClientEvent, StreamLost> {
        let deadline = Instant::now() + timeout;
        let mut seen = 0;
        loop {
            let events = &mut self.connection.events;
            let found = events.iter().skip(seen).position(&mut wanted);
            if let Some(event) = found.and_then(|at| events.remove(seen + at)) {
                return Ok(event);
            }
            seen = events.len();
            self.connection.check_open()?;
            if !self.connection.pump(deadline)? {
                return Err(StreamLost::Timeout(timeout));
            }
        }
    }

    /// Sends a stanza. On a stream that can be resumed it waits while too much is unacknowledged.
    pub fn send(&mut self, stanza: &Stanza) -> Result<(), StreamLost> {
        let deadline = Instant::now() + WRITE_TIMEOUT;
        loop {
            self.connection.check_open()?;
            let sending = self.connection.machine.send(stanza, &mut self.connection.outbox);
            self.connection.flush()?;
            if sending != SendOutcome::Full {
                return Ok(());
            }
            if !self.connection.pump(deadline)? {
                return Err(StreamLost::Timeout(WRITE_TIMEOUT));
            }
        }
    }

    /// Sends a stanza given as text.
    pub fn send_xml(&mut self, stanza: &str) -> Result<(), StreamLost> {
        self.connection.check_open()?;
        self.connection.machine.send_xml(stanza, &mut self.connection.outbox);
        Ok(self.connection.flush()?)
    }

    /// Sends bytes inside TLS and, on WebSocket, as one message.
    pub fn send_raw(&mut self, bytes: &[u8]) -> Result<(), StreamLost> {
        self.connection.check_open()?;
        self.connection.machine.send_raw(bytes, &mut self.connection.outbox);
        Ok(self.connection.flush()?)
    }

    /// Sends bytes below TLS and WebSocket, as a broken network or an attacker could.
    pub fn send_beneath(&mut self, bytes: &[u8]) -> Result<(), StreamLost> {
        Ok(self.connection.socket.write_all(bytes)?)
    }

    /// Sends an IQ request and waits for its result or error. Without an id it is given one.
    pub fn iq(&mut self, mut request: Stanza, timeout: Duration) -> Result<Stanza, StreamLost> {
        let id = request.id.get_or_insert_with(|| self.connection.next_id()).clone();
        self.send(&request)?;
        self.wait_for(|stanza| client::stanzas::is_response(stanza, &id), timeout)
    }

    /// Closes the stream and waits for the server to do the same.
    pub fn close(mut self, timeout: Duration) -> Result<(), StreamLost> {
        self.connection.machine.close(&mut self.connection.outbox);
        self.connection.flush()?;
        let deadline = Instant::now() + timeout;
        while self.connection.end.is_none() {
            if !self.connection.pump(deadline)? {
                return Err(StreamLost::Timeout(timeout));
            }
        }
        Ok(())
    }

    /// Drops the connection without closing the stream, like a device that loses its network. Gives what is needed to resume
    /// the stream, if the server allows that.
    pub fn abort(mut self) -> Option<Box<Resumable>> {
        // A reset, not an orderly end: the kernel discards its buffers.
        let socket = socket2::SockRef::from(&self.connection.socket);
        let _ = socket.set_linger(Some(Duration::ZERO));
        self.connection.machine.take_resumable()
    }
}

impl Connection {
    fn new(socket: TcpStream, options: Options, resumable: Option<Box<Resumable>>) -> io::Result<Self> {
        let entropy = Entropy::from_system()?;
        socket.set_nodelay(true)?;
        socket.set_write_timeout(Some(WRITE_TIMEOUT))?;
        let mut connection = Self {
            socket,
            machine: match resumable {
                Some(resumable) => client::Client::resuming(options, entropy, resumable),
                None => client::Client::new(options, entropy),
            },
            outbox: Outbox::default(),
            events: VecDeque::new(),
            end: None,
            serial: 0,
        };
        connection.machine.start(&mut connection.outbox);
        connection.flush()?;
        Ok(connection)
    }

    /// Reads once and processes the bytes; `false` on timeout.
    fn pump(&mut self, deadline: Instant) -> io::Result<bool> {
        let left = deadline.saturating_duration_since(Instant::now());
        // A timeout of zero would be an error.
        self.socket.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let mut buffer = [0; READ_BYTES];
        match self.socket.read(&mut buffer) {
            Ok(0) => self.machine.receive_end(&mut self.outbox),
            Ok(length) => self.machine.receive(&buffer[..length], &mut self.outbox),
            Err(error) if is_timeout(&error) => return Ok(left > Duration::ZERO && Instant::now() < deadline),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                self.machine.receive_end(&mut self.outbox);
            }
            Err(error) => return Err(error),
        }
        self.flush()?;
        Ok(true)
    }

    fn flush(&mut self) -> io::Result<()> {
        let written = self.socket.write_all(&self.outbox.bytes);
        self.outbox.bytes.clear();
        for event in self.outbox.events.drain(..) {
            if let ClientEvent::Closed(end) = &event {
                self.end = Some(end.clone());
            }
            self.events.push_back(event);
        }
        match written {
            // The peer has closed the connection; reading shows what it sent last.
            Err(error) if is_broken(&error) => Ok(()),
            other => other,
        }
    }

    fn check_open(&self) -> Result<(), StreamLost> {
        self.end.as_ref().map_or(Ok(()), |end| Err(StreamLost::Ended(end.clone())))
    }

    fn next_id(&mut self) -> Box<str> {
        self.serial += 1;
        format!("iq-{}", self.serial).into()
    }
}

/// Connects to the first address of a name that accepts: `localhost` may be `::1` where the server is on 127.0.0.1.
fn reach(address: impl ToSocketAddrs, timeout: Duration) -> Result<TcpStream, ConnectError> {
    let deadline = Instant::now() + timeout;
    let mut error = io::ErrorKind::NotFound.into();
    for address in address.to_socket_addrs().map_err(ConnectError::Connect)? {
        // A timeout of zero would be an error.
        let left = deadline.saturating_duration_since(Instant::now()).max(READ_TIME);
        match TcpStream::connect_timeout(&address, left) {
            Ok(socket) => return Ok(socket),
            Err(refused) => error = refused,
        }
    }
    Err(ConnectError::Connect(error))
}
