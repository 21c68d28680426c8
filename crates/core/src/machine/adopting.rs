//! Sessions of a node that died go on where their accounts are at home now, parked, as after a restart (ADR 54).

use super::Turn;
use super::group::Part;
use super::logging::split_recent;
use super::restart::Naming;
use crate::form::Clock;
use crate::message::{AdoptionMessage, Orphan, Orphans};
use crate::model::{ConnId, Map, Mono, NodeId, Now, Place, SessionId, SessionPolicy, Settlement, ShardId};
use crate::ports::{Left, LogHead};
use crate::session::pipeline::Pipeline;
use crate::session::{BoundSession, Moved, Parked, Resuming, Session};
use crate::settings::Settings;
use crate::shard::{Adoption, Wake};
use carillon_wire::jid::BareJid;

/// What a dead node left, by account. What cannot be read is left out; how much that was.
pub fn orphans_of(of: NodeId, left: Vec<Left>, now: Now) -> (Vec<Orphans>, usize) {
    let pipeline = crate::pipeline::of(&Settings::default());
    let count = left.len();
    let (mut held, mut read) = (Map::<(ShardId, SessionId), Vec<u32>>::default(), Vec::new());
    for left in left {
        let Some((Moved { session, .. }, recent)) = read_session(&left.bytes, now) else { continue };
        let waits = settlements(&pipeline, &session).into_iter().chain(recent);
        for Settlement { place, session, number } in waits {
            if place.node == of {
                held.entry((place.shard, session)).or_default().push(number);
            }
        }
        read.push((session.bare.into(), left));
    }
    let unread = count - read.len();
    let mut orphans = Map::<BareJid, Vec<Orphan>>::default();
    for (account, Left { shard, session, bytes }) in read {
        let held = held.remove(&(shard, session)).unwrap_or_default();
        let place = Place { node: of, shard };
        orphans.entry(account).or_default().push(Orphan { place, bytes, held });
    }
    let orphans = orphans.into_iter().map(|(account, sessions)| Orphans { account, of, sessions });
    (orphans.collect(), unread)
}

fn settlements(pipeline: &Pipeline, session: &BoundSession) -> Vec<Settlement> {
    pipeline.resumption.map_or_else(Vec::new, |handler| (handler.settlements)(session))
}

/// A session, and who waited for messages that its client had acknowledged a moment ago.
fn read_session(bytes: &[u8], now: Now) -> Option<(Moved, Vec<Settlement>)> {
    let (head, rest) = LogHead::split(bytes)?;
    let (recent, form) = split_recent(rest)?;
    // The form has instants of the clock of the node that wrote it.
    let elapsed_ms = head.mono_ms + now.unix.0.saturating_sub(head.unix.0);
    let parts = Part::read_all(form, Clock { now_ms: now.mono.0, elapsed_ms }).ok()?;
    let moved = parts.into_iter().find_map(|part| match part {
        Part::Session(moved) => Some(moved),
        Part::Light(_) | Part::Trace(_) => None,
    })?;
    Some((moved, recent))
}

