//! Sessions that go on in another process with their connections: written as bytes by the one, and read and taken over by the other.
//! Their clients notice nothing. What is known here of notifications goes along.
//!
//! ```text
//!  at rest (answers of the store, deliveries) ─► prepare_hand_over ─► at rest ─► hand_over ─► bytes … ─► Handed::read ─► take_over
//! ```
//!
//! What was handed over can be taken over by the shard that it came from, too, when the other process fails.

use super::group::Part;
use super::restart::{Naming, Taken, write_traces};
use super::{Restored, ShardMachine, Turn, light};
use crate::Effects;
use crate::form::{Clock, Form, Unreadable, Writer};
use crate::model::{ConnId, Mono, Now, Place, SessionId, Trace};
use crate::ports::Directory;
use crate::session::Moved;
use carillon_wire::jid::BareJid;

/// Sessions as bytes, with the connections of those that have one; or traces of notifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandedGroup {
    /// What docs/session-form.md describes.
    pub bytes: Vec<u8>,
    /// How many sessions these are.
    pub sessions: u32,
    /// Their connections, in the order of the sessions that have one.
    pub conns: Vec<ConnId>,
}

/// What was read of groups, and is nowhere yet.
#[derive(Debug, Default)]
pub struct Handed {
    /// Sessions, in their order.
    pub sessions: Vec<HandedSession>,
    /// What is known of notifications.
    pub traces: Vec<HandedTrace>,
}

/// A session that was read.
#[derive(Debug)]
pub struct HandedSession(HandedKind);

#[derive(Debug)]
enum HandedKind {
    Xmpp(Moved),
    Light(crate::light::Moved),
}

/// What is known of a notification.
#[derive(Debug)]
pub struct HandedTrace(Trace);

impl Handed {
    /// What is in a group, `elapsed_ms` after it was written.
    ///
    /// # Errors
    /// If the bytes are not those of a group that this release reads.
    pub fn read(bytes: &[u8], now: Mono, elapsed_ms: u64) -> Result<Handed, Unreadable> {
        let mut handed = Handed::default();
        for part in Part::read_all(bytes, Clock { now_ms: now.0, elapsed_ms })? {
            match part {
                Part::Session(moved) => handed.sessions.push(HandedSession(HandedKind::Xmpp(moved))),
                Part::Light(moved) => handed.sessions.push(HandedSession(HandedKind::Light(moved))),
                Part::Trace(trace) => handed.traces.push(HandedTrace(*trace)),
            }
        }
        Ok(handed)
    }
}

impl HandedSession {
    /// Where its home is; nowhere for one of the light protocol, which is at home in any shard.
    pub fn home(&self, directory: &dyn Directory) -> Option<Place> {
        match &self.0 {
            HandedKind::Xmpp(moved) => Some(directory.account(moved.session.bare.as_str())),
            HandedKind::Light(_) => None,
        }
    }

    /// Whether it has a connection.
    pub fn is_connected(&self) -> bool {
        match &self.0 {
            HandedKind::Xmpp(moved) => moved.session.io.is_some(),
            HandedKind::Light(_) => true,
        }
    }
}

impl HandedTrace {
    /// Where the home of the notification's account is.
    pub fn home(&self, directory: &dyn Directory) -> Place {
        directory.account(self.0.to.as_str())
    }
}

impl ShardMachine {
    /// Has the store keep the chat messages that are under way to clients: their senders are settled by that, and not by an
    /// acknowledgement that another process gets. What this asks for is to be answered before [`ShardMachine::hand_over`].
    pub fn prepare_hand_over(&mut self, now: Now, effects: &mut Effects) {
        let mut turn = self.turn(now, effects);
        crate::session::home::read_again(&mut turn.cx);
        // A match has no form yet: its players are told, and their connections end in order.
        turn.matches.end_all(&mut turn.cx);
        let all: Vec<SessionId> = turn.sessions.all_bound().map(|session| session.id).collect();
        for id in all {
            for hook in &turn.cx.pipeline.leaves {
                hook(id, turn.sessions, &mut turn.cx);
            }
        }
        turn.work();
    }

