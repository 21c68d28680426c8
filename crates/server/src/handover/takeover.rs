//! The side of the new process: what it is given is read as a whole before it says that it has it.

use super::{Head, LeftFar, LeftRelay, WAY_FAR, WAY_GONE, WAY_HERE, system_ms};
use crate::cell::{Far, Relay};
use crate::clock::Clock;
use crate::conn::{Carried, Conn};
use crate::listen::{Admission, Inherited, ListenerKind};
use carillon_core::form::{self, Form, Reader, Unreadable};
use carillon_core::machine::{self, HandedSession, HandedTrace};
use carillon_core::model::{ConnId, seed_maps};
use carillon_core::ports::Directory;
use socket2::Socket;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// What a process takes over from the one before it.
pub struct TakeOver {
    pub(crate) clock: Clock,
    pub(crate) listeners: Vec<Inherited>,
    sessions: Vec<Taken>,
    traces: Vec<HandedTrace>,
    far: Vec<TakenFar>,
}

/// Why something cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// The sessions cannot be read.
    #[error("the sessions cannot be read: {0}")]
    Unreadable(#[from] Unreadable),
    /// There are not as many descriptors as connections.
    #[error("{descriptors} descriptors came with {connections} connections")]
    Descriptors {
        /// Descriptors that came.
        descriptors: usize,
        /// Connections that need one.
        connections: usize,
    },
    /// A listening socket is none.
    #[error("a listening socket is not bound")]
    Listener,
    /// The system has no randomness.
    #[error("no randomness: {0}")]
    Random(io::Error),
}

impl From<form::Malformed> for Unusable {
    fn from(malformed: form::Malformed) -> Unusable {
        Unusable::Unreadable(malformed.into())
    }
}

/// A session that came, and its connection.
struct Taken {
    session: HandedSession,
    conn: Option<TakenConn>,
}

/// What was read of a connection.
enum Read {
    Here(Carried),
    Far(Far),
}

/// A connection that came.
enum TakenConn {
    Here(Socket, Carried),
    Far(Far),
}

/// What a shard had for and of other nodes.
struct TakenFar {
    shard: u16,
    left: LeftFar,
    relays: Vec<(LeftRelay, Socket, Carried)>,
}

/// What is for a shard.
#[derive(Default)]
pub(crate) struct ForShard {
    pub(crate) traces: Vec<HandedTrace>,
    pub(crate) sessions: Vec<Handed>,
    /// In a cell, what the shard of this number had for and of other nodes.
    pub(crate) far: Option<LeftFar>,
    pub(crate) relays: Vec<TakenRelay>,
}

/// A connection for a shard whose session is on another node.
pub(crate) struct TakenRelay {
    pub(crate) id: ConnId,
    pub(crate) relay: Relay,
    pub(crate) conn: Conn,
    /// The session waits to hear that what it wrote is gone, which it is.
    pub(crate) awaits_flush: bool,
}

/// A session for a shard, and its connection.
pub(crate) struct Handed {
    pub(crate) session: HandedSession,
    pub(crate) conn: Option<TakenOver>,
    /// The core waits to hear that what it wrote is gone, which it is.
    pub(crate) awaits_flush: bool,
}

/// A connection of a session that was handed over.
pub(crate) enum TakenOver {
    /// With its socket.
    Here(Box<Conn>),
    /// Its socket is on another node.
    Far(Far),
}

