//! Every decision of the server, as a deterministic machine.
//!
//! A [`machine::ShardMachine`] owns its sessions and is told what happens, one [`Input`] at a time, with the time as an argument;
//! what it wants done comes back as [`Effect`]s. It never touches a clock, socket, thread, file, environment or global
//! randomness (`clippy.toml` forbids them), so that the same code runs in the server, in unit tests and in a seeded
//! simulation of the nodes of a cell.
//!
//! Read on in this order: [`Input`] and [`Effect`], the two enums that explain the program; [`pipeline`], the order of the
//! features on one page; [`session`], the states of a connection; [`route`], where a stanza goes; [`topic`], the home of
//! topics; [`light`], the protocol of those who speak no XMPP; [`shard`], the state of a shard; [`machine`], what drives all of it. What
//! may import what is one list: docs/adr/0010.
//!
//! Everything has a home: an account, with all its sessions, lives on the shard that a [`Directory`] names for its
//! bare JID, and a topic on the one for its address. A connection is accepted on any shard and moves, socket and
//! all, to its account's home once it has said whose it is. So every decision about an account or a topic is taken by
//! one thread that owns all there is to know, without a lock (docs/adr/0002, 0029).

#![deny(clippy::indexing_slicing, clippy::string_slice, clippy::unwrap_used)]

pub mod cell;
pub mod command;
pub mod connection;
pub mod effect;
pub mod error;
pub mod event;
pub mod feature_state;
pub mod features;
pub mod form;
pub(crate) mod game;
pub(crate) mod home;
pub mod light;
pub mod machine;
pub mod message;
pub mod model;
pub mod pipeline;
pub mod ports;
pub mod random;
pub mod room;
pub mod route;
pub mod sasl;
pub mod session;
pub mod settings;
pub mod shard;
#[cfg(any(test, feature = "sim"))]
#[expect(
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "only tests run it: a panic is a failed test"
)]
pub mod sim;
pub mod tap;
pub mod topic;

pub use command::ReplyTo;
pub use connection::{Opened, Security};
pub use effect::{Effect, Effects};

use connection::{CarriedClaim, Claimed, Joining, QueueBound};
use message::ShardMessage;
use model::{ConnId, Domains, DrainSlice, NodeId, Ticket};
use ports::{Answer, Derived, Directory};
use sasl::ChannelBinding;
use std::sync::Arc;

/// Something that happened to a shard.
#[derive(Debug)]
pub enum Input<'a> {
    /// A connection was accepted. Its first bytes may follow.
    Opened(Opened),
    /// A connection of the light protocol was accepted, and its TLS is complete where there is any. Its first bytes may
    /// follow.
    OpenedLight {
        /// The connection.
        conn: ConnId,
    },
    /// A player's connection was accepted, and its TLS is complete where there is any. Its first bytes may follow.
    OpenedPlayer {
        /// The connection.
        conn: ConnId,
        /// Whether datagrams may be sent on it ([`Effect::Datagram`]): it is one of QUIC.
        datagrams: bool,
    },
    /// A datagram of a player arrived (RFC 9221). Never given to a connection that is paused.
    PlayerDatagram {
        /// The connection.
        conn: ConnId,
        /// What arrived.
        bytes: &'a [u8],
    },
    /// Bytes of a player arrived: decrypted, and without WebSocket framing. Never given to a connection that is paused.
    PlayerBytes {
        /// The connection.
        conn: ConnId,
        /// What arrived.
        bytes: &'a [u8],
    },
    /// A player's connection moved here from another shard.
    ArrivedPlayer {
        /// Its name on this shard.
        conn: ConnId,
        /// What the player wants.
        joining: Box<Joining>,
    },
    /// The TLS handshake that [`Effect::Secure`] asked for is complete.
    Secured {
        /// The connection.
        conn: ConnId,
        /// What the handshake yields for channel binding.
        binding: ChannelBinding,
    },
    /// Bytes of the XMPP stream arrived: decrypted, and without WebSocket framing. On WebSocket, exactly one message.
    /// Never given to a connection that is paused.
    Bytes {
        /// The connection.
        conn: ConnId,
        /// What arrived.
        bytes: &'a [u8],
    },
    /// The connection is gone: the peer closed it, or [`Effect::Close`] did. No input of the connection follows.
    Closed {
        /// The connection.
        conn: ConnId,
        /// How many of the bytes sent to it the peer's TCP never acknowledged, as in [`Input::Unacked`].
        unacked: u64,
    },
    /// The socket took everything that was sent before [`Effect::WatchFlush`].
    Flushed {
        /// The connection.
        conn: ConnId,
    },
    /// The answer to [`Effect::CountUnacked`].
    Unacked {
        /// The connection.
        conn: ConnId,
        /// How many of the bytes sent to it the peer's TCP has not acknowledged, counted as they are on the wire. Bytes that
        /// the socket has not taken are among them. [`u64::MAX`] when some were dropped, or the socket does not know.
        bytes: u64,
        /// How much the session had been sent when it was counted, as the effect said.
        sent: u32,
    },
    /// The client reads too slowly: too much waits for it.
    Overflowed {
        /// The connection.
        conn: ConnId,
        /// What is full.
        bound: QueueBound,
    },
    /// A connection moved here from another shard, with its session.
    Arrived {
        /// Its name on this shard.
        conn: ConnId,
        /// Its session.
        moving: Box<Claimed>,
    },
    /// A client of another node claims an account whose home is here. Its connection stays there; here it has a name like others.
    Carried {
        /// Its name on this shard.
        conn: ConnId,
        /// The node that it is on.
        via: NodeId,
        /// The claim.
        claim: Box<CarriedClaim>,
    },
    /// A message from another shard, or a command from outside.
    Message(ShardMessage),
    /// The domains of the node changed.
    Domains(Arc<Domains>),
    /// Records of another node that were for this one were lost, or it died and nobody knows. What is told of topics may be among them.
    RecordsLost,
    /// Homes are where this says from now on: nodes came or went.
    Directory(Arc<dyn Directory>),
    /// The store's answer.
    Answer {
        /// The question's number.
        ticket: Ticket,
        /// The answer.
        answer: Answer,
    },
    /// Keys were derived, as [`Effect::Derive`] asked.
    Derived {
        /// The derivation's number.
        ticket: Ticket,
        /// The keys, or why there are none.
        derived: Derived,
    },
    /// Time passed: [`machine::ShardMachine::next_wake`] was reached.
    Tick,
    /// The node drains: no new sessions, the present ones are told `<system-shutdown/>`.
    Drain,
    /// The node drains, in slices: no new sessions, and some of the present ones end.
    DrainSlice(DrainSlice),
    /// The node does not drain any more.
    StopDraining,
}
