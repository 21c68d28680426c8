//! Sessions of a node of a cell that is drained go on at other nodes: those that their clients can resume are parked and given to where their
//! account is at home next, and what comes for the account meanwhile waits and follows them.
//!
//! ```text
//!  a slice of the drain ─► parked, streams closed ─► taken out ─► Idle ─► keeper: Claim ─► Left, Moved, what waited ─► keeper, or who has claimed it there
//! ```

use super::Turn;
use super::group::Part;
use super::restart::Naming;
use crate::error::StreamError;
use crate::event::Leave;
use crate::form::{self, Clock, Form, Writer};
use crate::message::{Orphan, Orphans};
use crate::model::{Now, SessionId};
use crate::session::{BoundSession, Closing, Moved};
use carillon_wire::jid::BareJid;

/// The first version of the form that has [`AdoptionMessage::Moved`](crate::message::AdoptionMessage::Moved): nodes that read no newer one do not know it.
const MOVED_SINCE: u16 = 5;

impl Turn<'_> {
    /// Gives the sessions of an account away, one of which is to end, with their account. Whether that is done or is done by a later slice;
    /// if not, the session is to end.
    pub(super) fn offer(&mut self, id: SessionId, error: &StreamError, is_last: bool) -> bool {
        let Some(account) = self.sessions.bound(id).map(|session| session.bare.to_bare()) else {
            return false;
        };
        if !self.can_be_offered(&account) {
            return false;
        }
        self.give_rest_of_rooms();
        let sessions = self.sessions.bound_of(account.as_str());
        let ids: Vec<SessionId> = sessions.iter().map(|session| session.id).collect();
        if !sessions.iter().all(|session| self.is_at_rest(session)) {
            return !is_last;
        }
        drop(sessions);
        for id in &ids {
            self.park_and_tell(*id, error);
        }
        let mut timers = self.timers_of(&ids.iter().copied().collect());
        let moved = self.take_out(&account, BoundSession::is_parked, &mut timers);
        let (place, now) = (self.cx.shard.place, self.cx.now);
        let written = |moved| Orphan { place, bytes: write(moved, now), held: Vec::new() };
        let sessions = moved.into_iter().map(written).collect();
        self.begin_offer(&account, sessions);
        true
    }

    /// Whether other nodes can go on with an account's sessions: they wait for them only where sessions are written down.
    fn can_be_offered(&self, account: &BareJid) -> bool {
        let is_moving = self.cx.shard.claims.moving(account.as_str()).is_some();
        let sessions = self.sessions.bound_of(account.as_str());
        self.cx.shard.adoption.is_on
            && form::spoken() >= MOVED_SINCE
            && self.cx.pipeline.resumption.is_some()
            && self.is_kept_elsewhere(account)
            && !is_moving
            && sessions.iter().all(|session| session.resumption.is_some() && session.is_managed())
    }

    /// Whether nothing is under way that the session would have to hear of here.
    fn is_at_rest(&self, session: &BoundSession) -> bool {
        let progress = self.cx.pipeline.resumption.and_then(|handler| (handler.progress)(session));
        let is_settled = progress.is_some_and(|progress| progress.handled == progress.settled);
        is_settled && !session.is_waiting()
    }

    /// Parks a session, and closes its stream.
    fn park_and_tell(&mut self, id: SessionId, error: &StreamError) {
        let Some(session) = self.sessions.take_bound(id) else { return };
        if let Some(io) = self.park(session, Leave::Error(error.condition)) {
            let conn = io.conn;
            let closing = Closing::with_error(io, error, &mut self.cx);
            self.sessions.put(conn, closing);
        }
    }

    /// Sessions come here from a node that lives, with their account.
    pub(super) fn adopt_moved(&mut self, Orphans { account, sessions, .. }: Orphans) {
        let (count, mut all) = (sessions.len(), Vec::new());
        for orphan in sessions {
            let Some(mut moved) = read(&orphan.bytes, self.cx.now) else { continue };
            // It reads what its topics were told since it was taken out.
            moved.session.resumption.iter_mut().for_each(|resumption| resumption.is_adopted = true);
            if self.has_room(&moved.session, all.len()) {
                all.push((moved, None));
            } else if let Some(handler) = self.cx.pipeline.resumption {
                (handler.given_up)(moved.session, &mut self.cx);
            }
        }
        let restored = self.take_in_unreported(all, Naming::Moved).restored;
        self.cx.shard.counters.sessions_adopted += u64::from(restored);
        self.cx.shard.counters.sessions_not_adopted += count as u64 - u64::from(restored);
        for conn in self.cx.shard.adoption.take(&account) {
            self.look_again(conn);
        }
    }
}

/// A parked session as it leaves: when that is, and its form.
fn write(moved: Moved, now: Now) -> Vec<u8> {
    let mut out = Writer::new(now.mono.0);
    Part::Session(moved).write(&mut out);
    let mut bytes = now.unix.0.to_le_bytes().to_vec();
    bytes.extend_from_slice(&out.finish());
    bytes
}

fn read(bytes: &[u8], now: Now) -> Option<Moved> {
    let (unix, form) = bytes.split_first_chunk::<8>()?;
    let elapsed_ms = now.unix.0.saturating_sub(u64::from_le_bytes(*unix));
    let parts = Part::read_all(form, Clock { now_ms: now.mono.0, elapsed_ms }).ok()?;
    parts.into_iter().find_map(|part| match part {
        Part::Session(moved) => Some(moved),
        Part::Light(_) | Part::Trace(_) => None,
    })
}
