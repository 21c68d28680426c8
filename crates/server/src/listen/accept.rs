//! Accepting connections, without a busy loop when the descriptors run out.

use super::service::Service;
use carillon_core::model::Mono;
use mio::net::TcpListener;
use socket2::Socket;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

/// A listening socket of a shard.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) service: Service,
    /// Connections from a trusted proxy begin with a PROXY header.
    pub(crate) is_proxied: bool,
    state: Arrivals,
    /// Until when it says no more that there are no descriptors.
    silent_until: Mono,
}

/// Whether there are connections to accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrivals {
    /// None; an edge will announce one.
    Dry,
    /// There may be some.
    Ready,
    /// There are, but no descriptor for them; accepting is tried again at this time.
    Starved(Mono),
}

/// What became of an attempt to accept.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// A connection and its peer's address.
    Conn(Socket, IpAddr),
    /// A connection failed before it was accepted.
    Lost,
    /// A connection was refused, because there is no descriptor for it.
    TurnedAway,
    /// There is no connection now.
    Nothing,
}

/// A spare descriptor for the moment when there is no other: it is used to accept a connection and close it, instead of
/// leaving the peer in a queue that nobody serves.
#[derive(Debug)]
pub(crate) struct SpareDescriptor(Option<File>);

impl SpareDescriptor {
    /// Opens the spare descriptor.
    pub(crate) fn new() -> SpareDescriptor {
        SpareDescriptor(File::open("/dev/null").ok())
    }
}

impl Listener {
    pub(super) fn new(socket: Socket, service: Service, is_proxied: bool) -> Listener {
        Listener {
            socket: TcpListener::from_std(std::net::TcpListener::from(socket)),
            service,
            is_proxied,
            state: Arrivals::Dry,
            silent_until: Mono(0),
        }
    }

    /// The poll reported an edge.
    pub(crate) fn edge(&mut self) {
        self.state = Arrivals::Ready;
    }

    /// Whether [`Listener::accept`] is worth calling.
    pub(crate) fn is_ready(&mut self, now: Mono) -> bool {
        if let Arrivals::Starved(until) = self.state
            && until <= now
        {
            self.state = Arrivals::Ready;
        }
        self.state == Arrivals::Ready
    }

    /// When accepting is to be tried again, if there was no descriptor.
    pub(crate) fn retry_at(&self) -> Option<Mono> {
        match self.state {
            Arrivals::Starved(until) => Some(until),
            Arrivals::Dry | Arrivals::Ready => None,
        }
    }

    /// Accepts one connection.
    pub(crate) fn accept(&mut self, spare: &mut SpareDescriptor, now: Mono) -> Accepted {
        if spare.0.is_none() {
            *spare = SpareDescriptor::new();
        }
        match self.socket.accept() {
            Ok((stream, from)) => taken(stream, from),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.state = Arrivals::Dry;
                Accepted::Nothing
            }
            Err(error) if is_out_of_descriptors(&error) => self.turn_away(spare, now, &error),
            // The connection failed before it was accepted (accept(2) lists a dozen ways); the next one may be fine.
            Err(_) => Accepted::Lost,
        }
    }

    fn turn_away(&mut self, spare: &mut SpareDescriptor, now: Mono, error: &io::Error) -> Accepted {
        // Once for all who come meanwhile, who are counted by reason.
        if self.silent_until <= now {
            tracing::error!(%error, "no descriptor for a new connection; raise the limit of open files");
            self.silent_until = now.plus(SILENT_MS);
        }
        let spent = spare.0.take().is_some();
        let refused = spent && self.socket.accept().is_ok();
        *spare = SpareDescriptor::new();
        if !refused {
            self.state = Arrivals::Starved(now.plus(STARVED_MS));
            return Accepted::Nothing;
        }
        Accepted::TurnedAway
    }
}

fn taken(stream: mio::net::TcpStream, from: SocketAddr) -> Accepted {
    Accepted::Conn(Socket::from(OwnedFd::from(stream)), from.ip().to_canonical())
}

/// EMFILE and ENFILE; ENOBUFS and ENOMEM, which do not go away at once either.
fn is_out_of_descriptors(error: &io::Error) -> bool {
    const ENOMEM: i32 = 12;
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    const ENOBUFS: i32 = 105;
    matches!(error.raw_os_error(), Some(ENOMEM | ENFILE | EMFILE | ENOBUFS))
}

const STARVED_MS: u64 = 100;
/// A listener says that there are no descriptors, and then nothing for so long.
const SILENT_MS: u64 = 10_000;
