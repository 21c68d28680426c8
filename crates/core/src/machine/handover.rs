//! Sessions that go on in another process with their connections: written as bytes by the one, and read and taken over by the other.
//! Their clients notice nothing.
//!
//! ```text
//!  at rest (answers of the store, deliveries) ─► prepare_hand_over ─► at rest ─► hand_over ─► bytes … ─► HandedSession::read_all ─► take_over
//! ```
//!
//! What was handed over can be taken over by the shard that it came from, too, when the other process fails.

use super::restart::Taken;
use super::{Restored, ShardMachine};
use crate::Effects;
use crate::form::{Clock, Form, Reader, Unreadable, Writer};
use crate::model::{ConnId, Mono, Now, SessionId, ShardId};
use crate::session::Moved;
use crate::shard::home;

/// Sessions as bytes, with the connections of those that have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandedGroup {
    /// The sessions, in the form of docs/session-form.md.
    pub bytes: Vec<u8>,
    /// How many sessions these are.
    pub sessions: u32,
    /// Their connections, in the order of the sessions that have one.
    pub conns: Vec<ConnId>,
}

/// A session that was read, and is nowhere yet.
#[derive(Debug)]
pub struct HandedSession(pub(super) Moved);

impl HandedSession {
    /// All sessions of a group, `elapsed_ms` after it was written.
    ///
    /// # Errors
    /// If the bytes are not those of a group that this release reads.
    pub fn read_all(bytes: &[u8], now: Mono, elapsed_ms: u64) -> Result<Vec<HandedSession>, Unreadable> {
        let mut input = Reader::new(bytes, Clock { now_ms: now.0, elapsed_ms })?;
        let mut all = Vec::new();
        while !input.is_done() {
            all.push(HandedSession(Moved::read(&mut input)?));
        }
        Ok(all)
    }

    /// The shard that is its home.
    pub fn home(&self, shards: u16) -> ShardId {
        home(self.0.session.bare.as_str(), shards)
    }

    /// Whether it has a connection.
    pub fn is_connected(&self) -> bool {
        self.0.session.io.is_some()
    }
}

impl ShardMachine {
    /// Has the store keep the chat messages that are under way to clients: their senders are settled by that, and not by an
    /// acknowledgement that another process gets. What this asks for is to be answered before [`ShardMachine::hand_over`].
    pub fn prepare_hand_over(&mut self, now: Now, effects: &mut Effects) {
        let mut turn = self.turn(now, effects);
        let Some(handler) = turn.cx.pipeline.resumption else { return };
        let all: Vec<SessionId> = turn.sessions.all_bound().map(|session| session.id).collect();
        for id in all {
            (handler.leaves)(id, turn.sessions, &mut turn.cx);
        }
        turn.work();
    }

    /// Takes sessions out of the shard, as bytes, with connections or parked: those of as many accounts as fill `bytes_max` bytes, or one
    /// account that takes more; none when no session is left. Nobody is told, and nothing is delivered to them any more. Connections
    /// that have no session stay.
    pub fn hand_over(&mut self, now: Now, bytes_max: usize, effects: &mut Effects) -> Option<HandedGroup> {
        let mut out = Writer::new(now.mono.0);
        let Taken { sessions, conns } = self.turn(now, effects).take_out_some(bytes_max, |_| true, &mut out);
        (sessions > 0).then(|| HandedGroup { bytes: out.finish(), sessions, conns })
    }

    /// Goes on with sessions that were handed over, each with the name that its connection has here. One whose connection was lost on the
    /// way is parked, as far as its client may resume it.
    pub fn take_over(
        &mut self,
        now: Now,
        sessions: Vec<(HandedSession, Option<ConnId>)>,
        effects: &mut Effects,
    ) -> Restored {
        let mut turn = self.turn(now, effects);
        let all = sessions.into_iter().map(|(HandedSession(moved), conn)| (moved, conn)).collect();
        let restored = turn.take_in(all);
        turn.work();
        restored
    }
}