impl Turn<'_> {
    /// Something follows here from the death of a node.
    pub(super) fn adoption(&mut self, message: AdoptionMessage) {
        match message {
            AdoptionMessage::Left(orphans) => self.adopt(orphans),
            AdoptionMessage::Repeats { account, new, old } => self.repeats(&account, new, &old),
            AdoptionMessage::Moved(orphans) => self.adopt_moved(orphans),
        }
    }

    /// A stanza is about to come: it was given if a session has it, or if that is remembered.
    fn repeats(&mut self, account: &BareJid, new: Settlement, old: &Settlement) {
        let Some(handler) = self.cx.pipeline.resumption else { return };
        let mut has_it = false;
        for slot in self.sessions.of(account.as_str()) {
            has_it |=
                self.sessions.bound_in(slot).is_some_and(|session| (handler.repoint)(session, old, new));
        }
        let was_settled = !has_it && self.cx.shard.adoption.was_settled(old);
        if has_it || was_settled {
            self.cx.shard.adoption.knows(new);
        }
        if was_settled {
            self.cx.settle(Some(new));
        }
    }

    /// Sessions come here that a dead node left.
    fn adopt(&mut self, orphans: Orphans) {
        let Orphans { account, sessions, .. } = orphans;
        let (count, mut all) = (sessions.len(), Vec::new());
        for Orphan { place, bytes, held } in sessions {
            let Some((moved, _)) = read_session(&bytes, self.cx.now) else { continue };
            if self.has_room(&moved.session, all.len()) {
                all.extend(self.orphan(moved, &held, place).map(|moved| (moved, None)));
            } else if let Some(handler) = self.cx.pipeline.resumption {
                (handler.given_up)(moved.session, &mut self.cx);
            }
        }
        let restored = self.take_in_unreported(all, Naming::Anew).restored;
        self.cx.shard.counters.sessions_adopted += u64::from(restored);
        self.cx.shard.counters.sessions_not_adopted += count as u64 - u64::from(restored);
        for conn in self.cx.shard.adoption.take(&account) {
            self.look_again(conn);
        }
    }

    /// Whether the account may have one more session: whoever logged in meanwhile comes first.
    pub(super) fn has_room(&self, session: &BoundSession, others: usize) -> bool {
        let Some(domain) = self.cx.shard.domains.numbered(session.domain) else { return false };
        let of_account = self.sessions.bound_of(session.bare.as_str());
        if of_account.iter().any(|other| other.jid == session.jid) {
            return false;
        }
        let count = of_account.len() + others;
        match domain.policy.sessions {
            SessionPolicy::Single => count == 0,
            SessionPolicy::Multi => count < usize::from(domain.policy.sessions_max),
        }
    }

    /// A session as it is parked when its connection is lost.
    fn orphan(&mut self, moved: Moved, held: &[u32], place: Place) -> Option<Moved> {
        let Moved { mut session, timers: _, last_items, known } = moved;
        let handler = self.cx.pipeline.resumption?;
        let resumption = session.resumption.as_mut()?;
        if let Some(io) = session.io.take() {
            let until = self.cx.now.mono.plus(resumption.timeout_ms);
            resumption.parked = Some(Parked { until, address: io.address, transport: Some(io.transport()) });
        }
        resumption.is_adopted = true;
        let until: Mono = resumption.parked?.until;
        let old = Settlement { place, session: session.id, number: 0 };
        (handler.orphaned)(&mut session, held, old);
        // Its name is that of another session here.
        let name = std::mem::replace(&mut session.id, NOBODY);
        for hook in &self.cx.pipeline.parked {
            hook(&mut session, None, &mut self.cx);
        }
        session.id = name;
        session.heard = self.cx.now.mono;
        Some(Moved { session, timers: vec![(until, Wake::Parked)], last_items, known })
    }

    /// A client wants to resume a session that is not here: it waits if that may come.
    pub(super) fn missed(&mut self, resuming: Resuming) -> Session {
        let (now, own) = (self.cx.now.mono, self.cx.shard.place.node);
        let lives = |bits| {
            let others = self.cx.shard.directory.other_nodes();
            others.iter().any(|node| Adoption::is_named(*node, bits))
        };
        let comes_until = || self.cx.shard.adoption.comes_until(resuming.resume.key, now, own, lives);
        match resuming.until.or_else(comes_until).filter(|until| *until > now) {
            Some(until) => {
                let account = resuming.authenticated.jid().to_bare();
                self.cx.shard.adoption.wait(account, resuming.io.conn, until);
                Session::Resuming(Box::new(Resuming { until: Some(until), ..resuming }))
            }
            None => {
                let Resuming { io, authenticated, success, .. } = resuming;
                self.unresumed(io, authenticated, success)
            }
        }
    }

    /// Clients that have waited for too long are told that their sessions are lost.
    pub(super) fn give_up_orphans(&mut self) {
        for conn in self.cx.shard.adoption.take_due(self.cx.now.mono) {
            self.look_again(conn);
        }
    }

    pub(super) fn look_again(&mut self, conn: ConnId) {
        match self.sessions.take(conn) {
            Some(resuming @ Session::Resuming(_)) => {
                self.settle(conn, resuming);
                self.cx.read_on(conn);
            }
            Some(other) => self.sessions.put(conn, other),
            None => {}
        }
    }
}

/// No session has this name.
const NOBODY: SessionId = SessionId { slot: u32::MAX, generation: 0 };
