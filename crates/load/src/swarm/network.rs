//! The sockets of a swarm, and the actions of its handler on them.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carillon_wire::jid::Jid;
use carillon_wire::stanza::Stanza;
use mio::{Events, Interest, Poll, Token};

use super::any_client::{AnyClient, AnyOutbox, Start, SwarmEvent};
use super::connection::{Connection, ConnectionState};
use super::source;
use super::timer::Timer;
use crate::client::{self, Client, Outbox, Resumable, SendOutcome};
use crate::light;

/// The size of the read buffer.
const READ_BYTES: usize = 64 * 1024;
/// The token of the waker; no client has this index.
const WAKER: Token = Token(usize::MAX);
/// The token of the timer; no client has this index either.
const TIMER: Token = Token(usize::MAX - 1);

/// All connections of a swarm.
#[derive(Debug)]
pub struct Network {
    poll: Poll,
    waker: Arc<mio::Waker>,
    timer: Timer,
    targets: Vec<SocketAddr>,
    first: usize,
    connections: Vec<Option<Box<Connection>>>,
    /// Streams without a connection that can be resumed, by the client's index.
    parked: HashMap<usize, Box<Resumable>>,
    outbox: AnyOutbox,
    scratch: Box<[u8]>,
    events: VecDeque<(usize, SwarmEvent)>,
}

/// Wakes a swarm's thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<mio::Waker>);

impl Waker {
    /// Makes the swarm call its handler's tick soon.
    pub fn wake(&self) {
        // It fails only if the poll is gone, and then there is no thread to wake.
        let _ = self.0.wake();
    }
}

