//! One thread: a listener, its connections, and the loop that sends an item to all of them.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use carillon_server::tls::Settings;
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token, Waker};
use slab::Slab;
use socket2::{Domain, Socket, Type};

use crate::connection::{Connection, Gone};
use crate::talk::{self, Said, Stage};

const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;

/// An item for everyone: the text before each recipient's name, and the text after it.
type Item = Arc<(Vec<u8>, Vec<u8>)>;

/// A way to another thread.
#[derive(Clone)]
pub(crate) struct Peer {
    items: Sender<Item>,
    waker: Arc<Waker>,
}

/// A thread's listener and connections.
pub(crate) struct Reactor {
    poll: Poll,
    listener: TcpListener,
    connections: Slab<Connection>,
    /// Connections by bare JID.
    names: HashMap<Vec<u8>, usize>,
    items: Receiver<Item>,
    peer: Peer,
    tls: Settings,
    text: Vec<u8>,
    sealed: Vec<u8>,
}

impl Reactor {
    /// Listens beside the others of the same address.
    pub(crate) fn listen(address: SocketAddr, tls: Settings) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.set_reuse_port(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let mut listener = TcpListener::from_std(socket.into());
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let (sender, items) = channel();
        Ok(Self {
            poll,
            listener,
            connections: Slab::new(),
            names: HashMap::new(),
            items,
            peer: Peer { items: sender, waker },
            tls,
            text: Vec::new(),
            sealed: Vec::new(),
        })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// A way to this thread.
    pub(crate) fn peer(&self) -> Peer {
        self.peer.clone()
    }

    /// Serves for ever.
    pub(crate) fn run(mut self, peers: &[Peer]) {
        let mut events = Events::with_capacity(1024);
        let mut scratch = vec![0; 64 * 1024];
        loop {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
                Ok(()) => {}
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept(),
                    WAKER => {
                        while let Ok(item) = self.items.try_recv() {
                            self.send_to_all(&item);
                        }
                    }
                    Token(at) => self.serve(at, event.is_writable(), &mut scratch, peers),
                }
            }
        }
    }

    fn accept(&mut self) {
        while let Ok((socket, _)) = self.listener.accept() {
            let _ = socket.set_nodelay(true);
            let entry = self.connections.vacant_entry();
            let token = Token(entry.key());
            let connection = entry.insert(Connection::new(socket));
            let interest = Interest::READABLE | Interest::WRITABLE;
            if self.poll.registry().register(connection.socket(), token, interest).is_err() {
                self.connections.remove(token.0);
            }
        }
    }

    fn serve(&mut self, at: usize, writable: bool, scratch: &mut [u8], peers: &[Peer]) {
        let Some(connection) = self.connections.get_mut(at) else { return };
        let flushed = if writable { connection.flush() } else { Ok(()) };
        if flushed.is_err() || connection.read(scratch).is_err() {
            return self.forget(at);
        }
        let mut text = std::mem::take(&mut connection.text);
        let mut done = 0;
        while let Some((length, said)) = talk::first(&text[done..]) {
            if self.answer(at, said, &text[done..done + length], peers).is_err() {
                return self.forget(at);
            }
            done += length;
        }
        if done < text.len() {
            text.drain(..done);
            self.connections[at].text = text;
        }
    }

    fn answer(&mut self, at: usize, said: Said, unit: &[u8], peers: &[Peer]) -> Result<(), Gone> {
        let connection = &mut self.connections[at];
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        match said {
            Said::Header => text.extend_from_slice(talk::features(connection.stage)),
            Said::StartTls => text.extend_from_slice(talk::PROCEED),
            Said::Auth => {
                connection.stage = Stage::Known;
                connection.jid = name(unit);
                self.names.insert(connection.jid.clone(), at);
                text.extend_from_slice(talk::SUCCESS);
            }
            Said::Bind => {
                connection.stage = Stage::Bound;
                connection.jid.extend_from_slice(b"/load");
                let id = talk::attribute(unit, b"id=").unwrap_or_default();
                talk::result(id, Some(&connection.jid), &mut text);
            }
            Said::Publish | Said::Request => {
                talk::result(talk::attribute(unit, b"id=").unwrap_or_default(), None, &mut text);
            }
            Said::Close => text.extend_from_slice(talk::CLOSE),
            Said::Message | Said::Other => {}
        }
        let sent = if text.is_empty() { Ok(()) } else { connection.send(&text, &mut self.sealed) };
        self.text = text;
        sent?;
        match said {
            Said::StartTls => self.connections[at].begin_tls(&self.tls),
            Said::Message => self.forward(unit),
            Said::Publish => {
                let item = Arc::new(talk::event(unit));
                for peer in peers {
                    let _ = peer.items.send(Arc::clone(&item));
                    let _ = peer.waker.wake();
                }
            }
            Said::Close => return Err(Gone),
            _ => {}
        }
        Ok(())
    }

    /// A message goes on as it came, to the connection of this thread whose name it has.
    fn forward(&mut self, unit: &[u8]) {
        let to = talk::attribute(unit, b"to=").unwrap_or_default();
        let bare = to.split(|b| *b == b'/').next().unwrap_or_default();
        let Some(connection) = self.names.get(bare).and_then(|at| self.connections.get_mut(*at)) else {
            return;
        };
        // Whoever is gone is noticed by the next read.
        let _ = connection.send(unit, &mut self.sealed);
    }

    fn send_to_all(&mut self, item: &Item) {
        let (before, after) = &**item;
        for (_, connection) in &mut self.connections {
            if connection.stage == Stage::Bound {
                self.text.clear();
                self.text.extend_from_slice(before);
                self.text.extend_from_slice(&connection.jid);
                self.text.extend_from_slice(after);
                let _ = connection.send(&self.text, &mut self.sealed);
            }
        }
    }

    fn forget(&mut self, at: usize) {
        let mut connection = self.connections.remove(at);
        let _ = self.poll.registry().deregister(connection.socket());
        if let Some(bare) = connection.jid.split(|b| *b == b'/').next()
            && self.names.get(bare) == Some(&at)
        {
            self.names.remove(bare);
        }
    }
}

/// The bare JID of whoever logs in by PLAIN: base64 of `\0name\0password`.
fn name(auth: &[u8]) -> Vec<u8> {
    let encoded = talk::between(auth, b">", b"<").unwrap_or_default();
    let decoded = STANDARD.decode(encoded).unwrap_or_default();
    let user = decoded.split(|b| *b == 0).nth(1).unwrap_or_default();
    [user, b"@localhost"].concat()
}