impl TakeOver {
    /// Nothing yet. The clock of the node begins here.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn begin() -> Result<TakeOver, Unusable> {
        // Before the first hash table of a session is read.
        seed_maps(getrandom::u64().map_err(|error| Unusable::Random(io::Error::other(error)))?);
        Ok(TakeOver::nothing())
    }

    /// What a process has that takes nothing over.
    pub(crate) fn nothing() -> TakeOver {
        let clock = Clock::start();
        TakeOver { clock, listeners: Vec::new(), sessions: Vec::new(), traces: Vec::new(), far: Vec::new() }
    }

    /// A listening socket.
    ///
    /// # Errors
    /// If it is none.
    pub fn add_listener(&mut self, kind: ListenerKind, socket: OwnedFd) -> Result<(), Unusable> {
        self.listeners.push(Inherited::new(kind, socket).ok_or(Unusable::Listener)?);
        Ok(())
    }

    /// A group of sessions, with the descriptors of their connections in order.
    ///
    /// # Errors
    /// If it is not what [`Server::hand_over`](crate::Server::hand_over) gives, or of a version that this release does not read.
    pub fn add_group(&mut self, bytes: &[u8], descriptors: Vec<OwnedFd>) -> Result<(), Unusable> {
        let mut input = Reader::new(bytes, form::Clock::default())?;
        let head = Head::read(&mut input)?;
        let elapsed_ms = system_ms().saturating_sub(head.written_ms);
        let machine::Handed { sessions, traces } =
            machine::Handed::read(&head.bytes, self.clock.mono(), elapsed_ms)?;
        let count = descriptors.len();
        let mut descriptors = descriptors.into_iter().map(Socket::from);
        let mut conns = Vec::new();
        for _ in 0..head.conns {
            conns.push(match input.tag()? {
                WAY_GONE => None,
                WAY_HERE => Some(Read::Here(Carried::read(&mut input)?)),
                WAY_FAR => Some(Read::Far(Far::read(&mut input)?)),
                _ => return Err(input.unknown_tag("no connection").into()),
            });
        }
        input.finish()?;
        let connections = conns.iter().flatten().filter(|conn| matches!(conn, Read::Here(_))).count();
        let are_all =
            connections == count && sessions.iter().filter(|s| s.is_connected()).count() == conns.len();
        if !are_all {
            return Err(Unusable::Descriptors { descriptors: count, connections });
        }
        self.traces.extend(traces);
        let mut conns = conns.into_iter();
        for session in sessions {
            let read = session.is_connected().then(|| conns.next().flatten()).flatten();
            let conn = read.and_then(|read| match read {
                Read::Here(carried) => Some(TakenConn::Here(descriptors.next()?, carried)),
                Read::Far(far) => Some(TakenConn::Far(far)),
            });
            self.sessions.push(Taken { session, conn });
        }
        Ok(())
    }

    /// What a shard had for and of other nodes, with the descriptors of connections whose sessions are there.
    ///
    /// # Errors
    /// As [`TakeOver::add_group`].
    pub fn add_far(&mut self, bytes: &[u8], descriptors: Vec<OwnedFd>) -> Result<(), Unusable> {
        let mut input = Reader::new(bytes, form::Clock::default())?;
        let (shard, left) = (u16::read(&mut input)?, LeftFar::read(&mut input)?);
        let (count, connections) = (descriptors.len(), input.count()?);
        if connections != count {
            return Err(Unusable::Descriptors { descriptors: count, connections });
        }
        let mut relays = Vec::with_capacity(count);
        for descriptor in descriptors {
            let relay = LeftRelay::read(&mut input)?;
            relays.push((relay, Socket::from(descriptor), Carried::read(&mut input)?));
        }
        input.finish()?;
        self.far.push(TakenFar { shard, left, relays });
        Ok(())
    }

    /// How many sessions came.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// How many of them have a connection.
    pub fn connections(&self) -> usize {
        let of_sessions =
            self.sessions.iter().filter(|taken| matches!(taken.conn, Some(TakenConn::Here(..))));
        of_sessions.count() + self.far.iter().map(|far| far.relays.len()).sum::<usize>()
    }

    /// What is for each shard. Sessions that are at home in any go to one after the other.
    pub(crate) fn into_shards(
        self,
        count: u16,
        directory: &dyn Directory,
        admission: &Arc<Admission>,
    ) -> Vec<ForShard> {
        let mut shards: Vec<ForShard> = (0..count).map(|_| ForShard::default()).collect();
        for trace in self.traces {
            shards[usize::from(trace.home(directory).shard.0)].traces.push(trace);
        }
        let mut in_turn = (0..usize::from(count)).cycle();
        for Taken { session, conn } in self.sessions {
            let home = session.home(directory).map(|home| usize::from(home.shard.0));
            let shard = home.or_else(|| in_turn.next()).unwrap_or(0);
            let mut awaits_flush = false;
            let conn = conn.map(|conn| match conn {
                TakenConn::Here(socket, carried) => {
                    awaits_flush = carried.awaits_flush;
                    let permit = admission.readmit(carried.place);
                    TakenOver::Here(Box::new(carried.into_conn(socket, permit)))
                }
                TakenConn::Far(far) => TakenOver::Far(far),
            });
            shards[shard].sessions.push(Handed { session, conn, awaits_flush });
        }
        for TakenFar { shard, left, relays } in self.far {
            // A node of a cell goes on with as many shards as it had.
            let Some(of_shard) = shards.get_mut(usize::from(shard)) else { continue };
            of_shard.far = Some(left);
            of_shard.relays.extend(relays.into_iter().map(|(LeftRelay { id, relay }, socket, carried)| {
                let (permit, awaits_flush) = (admission.readmit(carried.place), carried.awaits_flush);
                TakenRelay { id, relay, conn: carried.into_conn(socket, permit), awaits_flush }
            }));
        }
        shards
    }
}
