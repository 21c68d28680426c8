//! A live upgrade: a process hands its sessions, with their sockets, to the process of another binary.
//!
//! ```text
//!  the old one: stop_accepting ─► freeze ─► hand_over ──bytes, descriptors──► TakeOver::add_group, add_far … ─► (all is read)
//!               take_back, thaw ◄── the new one fails, or hangs                       │
//!               close_for_successor ─► (it may go on) ─────────────────────────► Server::start_after
//! ```
//!
//! Until the store is closed for the successor nothing has happened that cannot be undone: the old process still has every socket
//! and the value of every session, and takes them back as the successor would have taken them. docs/adr/0020 says why it is like this.
//!
//! A node of a cell goes on as the same node, of the same epoch (`far`): the others notice a pause of its bus.
//!
//! A connection under TLS 1.2 stays on the record layer of the old process, which relays what is inside of it ([`Relays`]).

mod far;
mod relay;
mod takeover;

pub use crate::listen::ListenerKind;
pub use relay::Relays;
pub use takeover::{TakeOver, Unusable};

pub(crate) use far::{HandedFar, LeftFar, LeftRelay};
pub(crate) use takeover::{ForShard, Handed, TakenOver, TakenRelay};

use crate::cell::Far;
use crate::conn::Conn;
use carillon_core::form::{Form, Writer};
use socket2::Socket;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::SyncSender;

/// Sessions that a shard gave away, with their connections.
pub(crate) struct HandedPart {
    /// The shard.
    pub(crate) shard: u16,
    /// The sessions, as the core wrote them.
    pub(crate) bytes: Vec<u8>,
    pub(crate) sessions: u32,
    /// When that was, on the system's monotonic clock, in milliseconds.
    pub(crate) written_ms: u64,
    /// The connections of those that have one, in the order of the sessions; none for one that is gone meanwhile.
    pub(crate) conns: Vec<Option<HandedConn>>,
}

/// A connection that is given away.
pub(crate) enum HandedConn {
    /// With its socket.
    Here(Box<HandedSocket>),
    /// Its socket is on another node.
    Far(Far),
}

/// A connection with its socket.
pub(crate) struct HandedSocket {
    pub(crate) conn: Conn,
    /// Both ends of the way over which this process relays it, where its record layer cannot go.
    pub(crate) relay: Option<(Socket, Socket)>,
}

/// What a shard gives away.
pub(crate) enum ShardHandover {
    /// Sessions.
    Group(HandedPart),
    /// In a cell, first, what it has for and of other nodes.
    Far(Box<HandedFar>),
}

impl ShardHandover {
    /// The shard that gave it.
    pub(crate) fn shard(&self) -> u16 {
        match self {
            ShardHandover::Group(part) => part.shard,
            ShardHandover::Far(far) => far.shard,
        }
    }

    /// Its connections whose sockets are here.
    pub(crate) fn into_sockets(self) -> Vec<HandedSocket> {
        let here = |conn: HandedConn| match conn {
            HandedConn::Here(here) => Some(*here),
            HandedConn::Far(_) => None,
        };
        match self {
            ShardHandover::Group(part) => part.conns.into_iter().flatten().filter_map(here).collect(),
            ShardHandover::Far(far) => far.relays.into_iter().map(|(_, conn)| conn).collect(),
        }
    }
}

/// What is sent to the other process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenKind {
    /// It goes to [`TakeOver::add_group`].
    Group,
    /// It goes to [`TakeOver::add_far`].
    Far,
}

/// Where shards put what they give away.
pub(crate) type HandedSink = SyncSender<ShardHandover>;

/// What stands in front of a connection: it is gone meanwhile, its socket comes along, or its socket is on another node.
const WAY_GONE: u8 = 0;
const WAY_HERE: u8 = 1;
const WAY_FAR: u8 = 2;

/// What stands in front of the connections of a group.
pub(crate) struct Head {
    pub(crate) shard: u16,
    pub(crate) sessions: u32,
    pub(crate) written_ms: u64,
    pub(crate) bytes: Vec<u8>,
    /// How many connections follow, those that are gone included.
    pub(crate) conns: u32,
}

carillon_core::form! { struct Head { shard, sessions, written_ms, bytes, conns } }

impl HandedPart {
    /// The descriptors of its connections.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.conns.iter().flatten().filter_map(HandedConn::here).map(|here| here.socket().as_fd()).collect()
    }

    /// Everything but the descriptors.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Writer::new(0);
        let HandedPart { shard, bytes, sessions, written_ms, conns } = self;
        let count = conns.len() as u32;
        Head {
            shard: *shard,
            sessions: *sessions,
            written_ms: *written_ms,
            bytes: bytes.clone(),
            conns: count,
        }
        .write(&mut out);
        for handed in conns {
            match handed {
                None => out.tag(WAY_GONE),
                Some(HandedConn::Here(here)) => {
                    out.tag(WAY_HERE);
                    here.conn.write_form(&mut out);
                }
                Some(HandedConn::Far(far)) => {
                    out.tag(WAY_FAR);
                    far.write(&mut out);
                }
            }
        }
        out.finish()
    }
}

impl HandedConn {
    /// With its socket, if that is here.
    pub(crate) fn here(&self) -> Option<&HandedSocket> {
        match self {
            HandedConn::Here(here) => Some(here),
            HandedConn::Far(_) => None,
        }
    }
}

impl HandedSocket {
    /// The descriptor for the successor.
    pub(crate) fn socket(&self) -> &Socket {
        self.relay.as_ref().map_or(&self.conn.socket, |(_, theirs)| theirs)
    }
}

/// The system's monotonic clock, which all processes share, in milliseconds.
pub(crate) fn system_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1000 + u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000_000
}
