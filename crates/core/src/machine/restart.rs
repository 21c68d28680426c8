//! Parked sessions that go on in another process: written as bytes by the one, and read and parked again by the other.
//!
//! ```text
//!  drained, all parked ─► (answers of the store) ─► write_parked ─► bytes … ─► restore ─► parked
//! ```
//!
//! [`Farewell::Restart`](crate::model::Farewell) parks them.

use super::{ShardMachine, Turn};
use crate::Effects;
use crate::event::Leave;
use crate::form::{Clock, Form, Reader, Unreadable, Writer};
use crate::model::{Map, Mono, Now, SessionId, Set};
use crate::session::{BoundSession, Moved};
use crate::shard::{Names, Wake, home};
use carillon_wire::jid::BareJid;

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
    /// Their time was up: they ended here as they would have ended there.
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
        self.agenda.awaited() + usize::from(self.shard.retries.due().is_some())
    }

    /// Takes parked sessions out of the shard, as bytes: those of as many accounts as fill `bytes_max` bytes, or one account that takes
    /// more; none when no session is parked. They have ended here, without anybody being told: nothing is delivered to them any
    /// more.
    pub fn write_parked(&mut self, now: Now, bytes_max: usize, effects: &mut Effects) -> Option<Group> {
        let mut turn = self.turn(now, effects);
        let mut out = Writer::new(now.mono.0);
        let mut sessions = 0;
        let (names, accounts) = turn.parked(bytes_max);
        let mut timers = turn.timers_of(&names);
        for account in accounts {
            for moved in turn.take_out(&account, &mut timers) {
                moved.write(&mut out);
                sessions += 1;
            }
            if out.position() >= bytes_max {
                break;
            }
        }
        (sessions > 0).then(|| Group { bytes: out.finish(), sessions })
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
        let mut input = Reader::new(bytes, Clock { now_ms: now.mono.0, elapsed_ms })?;
        let mut all = Vec::new();
        while !input.is_done() {
            all.push(Moved::read(&mut input)?);
        }
        let mut turn = self.turn(now, effects);
        let restored = turn.take_in(all);
        turn.work();
        Ok(restored)
    }
}

/// The timers of sessions.
type Timers = Map<SessionId, Vec<(Mono, Wake)>>;

impl Turn<'_> {
    /// Parked sessions that may fill so many bytes, and their accounts.
    fn parked(&self, bytes_max: usize) -> (Set<SessionId>, Vec<BareJid>) {
        let (mut names, mut seen, mut accounts) = (Set::default(), Set::default(), Vec::new());
        for session in self.sessions.all_bound().filter(|session| session.is_parked()) {
            if !seen.contains(&session.account) {
                if accounts.len() * SESSION_BYTES_MIN >= bytes_max.max(1) {
                    break;
                }
                seen.insert(session.account);
                accounts.push(session.bare.clone());
                let of_account = self.sessions.bound_of(session.bare.as_str());
                names.extend(of_account.iter().map(|session| session.id));
            }
        }
        (names, accounts)
    }

    fn timers_of(&self, names: &Set<SessionId>) -> Timers {
        let mut timers = Timers::default();
        for (at, (id, wake)) in self.cx.shard.timers.iter().filter(|(_, (id, _))| names.contains(id)) {
            timers.entry(id).or_default().push((at, wake));
        }
        timers.values_mut().for_each(|timers| timers.sort_by_key(|(at, _)| *at));
        timers
    }

    /// Takes the parked sessions of an account out of all lists. Who shares it is told: nobody is to notice that they are away.
    fn take_out(&mut self, account: &BareJid, timers: &mut Timers) -> Vec<Moved> {
        let sessions = self.sessions.bound_of(account.as_str());
        let parked = sessions.iter().filter(|session| session.is_parked()).map(|session| session.id);
        let parked: Vec<SessionId> = parked.collect();
        drop(sessions);
        let mut all = Vec::with_capacity(parked.len());
        for session in parked {
            let Some(session) = self.sessions.take_bound(session) else { continue };
            let last = |topic| self.cx.shard.subscribers.last(topic).cloned();
            let last_items = session.topics.iter().filter_map(|followed| last(followed.topic)).collect();
            self.leave_account(&session);
            self.cx.shard.counters.available -= u64::from(session.presence.is_available());
            for followed in session.topics.clone() {
                self.cx.unfollow(followed, self.sessions);
            }
            self.sessions.end(session.id);
            all.push(Moved { timers: timers.remove(&session.id).unwrap_or_default(), session, last_items });
        }
        all
    }

    /// Parks sessions that another process wrote.
    fn take_in(&mut self, all: Vec<Moved>) -> Restored {
        let (mut result, mut names, mut here) = (Restored::default(), Names::default(), Vec::new());
        for mut moved in all {
            if home(moved.session.bare.as_str(), self.cx.shard.shard_count) != self.cx.shard.id {
                result.elsewhere += 1;
            } else if !self.can_restore(&moved.session) {
                result.refused += 1;
            } else {
                let id = self.sessions.begin();
                names.add(moved.session.id, id);
                moved.session.id = id;
                self.join_account(&moved.session);
                here.push(moved);
            }
        }
        let ids: Vec<SessionId> = here.iter().map(|moved| moved.session.id).collect();
        for moved in here {
            self.put_back(moved, &mut names);
        }
        // When all of them are there: one looks for the others of its account.
        for id in ids {
            match self.sessions.take_bound(id) {
                Some(session) if session.is_overdue(&self.cx) => {
                    result.expired += 1;
                    self.part(session, Leave::NotResumed);
                }
                Some(session) => {
                    result.restored += 1;
                    self.sessions.put_bound(session);
                    if let Some(handler) = self.cx.pipeline.resumption {
                        (handler.away)(id, self.sessions, &mut self.cx);
                    }
                }
                None => {}
            }
        }
        result
    }

    /// Whether a session can wait here for its client.
    fn can_restore(&self, session: &BoundSession) -> bool {
        let is_parked = session.io.is_none()
            && session.resumption.as_ref().is_some_and(|resumption| resumption.parked.is_some());
        let domain = self.cx.shard.domains.numbered(session.domain);
        let has_domain = domain.is_some_and(|domain| *domain.name == *session.jid.domain());
        let of_account = self.sessions.bound_of(session.bare.as_str());
        let is_new = of_account.iter().all(|other| other.jid != session.jid);
        is_parked && has_domain && is_new && self.cx.pipeline.resumption.is_some()
    }

    fn put_back(&mut self, moved: Moved, names: &mut Names) {
        let Moved { mut session, timers, last_items } = moved;
        for last in last_items {
            self.cx.shard.subscribers.learn(last);
        }
        for (at, wake) in timers {
            self.cx.shard.timers.set(at, (session.id, wake));
        }
        self.cx.shard.counters.parked += 1;
        self.cx.shard.counters.available += u64::from(session.presence.is_available());
        for hook in &self.cx.pipeline.restored {
            hook(&mut session, names, &mut self.cx);
        }
        self.sessions.put_bound(session);
    }
}

/// A session takes more bytes than these, so that no more accounts are looked at than may fit.
const SESSION_BYTES_MIN: usize = 64;
