//! Commands from outside, carried out where what they are about lives.

use super::{Cx, Shard, Then};
use crate::Effects;
use crate::command::{AccountPresence, Actor, Command, KickReason, Outcome, SessionInfo, TopicFigures};
use crate::effect::{Effect, ReplyTo};
use crate::error::StreamError;
use crate::event::transport_word;
use crate::features::notifications;
use crate::model::{DomainId, Now, TopicId};
use crate::ports::{Answer, Ask};
use crate::session::Live;
use crate::topic::Asker;
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stream::Condition;

impl Shard {
    pub(super) fn command(&mut self, command: Command, reply: ReplyTo, now: Now, effects: &mut Effects) {
        let mut cx = Cx { now, hub: &mut self.hub, out: effects };
        match command {
            Command::Notify(notification) => {
                notifications::notify(notification, Some(reply), &mut self.sessions, &mut cx);
            }
            Command::Cancel { id } => notifications::cancel(id, reply, &mut cx),
            Command::Trace { id } => notifications::trace(id, reply, &mut cx),
            Command::Remembered { query, ids } => notifications::remembered(&query, &ids, reply, &mut cx),
            Command::Topic { domain, name, actor, op } => {
                debug_assert!(matches!(actor, Actor::Provider), "accounts ask by IQ");
                self.topics.operate(domain, &name, actor, op, Asker::Command(reply), &mut cx);
            }
            Command::Kick { jid, reason } => {
                let outcome = Outcome::Count(self.kick(&jid, reason));
                effects.push(Effect::Reply { to: reply, outcome });
            }
            Command::Changed { accounts } => {
                accounts.iter().for_each(|account| self.hub.altered(account.as_str()));
                effects.push(Effect::Reply { to: reply, outcome: Outcome::Count(0) });
            }
            Command::RevokeTokens { domain, account } => {
                let local = account.local().unwrap_or_default().into();
                let ask = Ask::RevokeTokens { domain, local, agent: None };
                cx.ask(ask, Then::Revoked { account, reply });
            }
            Command::Presence { accounts } => {
                let outcome = Outcome::Presence(self.presence(&accounts));
                effects.push(Effect::Reply { to: reply, outcome });
            }
            Command::TopicFigures { topics } => {
                let figures = |topic: &TopicId| TopicFigures {
                    sessions: self.hub.subscribers.followers(*topic).len() as u64,
                    ..self.hub.topic_figures.of(*topic)
                };
                let outcome = Outcome::TopicFigures(topics.iter().map(figures).collect());
                effects.push(Effect::Reply { to: reply, outcome });
            }
            Command::Sessions { domain, account, limit } => {
                let sessions = self.list(domain, account.as_ref(), limit);
                effects.push(Effect::Reply { to: reply, outcome: Outcome::Sessions(sessions) });
            }
        }
    }

    fn kick(&mut self, jid: &Jid, reason: KickReason) -> u64 {
        if reason != KickReason::Operator {
            self.hub.altered(jid.bare_str());
        }
        let conns: Vec<_> = match jid.local() {
            Some(_) => self
                .sessions
                .lives_of(jid.bare_str())
                .iter()
                .filter(|live| jid.is_bare() || live.jid == *jid)
                .map(|live| live.io.conn)
                .collect(),
            None => self
                .sessions
                .lives()
                .filter(|live| live.bare.domain() == jid.domain())
                .map(|l| l.io.conn)
                .collect(),
        };
        for &conn in &conns {
            self.later(conn, reason.error());
        }
        conns.len() as u64
    }

    fn presence(&self, accounts: &[BareJid]) -> Vec<AccountPresence> {
        let of = |(index, account): (usize, &BareJid)| {
            let lives = self.sessions.lives_of(account.as_str());
            Some(AccountPresence {
                index,
                sessions: lives.len(),
                reach: lives.iter().map(|live| notifications::reach(live)).max()?,
                since: lives.iter().map(|live| live.since).min()?,
            })
        };
        accounts.iter().enumerate().filter_map(of).collect()
    }

    fn list(&self, domain: Option<DomainId>, account: Option<&BareJid>, limit: usize) -> Vec<SessionInfo> {
        let wanted = |live: &&Live| domain.is_none_or(|d| d == live.domain);
        match account {
            Some(account) => self
                .sessions
                .lives_of(account.as_str())
                .into_iter()
                .filter(wanted)
                .take(limit)
                .map(info)
                .collect(),
            None => self.sessions.lives().filter(wanted).take(limit).map(info).collect(),
        }
    }
}

/// The store took the tokens of an account back, or not.
pub(super) fn revoked(account: &BareJid, reply: ReplyTo, answer: &Answer, cx: &mut Cx<'_>) {
    cx.hub.changed(account.as_str());
    let outcome = match answer {
        Answer::Revocations(_) => Outcome::Count(0),
        Answer::Missing => Outcome::Missing,
        _ => Outcome::Unavailable,
    };
    cx.out.push(Effect::Reply { to: reply, outcome });
}

impl KickReason {
    fn error(self) -> StreamError {
        match self {
            KickReason::Operator => StreamError::new(Condition::PolicyViolation, "ended by an operator"),
            KickReason::Credentials => {
                StreamError::new(Condition::NotAuthorized, "your credentials were changed")
            }
            KickReason::Disabled => {
                StreamError::new(Condition::NotAuthorized, "account-disabled: this account is disabled")
            }
            KickReason::Gone => StreamError::new(Condition::NotAuthorized, "this account is gone"),
        }
    }
}

fn info(live: &Live) -> SessionInfo {
    SessionInfo {
        jid: live.jid.clone(),
        address: live.io.address,
        transport: transport_word(live.io.framing),
        since: live.since,
        presence: live.state.presence.word(),
        stream_management: live.state.stream_management.is_some(),
        topics: live.topics.len() as u32,
        unacknowledged: live.state.notifications.unacknowledged() as u32,
    }
}