    /// The accounts without a session that this node has claimed: the keepers of their names know that, and another process goes on with it.
    pub fn held_accounts(&self) -> Vec<BareJid> {
        self.shard.claims.held().cloned().collect()
    }

    /// Goes on with what [`ShardMachine::held_accounts`] told in another process.
    pub fn hold_accounts(&mut self, now: Now, accounts: &[BareJid], effects: &mut Effects) {
        let mut turn = self.turn(now, effects);
        accounts.iter().for_each(|account| turn.hold_claim(account));
        turn.work();
    }

    /// Takes out of the shard, as bytes: first what is known of notifications; then sessions, with connections or parked, those of as
    /// many accounts as fill `bytes_max` bytes, or one account that takes more; then connections of the light protocol. None when nothing
    /// is left. Nobody is told, and nothing is delivered to them any more. Connections that have no session stay.
    pub fn hand_over(&mut self, now: Now, bytes_max: usize, effects: &mut Effects) -> Option<HandedGroup> {
        let mut out = Writer::new(now.mono.0);
        let mut turn = self.turn(now, effects);
        turn.give_rest_of_rooms();
        let mut traces = turn.take_out_traces(false, bytes_max);
        if traces.is_empty() {
            traces = turn.take_out_traces(true, bytes_max);
        }
        if !traces.is_empty() {
            write_traces(traces, &mut out);
            return Some(HandedGroup { bytes: out.finish(), sessions: 0, conns: Vec::new() });
        }
        let mut taken = turn.take_out_some(bytes_max, |_| true, &mut out);
        if taken.sessions == 0 {
            taken = turn.take_out_lights(bytes_max, &mut out);
        }
        let Taken { sessions, conns } = taken;
        (sessions > 0).then(|| HandedGroup { bytes: out.finish(), sessions, conns })
    }

    /// Goes on with what was handed over: with each session, by the name that its connection has here. One whose connection was lost on
    /// the way is parked, as far as its client may resume it. `is_same_node`: whether others know the sessions by their names and this shard's number,
    /// and go on to do so.
    pub fn take_over(
        &mut self,
        now: Now,
        is_same_node: bool,
        traces: Vec<HandedTrace>,
        sessions: Vec<(HandedSession, Option<ConnId>)>,
        effects: &mut Effects,
    ) -> Restored {
        let mut turn = self.turn(now, effects);
        traces.into_iter().for_each(|HandedTrace(trace)| turn.take_in_trace(trace));
        let (mut lights, mut others) = (Vec::new(), Vec::new());
        for (HandedSession(kind), conn) in sessions {
            match kind {
                HandedKind::Xmpp(moved) => others.push((moved, conn)),
                HandedKind::Light(moved) => lights.push((moved, conn)),
            }
        }
        let mut restored = turn.take_in(others, if is_same_node { Naming::Kept } else { Naming::Anew });
        for (moved, conn) in lights {
            match conn.map(|conn| light::take_in(moved, conn, turn.sessions, &mut turn.cx)) {
                Some(true) => restored.restored += 1,
                Some(false) => restored.refused += 1,
                // It ended with its connection.
                None => restored.expired += 1,
            }
        }
        turn.work();
        restored
    }
}

impl Turn<'_> {
    /// Takes open connections of the light protocol out of the shard, and writes them.
    fn take_out_lights(&mut self, bytes_max: usize, out: &mut Writer) -> Taken {
        let mut taken = Taken::default();
        for conn in self.sessions.lights() {
            let Some(moved) = light::take_out(conn, self.sessions, &mut self.cx) else { continue };
            Part::Light(moved).write(out);
            taken.sessions += 1;
            taken.conns.push(conn);
            if out.position() >= bytes_max {
                break;
            }
        }
        taken
    }
}
