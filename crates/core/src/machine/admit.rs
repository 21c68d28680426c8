//! Admitting a session to its account, and removing it.

use super::Turn;
use crate::Effect;
use crate::connection::{Io, Noted};
use crate::error::StreamError;
use crate::event::{Entry, Kind, Leave};
use crate::model::{LoginBacklog, SessionId, SessionPolicy};
use crate::session::home;
use crate::session::{BoundSession, Loaded, Session};
use crate::shard::{DomainQuota, Whereabouts};
use carillon_wire::jid::Jid;
use carillon_wire::stream::Condition;

impl Turn<'_> {
    /// Admits a session: the sessions that it replaces end first; then it is added to its account and to its topics, and the
    /// client is told.
    pub(super) fn admit(&mut self, loaded: Loaded) {
        if self.whereabouts(loaded.jid.bare_str()) != Whereabouts::Here {
            // Its home has moved since the client named its account.
            return self.cx.out.push(Effect::Close { conn: loaded.io.conn });
        }
        let (replaced, domain) = (self.replaced(&loaded.jid), loaded.authenticated.domain());
        if self.cx.shard.quotas.is_full_of_sessions(domain, replaced.len()) {
            self.cx.shard.counters.domains.of(domain).refused.count(DomainQuota::Sessions);
            let (conn, session) = (loaded.io.conn, loaded.refuse_full(&mut self.cx));
            return self.sessions.put(conn, session);
        }
        for (id, why) in replaced {
            self.end(id, &StreamError::new(Condition::Conflict, why));
        }
        let Loaded { io, authenticated, jid, greeting, mut login } = loaded;
        let (id, conn) = (self.sessions.begin(), io.conn);
        let (domain, account) = (authenticated.domain(), authenticated.account());
        let bare = authenticated.jid().clone();
        let mut session = Box::new(BoundSession::new(id, io, bare, jid, domain, account, &self.cx));
        self.join_account(&session);
        if self.cx.pipeline.keeps_records() {
            // What the login read may be older than a change of which the home has heard.
            match self.cx.shard.accounts.changed_records.is_marked(session.bare.as_str()) {
                false => self.cx.homes.enter(&session.bare, login.record),
                true => self.cx.homes.enter_unread(&session.bare),
            }
        }
        if let Some(io) = &session.io {
            self.cx.out.journal.note(self.cx.now.unix, Kind::Login, || Entry::Login {
                jid: session.jid.as_str(),
                address: io.address,
                transport: io.transport(),
            });
        }
        if session.is_tapped {
            session.tap_session("opened", "bound", &mut self.cx);
        }
        // Something may have been stored since the login was read. From here on the session is told of what is.
        if self.cx.shard.accounts.stored_for.is_marked(session.bare.as_str()) {
            login.waiting = LoginBacklog { notifications: true, messages: true };
        }
        for part in &self.cx.pipeline.login {
            part.give(&mut session, &login, &mut self.cx);
        }
        greeting.send(&mut session, &mut self.cx);
        for hook in &self.cx.pipeline.open {
            hook(&mut session, &mut self.cx);
        }
        self.sessions.put(conn, Session::Bound(session));
    }

    /// Adds a session to its account.
    pub(super) fn join_account(&mut self, session: &BoundSession) {
        if self.sessions.bind(&session.bare, session.id.slot) > 1 {
            self.cx.shard.accounts.multi_session.insert(session.account);
        }
        self.cx.shard.claims.forget_held(session.bare.as_str());
        self.cx.shard.counters.sessions += 1;
        self.cx.shard.counters.domains.of(session.domain).sessions += 1;
        self.cx.shard.quotas.begin_session(session.domain);
    }

    /// Removes a session from its account.
    pub(super) fn leave_account(&mut self, session: &BoundSession) {
        if self.sessions.unbind(&session.bare, session.id.slot) <= 1 {
            self.cx.shard.accounts.multi_session.remove(&session.account);
        }
        self.cx.shard.counters.sessions -= 1;
        self.cx.shard.counters.domains.of(session.domain).sessions -= 1;
        self.cx.shard.quotas.end_session(session.domain);
        let parked = session.resumption.as_ref().and_then(|resumption| resumption.parked);
        self.cx.shard.counters.parked -= u64::from(parked.is_some());
    }

    /// A session has ended. When it was the last of its account, its home forgets the account, after what it is still told.
    fn leave_home(&mut self, session: &BoundSession) {
        self.hold_claim(&session.bare);
        if !self.cx.pipeline.keeps_records() || self.sessions.has_any(session.bare.as_str()) {
            return;
        }
        if self.cx.homes.is_empty(session.bare.as_str()) {
            return home::settle(&session.bare, self.sessions, &mut self.cx);
        }
        let account = session.bare.to_bare();
        self.cx.later(move |sessions, cx| home::settle(&account, sessions, cx));
    }

    /// The sessions that a new one replaces (RFC 6120 §7.7.2.2), and the oldest of too many, each with the reason.
    fn replaced(&self, new: &Jid) -> Vec<(SessionId, &'static str)> {
        let Some(domain) = self.cx.shard.domains.named(new.domain()) else { return Vec::new() };
        let policy = domain.policy;
        let others = self.sessions.bound_of(new.bare_str());
        let over = (others.len() + 1).saturating_sub(usize::from(policy.sessions_max));
        let replaced = others.iter().enumerate().filter_map(|(i, session)| match policy.sessions {
            SessionPolicy::Single => Some((session.id, "replaced by a new session")),
            SessionPolicy::Multi if session.jid == *new => {
                Some((session.id, "replaced by a new session of this resource"))
            }
            SessionPolicy::Multi if i < over => Some((session.id, "too many sessions; the oldest ends")),
            SessionPolicy::Multi => None,
        });
        replaced.collect()
    }

    /// Removes a session: its features are told, its account and topics forget it. Nothing is written to the store. What is
    /// left is the connection, if it had one.
    pub(super) fn part(&mut self, mut session: Box<BoundSession>, leave: Leave) -> Option<Io> {
        self.leave_account(&session);
        self.cx.shard.counters.sessions_ended.count(leave.as_str());
        if session.is_tapped {
            session.tap_session("closed", leave.as_str(), &mut self.cx);
        }
        for hook in &self.cx.pipeline.close {
            hook(&mut session, leave, &mut self.cx);
        }
        self.leave_home(&session);
        for followed in std::mem::take(&mut session.topics) {
            self.cx.unfollow(followed.listed(), self.sessions);
        }
        self.sessions.end(session.id);
        self.cx.agenda.reads.forget(session.account, session.id);
        let parked = session.resumption.as_ref().and_then(|resumption| resumption.parked);
        let mut io = session.io.take();
        // Behind what its features noted of it.
        if let Some(address) = io.as_ref().map(|io| io.address).or(parked.map(|parked| parked.address)) {
            self.cx.out.journal.note(self.cx.now.unix, Kind::Disconnect, || Entry::Disconnect {
                jid: Some(session.jid.as_str()),
                address,
                reason: leave,
                after_ms: self.cx.now.unix.0.saturating_sub(session.since.0),
            });
        }
        if let Some(io) = &mut io {
            io.noted = Noted::Ended;
        }
        io
    }
}