impl Network {
    pub(super) fn new(targets: Vec<SocketAddr>, clients: Range<usize>) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(mio::Waker::new(poll.registry(), WAKER)?);
        let timer = Timer::new(poll.registry(), TIMER)?;
        Ok(Self {
            poll,
            waker,
            timer,
            targets,
            first: clients.start,
            connections: clients.map(|_| None).collect(),
            parked: HashMap::new(),
            outbox: AnyOutbox::default(),
            scratch: vec![0; READ_BYTES].into(),
            events: VecDeque::new(),
        })
    }

    /// Sends a stanza as a client.
    pub fn send(&mut self, index: usize, stanza: &Stanza) -> SendOutcome {
        self.act(index, |client, out| client.send(stanza, out)).unwrap_or(SendOutcome::NoSession)
    }

    /// Sends the text of a stanza as a client that is in session.
    pub fn send_xml(&mut self, index: usize, stanza: &str) {
        let _ = self.act(index, |client, out| client.send_xml(stanza, out));
    }

    /// Acts as a client of the light protocol; `false` if it is not in session.
    pub fn with_light_client(
        &mut self,
        index: usize,
        action: impl FnOnce(&light::Client, &mut light::Outbox),
    ) -> bool {
        self.serve(index, |client, out| match client {
            AnyClient::Light(client) => {
                action(client, &mut out.light);
                true
            }
            AnyClient::Xmpp(_) => false,
        })
    }

    /// Closes the stream of a client in session. [`client::ClientEvent::Closed`] follows when the server has done so, too.
    pub fn close(&mut self, index: usize) {
        let _ = self.act(index, Client::close);
    }

    /// Drops a client's connection without closing its stream. No event follows.
    pub fn abort(&mut self, index: usize) {
        let at = index - self.first;
        if let Some(connection) = self.connections[at].take() {
            self.forget(index, *connection);
        }
    }

    /// Connects a client, also one whose stream is over. If its last stream can be resumed, the client asks for that.
    pub fn connect(&mut self, index: usize, start: Start) {
        let at = index - self.first;
        self.abort(index);
        let is_light = matches!(start, Start::Light);
        match self.open(index, start) {
            Ok(connection) => self.connections[at] = Some(connection),
            Err(error) => {
                let kind = error.kind();
                let event = if is_light {
                    SwarmEvent::Light(light::LightEvent::Closed(light::End::Network(kind)))
                } else {
                    SwarmEvent::Xmpp(client::ClientEvent::Closed(client::End::Network(kind)))
                };
                self.events.push_back((index, event));
            }
        }
    }

    /// The full JID of a client in session.
    pub fn jid(&self, index: usize) -> Option<&Jid> {
        match &self.connections[index - self.first].as_ref()?.client {
            AnyClient::Xmpp(client) => client.ready(),
            AnyClient::Light(_) => None,
        }
    }

    /// The full JID at which a client is reached: that of its session, or of its stream that can be resumed.
    pub fn address(&self, index: usize) -> Option<&Jid> {
        self.jid(index).or_else(|| Some(self.parked.get(&index)?.jid()))
    }

    /// Whether a client has a stream without a connection that can be resumed.
    pub fn is_parked(&self, index: usize) -> bool {
        self.parked.contains_key(&index)
    }

    pub(super) fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.waker))
    }

    /// Waits until a socket is ready, `until` has come, or the timeout has expired.
    pub(super) fn wait(
        &mut self,
        events: &mut Events,
        until: Option<Instant>,
        timeout: Duration,
    ) -> io::Result<()> {
        if let Some(until) = until {
            self.timer.set(until)?;
        }
        match self.poll.poll(events, Some(timeout)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                events.clear();
                Ok(())
            }
            other => other,
        }
    }

    pub(super) fn next_event(&mut self) -> Option<(usize, SwarmEvent)> {
        self.events.pop_front()
    }

    /// Serves a socket that is ready.
    pub(super) fn ready(&mut self, event: &mio::event::Event) {
        match event.token() {
            WAKER => return,
            TIMER => return self.timer.expired(),
            _ => {}
        }
        let at = event.token().0;
        let Some(mut connection) = self.connections[at].take() else { return };
        if event.is_writable() || event.is_error() {
            connection.writable(&mut self.outbox);
        }
        if event.is_readable() || event.is_read_closed() {
            let drain = event.is_read_closed() || event.is_error();
            connection.readable(&mut self.scratch, drain, &mut self.outbox);
        }
        self.settle(at, connection);
    }

    fn open(&mut self, index: usize, start: Start) -> io::Result<Box<Connection>> {
        let target = self.targets[index % self.targets.len()];
        let mut socket = source::connect(target, index)?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut socket, Token(index - self.first), interest)?;
        let resumable = self.parked.remove(&index);
        Ok(Box::new(Connection::new(socket, AnyClient::new(start, resumable)?)))
    }

    /// Acts as an XMPP client; `None` if it is not in session.
    fn act<T>(&mut self, index: usize, action: impl FnOnce(&mut Client, &mut Outbox) -> T) -> Option<T> {
        let mut done = None;
        self.serve(index, |client, out| match client {
            AnyClient::Xmpp(client) => {
                done = Some(action(client, &mut out.xmpp));
                true
            }
            AnyClient::Light(_) => false,
        });
        done
    }

    fn serve(&mut self, index: usize, action: impl FnOnce(&mut AnyClient, &mut AnyOutbox) -> bool) -> bool {
        let at = index - self.first;
        if self.connections[at].as_ref().is_none_or(|connection| connection.state != ConnectionState::Ready) {
            return false;
        }
        let Some(mut connection) = self.connections[at].take() else { return false };
        let done = action(&mut connection.client, &mut self.outbox);
        connection.flush(&mut self.outbox);
        self.settle(at, connection);
        done
    }

    /// Puts a connection back after it was served, or drops it if it is over, and collects its events.
    fn settle(&mut self, at: usize, mut connection: Box<Connection>) {
        let index = at + self.first;
        self.events.extend(self.outbox.events().map(|event| (index, event)));
        if connection.client.is_over() {
            return self.forget(index, *connection);
        }
        if connection.state == ConnectionState::LoggingIn && connection.client.is_ready() {
            connection.state = ConnectionState::Ready;
        }
        self.connections[at] = Some(connection);
    }

    /// Drops a connection, and keeps what is needed to resume its stream.
    fn forget(&mut self, index: usize, mut connection: Connection) {
        if let Some(resumable) = connection.client.take_resumable() {
            self.parked.insert(index, resumable);
        }
        // Closing the socket would do the same.
        let _ = self.poll.registry().deregister(connection.socket());
    }
}
