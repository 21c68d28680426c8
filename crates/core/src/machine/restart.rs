//! Parked sessions that go on in another process: written as bytes by the one, and read and parked again by the other. What is known
//! of the notifications that wait with them goes along.
//!
//! ```text
//!  drained, all parked ─► (answers of the store) ─► write_parked ─► bytes … ─► restore ─► parked
//! ```
//!
//! [`Farewell::Restart`](crate::model::Farewell) parks them.

use super::group::Part;
use super::{ShardMachine, Turn};
use crate::Effects;
use crate::error::StreamError;
use crate::event::Leave;
use crate::form::{Clock, Form, Unreadable, Writer};
use crate::model::{ConnId, Map, Mono, Now, SessionId, Set, Trace};
use crate::session::{BoundSession, Closing, Moved, Session};
use crate::shard::{Names, Wake};
use carillon_wire::jid::BareJid;
use carillon_wire::stream::Condition;

/// Parked sessions as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The sessions, in the form of docs/session-form.md.
    pub bytes: Vec<u8>,
    /// How many sessions these are.
    pub sessions: u32,
}

/// What became of the sessions of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// They wait here for their clients.
    pub restored: u32,
    /// Their time was up: they end here, shortly after the others went on, as they would have ended there.
    pub expired: u32,
    /// They cannot go on: their domain is gone, or nothing is resumed here. Their clients log in anew.
    pub refused: u32,
    /// The home of their accounts is another shard, which has to be given the group, too.
    pub elsewhere: u32,
}

impl ShardMachine {
    /// How many answers of the store the shard waits for; one more if a write is to be repeated. Sessions are best written when it is none,
    /// and no message between shards is on its way: what is not settled by then, the sender's client sends again.
    pub fn awaited(&self) -> usize {
        let moving = self.shard.claims.moving_count();
        self.agenda.awaited() + moving + usize::from(self.shard.retries.due().is_some())
    }

    /// The accounts of which it is being found out where they are at home: what waits for that is lost if the shard ends, as what the store
    /// has not answered is.
    #[cfg(any(test, feature = "sim"))]
    pub(crate) fn sought(&self) -> Vec<BareJid> {
        self.shard.claims.moving_for(|_, _| true)
    }

    /// Takes parked sessions out of the shard, as bytes, and what is known here of notifications that have not ended: those of as many
    /// accounts as fill `bytes_max` bytes, or one account that takes more; none when no session is parked. They have ended here, without
    /// anybody being told: nothing is delivered to them any more.
    pub fn write_parked(&mut self, now: Now, bytes_max: usize, effects: &mut Effects) -> Option<Group> {
        let mut turn = self.turn(now, effects);
        turn.give_rest_of_rooms();
        let mut out = Writer::new(now.mono.0);
        // In front of those whose notifications they are about.
        let traces = turn.take_out_traces(false, bytes_max);
        if !traces.is_empty() {
            write_traces(traces, &mut out);
            return Some(Group { bytes: out.finish(), sessions: 0 });
        }
        let taken = turn.take_out_some(bytes_max, BoundSession::is_parked, &mut out);
        (taken.sessions > 0).then(|| Group { bytes: out.finish(), sessions: taken.sessions })
    }

    /// Parks the sessions of a group again, `elapsed_ms` after it was written; those alone of whose accounts this shard is the home.
    ///
    /// # Errors
    /// If the bytes are not those of a group that this release reads. Then nothing was restored.
    pub fn restore(
        &mut self,
        now: Now,
        elapsed_ms: u64,
        bytes: &[u8],
        effects: &mut Effects,
    ) -> Result<Restored, Unreadable> {
        let parts = Part::read_all(bytes, Clock { now_ms: now.mono.0, elapsed_ms })?;
        let (mut sessions, mut turn) = (Vec::new(), self.turn(now, effects));
        for part in parts {
            match part {
                Part::Session(session) => sessions.push((session, None)),
                Part::Trace(trace) => turn.take_in_trace(*trace),
                // It ends with its connection.
                Part::Light(_) => {}
            }
        }
        let restored = turn.take_in(sessions, Naming::Anew);
        turn.work();
        Ok(restored)
    }
}

/// Appends what is known of notifications.
pub(super) fn write_traces(traces: Vec<Trace>, out: &mut Writer) {
    traces.into_iter().for_each(|trace| Part::Trace(Box::new(trace)).write(out));
}

/// The timers of sessions.
pub(super) type Timers = Map<SessionId, Vec<(Mono, Wake)>>;

/// Sessions that were taken out.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) sessions: u32,
    /// The connections of those that have one.
    pub(super) conns: Vec<ConnId>,
}

/// What sessions are called that another process wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// Each gets a name of its own.
    Anew,
    /// The same; and what they wait for of others, and others of them, is settled as before, as their node lives and has nothing of it.
    Moved,
    /// As they were called there, where that is possible: rooms and senders on other nodes know them by it.
    Kept,
}

