//! What a shard wants done. Effects are values; the server's `interpret` carries them out in order.

use crate::command::{Outcome, ReplyTo, StateChange};
use crate::connection::Claimed;
use crate::event::Journal;
use crate::message::ShardMessage;
use crate::model::{ConnId, ShardId, States, Ticket};
use crate::ports::{Ask, Derivation};
use std::ops::Range;

/// Something to be done, in the order given.
#[derive(Debug)]
pub enum Effect {
    /// Send one top-level element (or a stream header) to a client: the bytes of [`Effects::bytes`] in this range. On
    /// WebSocket it is one text message. Consecutive ranges of one connection adjoin and may share a TLS record.
    Send {
        /// To which connection.
        conn: ConnId,
        /// Which bytes of [`Effects::bytes`].
        range: Range<usize>,
    },
    /// Once everything sent before has left, begin the TLS handshake. What the client sent after `<starttls/>` in the
    /// clear is never seen: the session refuses it (CVE-2011-0411).
    Secure {
        /// On which connection.
        conn: ConnId,
    },
    /// Give the session no more bytes until [`Effect::Resume`]: it waits for an answer.
    Pause {
        /// Which connection.
        conn: ConnId,
    },
    /// Go on reading.
    Resume {
        /// Which connection.
        conn: ConnId,
    },
    /// Say [`crate::Input::Flushed`] once everything sent before was taken by the socket.
    WatchFlush {
        /// Which connection.
        conn: ConnId,
    },
    /// Say [`crate::Input::Unacked`] how much of what was sent before has not arrived at the peer's side.
    CountUnacked {
        /// Which connection.
        conn: ConnId,
    },
    /// Close once everything sent before has left, or the socket will not take it within the close timeout.
    Close {
        /// Which connection.
        conn: ConnId,
    },
    /// Give the connection, with its session, to another shard. It is gone here: no [`crate::Input::Closed`] follows.
    Move {
        /// Which connection.
        conn: ConnId,
        /// Where to.
        to: ShardId,
        /// Its session.
        moving: Box<Claimed>,
    },
    /// Give a message to another shard of this node.
    Post {
        /// Where to.
        to: ShardId,
        /// What.
        message: ShardMessage,
    },
    /// Ask the store; its answer comes back as [`crate::Input::Answer`].
    Ask {
        /// Names the question.
        ticket: Ticket,
        /// The question.
        ask: Ask,
    },
    /// Derive keys, on another thread; they come back as [`crate::Input::Derived`].
    Derive {
        /// Names the derivation.
        ticket: Ticket,
        /// Of what.
        derivation: Derivation,
    },
    /// Answer a command.
    Reply {
        /// Where to.
        to: ReplyTo,
        /// What became of it.
        outcome: Outcome,
    },
    /// Tell those who watch that a notification reached a state.
    StateChange(StateChange),
}

/// The effects of one or more inputs, with the bytes they send in one buffer that is used again and again: sending
/// allocates nothing once the buffer has grown.
#[derive(Debug, Default)]
pub struct Effects {
    /// The effects in order.
    pub list: Vec<Effect>,
    /// What [`Effect::Send`] ranges over.
    pub bytes: Vec<u8>,
    /// What happened, for the event log. Empty unless it is told to keep something.
    pub journal: Journal,
    /// Which states of notifications someone wants to hear of: no [`Effect::StateChange`] is made of the others.
    pub watched: States,
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

    /// Sends what was written before, to one more connection: `range` of [`Effects::bytes`].
    pub fn send_again(&mut self, conn: ConnId, range: Range<usize>) {
        self.list.push(Effect::Send { conn, range });
    }

    /// Forgets all but the journal and what is watched, keeps the memory, unless a burst made it larger than 1 MiB.
    pub fn clear(&mut self) {
        self.list.clear();
        self.bytes.clear();
        self.bytes.shrink_to(1 << 20);
    }
}
