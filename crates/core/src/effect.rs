//! What a shard wants done. Effects are values; the server's `interpret` carries them out in order.

use crate::command::{Outcome, ReplyTo, StateChange};
use crate::connection::{Claimed, Joining};
use crate::event::Journal;
use crate::message::ShardMessage;
use crate::model::{ConnId, Hop, NodeId, Place, States, Ticket};
use crate::ports::{Ask, Derivation};
use crate::tap::Tape;
use std::ops::Range;

/// Something to be done, in the order given.
#[derive(Debug)]
pub enum Effect {
    /// Send one top-level element (or a stream header) to a client: the bytes of [`Effects::bytes`] in this range. On
    /// WebSocket it is one text message. Consecutive ranges of one connection adjoin and may share a TLS record.
    Send {
        /// The connection.
        conn: ConnId,
        /// The range of [`Effects::bytes`].
        range: Range<usize>,
    },
    /// Send frames to a player as one datagram (RFC 9221), which may be lost; on its stream, if they are too long for one. Only for
    /// connections that were opened with datagrams.
    Datagram {
        /// The connection.
        conn: ConnId,
        /// The range of [`Effects::bytes`].
        range: Range<usize>,
    },
    /// Begin the TLS handshake once everything sent before has left. The session refuses whatever the client sent in the
    /// clear after `<starttls/>` (CVE-2011-0411).
    Secure {
        /// The connection.
        conn: ConnId,
    },
    /// Give the session no more bytes until [`Effect::Resume`]: it waits for an answer.
    Pause {
        /// The connection.
        conn: ConnId,
    },
    /// Go on reading.
    Resume {
        /// The connection.
        conn: ConnId,
    },
    /// Say [`crate::Input::Flushed`] once everything sent before was taken by the socket.
    WatchFlush {
        /// The connection.
        conn: ConnId,
    },
    /// Say [`crate::Input::Unacked`] how much of what was sent before has not arrived at the peer's side.
    CountUnacked {
        /// The connection.
        conn: ConnId,
        /// How much its session had been sent then ([`crate::session::BoundSession::sent`]): the answer repeats it, as more may have been
        /// sent meanwhile.
        sent: u32,
    },
    /// Close once everything sent before has left, or the socket will not take it within the close timeout.
    Close {
        /// The connection.
        conn: ConnId,
    },
    /// Give the connection, with its session, to another shard. It is gone here: no [`crate::Input::Closed`] follows.
    Move {
        /// The connection.
        conn: ConnId,
        /// Where it goes: in the same process.
        to: Place,
        /// Its session.
        moving: Box<Claimed>,
    },
    /// Give the connection of a player to another shard of the same node. It is gone here, as with [`Effect::Move`].
    MovePlayer {
        /// The connection.
        conn: ConnId,
        /// Where it goes.
        to: Place,
        /// What the player wants there.
        joining: Box<Joining>,
    },
    /// Give a message to another shard.
    Post {
        /// Where it goes.
        to: Place,
        /// The message.
        message: ShardMessage,
    },
    /// Give a message to every shard of another node.
    PostAll {
        /// The node.
        to: NodeId,
        /// The message.
        message: ShardMessage,
    },
    /// Ask the store; its answer comes back as [`crate::Input::Answer`].
    Ask {
        /// The number by which the answer is told.
        ticket: Ticket,
        /// The question.
        ask: Ask,
    },
    /// Derive keys, on another thread; they come back as [`crate::Input::Derived`].
    Derive {
        /// The number by which the keys are told.
        ticket: Ticket,
        /// The password, the salt and the hashes.
        derivation: Derivation,
    },
    /// Answer a command.
    Reply {
        /// Where the outcome goes.
        to: ReplyTo,
        /// The outcome.
        outcome: Outcome,
    },
    /// Tell whoever follows a notification that it reached a step; of [`HopStep::Written`](crate::model::HopStep::Written), once the socket has
    /// taken everything that was sent before.
    Hop(Box<Hop>),
    /// Tell those who watch that a notification reached a state.
    StateChange(StateChange),
    /// Tell those who follow the events of the store that there is one of which no state change tells.
    EventStored,
}

/// The effects of one or more inputs, with the bytes they send in one buffer that is used again and again: sending
/// allocates nothing once the buffer has grown.
#[derive(Debug, Default)]
pub struct Effects {
    /// The effects in order.
    pub list: Vec<Effect>,
    /// What [`Effect::Send`] ranges over.
    pub bytes: Vec<u8>,
    /// What happened, for the event log. Empty unless some kind of entry is wanted.
    pub journal: Journal,
    /// What was noted of accounts that are followed.
    pub tape: Tape,
    /// Which states of notifications someone wants to hear of: no [`Effect::StateChange`] is made of the others.
    pub watched: States,
    /// Whether someone follows events: no [`Effect::EventStored`] is made otherwise.
    pub events_watched: bool,
}

impl Effects {
    /// Adds an effect.
    pub fn push(&mut self, effect: Effect) {
        self.list.push(effect);
    }

    /// Sends what `write` appends. One call is one top-level element.
    pub fn send(&mut self, conn: ConnId, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.list.push(Effect::Send { conn, range: start..self.bytes.len() });
    }

    /// Sends what `write` appends as one datagram.
    pub fn send_datagram(&mut self, conn: ConnId, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.list.push(Effect::Datagram { conn, range: start..self.bytes.len() });
    }

    /// Sends bytes that were written before, `range` of [`Effects::bytes`], to one more connection.
    pub fn send_again(&mut self, conn: ConnId, range: Range<usize>) {
        self.list.push(Effect::Send { conn, range });
    }

    /// Removes all effects and bytes, but neither the journal, nor the tape, nor `watched`. The memory is kept, unless a burst made it
    /// larger than 1 MiB.
    pub fn clear(&mut self) {
        self.list.clear();
        self.bytes.clear();
        self.bytes.shrink_to(1 << 20);
    }
}