/// Which sessions are taken out.
pub(super) type Which = fn(&BoundSession) -> bool;

impl Turn<'_> {
    /// Takes sessions out of the shard, and writes them: those of as many accounts as fill `bytes_max` bytes.
    pub(super) fn take_out_some(&mut self, bytes_max: usize, which: Which, out: &mut Writer) -> Taken {
        let mut taken = Taken::default();
        let (names, accounts) = self.some(bytes_max, which);
        let mut timers = self.timers_of(&names);
        for account in accounts {
            for moved in self.take_out(&account, which, &mut timers) {
                taken.sessions += 1;
                taken.conns.extend(moved.session.conn());
                Part::Session(moved).write(out);
            }
            if out.position() >= bytes_max {
                break;
            }
        }
        taken
    }

    /// Sessions that may fill so many bytes, and their accounts.
    fn some(&self, bytes_max: usize, which: Which) -> (Set<SessionId>, Vec<BareJid>) {
        let (mut names, mut seen, mut accounts) = (Set::default(), Set::default(), Vec::new());
        for session in self.sessions.all_bound().filter(|session| which(session)) {
            if !seen.contains(&session.account) {
                if accounts.len() * SESSION_BYTES_MIN >= bytes_max.max(1) {
                    break;
                }
                seen.insert(session.account);
                accounts.push(session.bare.to_bare());
                let of_account = self.sessions.bound_of(session.bare.as_str());
                names.extend(of_account.iter().map(|session| session.id));
            }
        }
        (names, accounts)
    }

    pub(super) fn timers_of(&self, names: &Set<SessionId>) -> Timers {
        let mut timers = Timers::default();
        for (at, (id, wake)) in self.cx.shard.timers.sessions.iter().filter(|(_, (id, _))| names.contains(id))
        {
            timers.entry(id).or_default().push((at, wake));
        }
        timers.values_mut().for_each(|timers| timers.sort_by_key(|(at, _)| *at));
        timers
    }

    /// Takes sessions of an account out of all lists. Who shares it is told: nobody is to notice that they are away.
    pub(super) fn take_out(&mut self, account: &BareJid, which: Which, timers: &mut Timers) -> Vec<Moved> {
        let sessions = self.sessions.bound_of(account.as_str());
        let wanted = sessions.iter().filter(|session| which(session)).map(|session| session.id);
        let wanted: Vec<SessionId> = wanted.collect();
        drop(sessions);
        let mut all = Vec::with_capacity(wanted.len());
        for session in wanted {
            let Some(mut session) = self.sessions.take_bound(session) else { continue };
            session.take_allowance(&self.cx);
            for hook in &self.cx.pipeline.taken {
                hook(&session, &mut self.cx);
            }
            self.cx.agenda.reads.forget(session.account, session.id);
            let last = |topic| self.cx.shard.topics.subscribers.last(topic).cloned();
            let last_items = session.topics.iter().filter_map(|followed| last(followed.topic)).collect();
            let known = self.cx.homes.known(account.as_str(), session.id);
            self.leave_account(&session);
            if let Some(conn) = session.conn() {
                self.cx.shard.counters.connections -= 1;
                self.sessions.leave(conn);
            }
            self.cx.shard.counters.available -= u64::from(session.presence.is_available());
            for followed in session.topics.clone() {
                self.cx.unfollow(followed.listed(), self.sessions);
            }
            self.sessions.end(session.id);
            let timers = timers.remove(&session.id).unwrap_or_default();
            all.push(Moved { timers, session, last_items, known });
        }
        all
    }

    /// Keeps what another process knew of a notification, if its account's home is here.
    pub(super) fn take_in_trace(&mut self, trace: Trace) {
        if self.cx.shard.directory.account(trace.to.as_str()) == self.cx.shard.place
            && let Some(handler) = self.cx.pipeline.traces
        {
            self.hold_claim(&trace.to);
            (handler.put)(trace, &mut self.cx);
        }
    }

    /// Takes out traces of notifications that have not ended, or that have, of about so many bytes.
    pub(super) fn take_out_traces(&mut self, have_ended: bool, bytes_max: usize) -> Vec<Trace> {
        let handler = self.cx.pipeline.traces;
        handler.map_or_else(Vec::new, |handler| (handler.take)(have_ended, bytes_max, &mut self.cx))
    }

    /// Goes on with sessions that another process wrote, each with the name that its connection has here, if it has one.
    pub(super) fn take_in(&mut self, all: Vec<(Moved, Option<ConnId>)>, naming: Naming) -> Restored {
        let restored = self.take_in_unreported(all, naming);
        self.report_to_all();
        restored
    }

    /// The same of sessions that their accounts' keepers know to be here.
    pub(super) fn take_in_unreported(
        &mut self,
        all: Vec<(Moved, Option<ConnId>)>,
        naming: Naming,
    ) -> Restored {
        let names = Names::new(naming != Naming::Anew && !self.is_alone());
        let (mut result, mut names, mut here) = (Restored::default(), names, Vec::new());
        let mut accounts: Set<BareJid> = Set::default();
        for (mut moved, conn) in all {
            if let (Some(io), Some(conn)) = (&mut moved.session.io, conn) {
                io.conn = conn;
                io.reader.trust(&self.cx.shard.settings.limits);
                self.cx.shard.counters.connections += 1;
            }
            if self.cx.shard.directory.account(moved.session.bare.as_str()) != self.cx.shard.place {
                result.elsewhere += 1;
                self.turn_away(&mut moved.session, conn);
            } else if !self.can_restore(&moved.session) {
                result.refused += 1;
                self.turn_away(&mut moved.session, conn);
            } else {
                let id = match naming {
                    Naming::Anew | Naming::Moved => self.sessions.begin(),
                    Naming::Kept => self.sessions.begin_as(moved.session.id),
                };
                names.add(moved.session.account, moved.session.id, id);
                moved.session.id = id;
                self.join_account(&moved.session);
                if self.cx.pipeline.keeps_records() {
                    self.cx.homes.enter_again(&moved.session.bare, id, moved.known);
                    accounts.insert(moved.session.bare.to_bare());
                }
                here.push((moved, conn));
            }
        }
        let ids: Vec<_> = here.iter().map(|(moved, conn)| (moved.session.id, *conn)).collect();
        for (moved, conn) in here {
            self.put_back(moved, conn, &mut names);
        }
        // When all of them are there: one looks for the others of its account.
        for (id, conn) in ids {
            match self.sessions.take_bound(id) {
                Some(session) if session.is_overdue(&self.cx) => {
                    result.expired += 1;
                    // Not before the others are back who are told that it ends, such as those in its rooms: they may be in groups that follow.
                    self.cx.wake_in(id, ENDS_MS, Wake::Parked);
                    self.sessions.put_bound(session);
                }
                Some(session) if session.io.is_some() && conn.is_none() => {
                    result.restored += 1;
                    self.lose(session, Leave::Lost);
                }
                Some(mut session) => {
                    result.restored += 1;
                    session.carry_on(&mut self.cx);
                    let is_parked = session.is_parked();
                    self.sessions.put_bound(session);
                    if let Some(handler) = self.cx.pipeline.resumption.filter(|_| is_parked) {
                        (handler.away)(id, self.sessions, &mut self.cx);
                    }
                }
                None => {}
            }
        }
        accounts.iter().for_each(|account| crate::session::home::verify(account, &mut self.cx));
        result
    }

    /// Closes the connection of a session that cannot go on here.
    fn turn_away(&mut self, session: &mut BoundSession, conn: Option<ConnId>) {
        if let (Some(io), Some(conn)) = (session.io.take(), conn) {
            let error = StreamError::new(Condition::Reset, "the session cannot go on here; log in again");
            let closing = Closing::with_error(io, &error, &mut self.cx);
            self.sessions.put(conn, closing);
        }
    }

    /// Whether a session can go on here: with its connection, or waiting for its client.
    fn can_restore(&self, session: &BoundSession) -> bool {
        let is_parked = session.resumption.as_ref().is_some_and(|resumption| resumption.parked.is_some());
        let goes_on = if session.io.is_some() {
            !is_parked
        } else {
            is_parked && self.cx.pipeline.resumption.is_some()
        };
        let domain = self.cx.shard.domains.numbered(session.domain);
        let has_domain = domain.is_some_and(|domain| *domain.name == *session.jid.domain());
        let of_account = self.sessions.bound_of(session.bare.as_str());
        let is_new = of_account.iter().all(|other| other.jid != session.jid);
        goes_on && has_domain && is_new
    }

    fn put_back(&mut self, moved: Moved, conn: Option<ConnId>, names: &mut Names) {
        let Moved { mut session, timers, last_items, known: _ } = moved;
        for last in last_items {
            self.cx.shard.topics.subscribers.learn(last);
        }
        let is_overdue = session.is_overdue(&self.cx);
        for (at, wake) in timers.into_iter().filter(|(_, wake)| *wake != Wake::Parked || !is_overdue) {
            self.cx.shard.timers.sessions.set(at, (session.id, wake));
        }
        self.cx.shard.counters.parked += u64::from(session.is_parked());
        self.cx.shard.counters.available += u64::from(session.presence.is_available());
        for hook in &self.cx.pipeline.restored {
            hook(&mut session, names, &mut self.cx);
        }
        match conn.filter(|_| session.io.is_some()) {
            Some(conn) => self.sessions.put(conn, Session::Bound(session)),
            None => self.sessions.put_bound(session),
        }
    }
}

/// How long after a restart sessions end whose time was up before it.
const ENDS_MS: u64 = 2000;

/// A session takes more bytes than these, so that no more accounts are looked at than may fit.
const SESSION_BYTES_MIN: usize = 64;
