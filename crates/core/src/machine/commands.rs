//! Commands from outside, carried out at the home of their subject.

use super::Turn;
use crate::command::{
    AccountPresence, Actor, Asker, Command, Hearing, KickReason, Outcome, ReplyTo, SessionInfo, TopicFigures,
};
use crate::connection::Io;
use crate::effect::Effect;
use crate::error::StreamError;
use crate::message::RoomOp;
use crate::model::{DomainId, NodeId, RoomKey, TopicId, UnixMs};
use crate::ports::modules::PushText;
use crate::ports::store::accounts::RevokeTokens;
use crate::ports::{Fault, Missing, Question};
use crate::session::home::send_as;
use crate::session::pipeline::Pipeline;
use crate::session::{BoundSession, Cx, removal};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stream::Condition;

impl Turn<'_> {
    pub(super) fn command(&mut self, command: Command, reply: ReplyTo) {
        match command {
            Command::Topic { domain, name, actor, op } => {
                debug_assert!(matches!(actor, Actor::Provider), "accounts ask by IQ");
                self.topics.operate(domain, &name, actor, op, Asker::Command(reply), &mut self.cx);
            }
            Command::Room { domain, kind, name, request } => {
                let key = RoomKey { domain, kind, name: name.into() };
                self.rooms.operate(&key, RoomOp::Command { request, reply }, &mut self.cx);
            }
            command @ (Command::Queue { .. } | Command::Match { .. }) => {
                self.matches.command(command, reply, &mut self.cx);
            }
            Command::Kick { jid, reason } => {
                let outcome = Outcome::Count(self.kick(&jid, reason));
                self.cx.out.push(Effect::Reply { to: reply, outcome });
            }
            Command::Changed { accounts } => {
                accounts.iter().for_each(|account| self.cx.shard.accounts.altered(account.as_str()));
                self.cx.out.push(Effect::Reply { to: reply, outcome: Outcome::Count(0) });
            }
            Command::Act { account, stanza } => {
                send_as::act(&account, *stanza, reply, self.sessions, &mut self.cx);
            }
            Command::RevokeTokens { domain, account } => {
                let local = account.local().unwrap_or_default().into();
                let ask = RevokeTokens { domain, local, agent: None };
                self.cx.ask(ask, move |answer, _, cx| revoked(&account, reply, &answer, cx));
            }
            Command::RemoveAccount { domain, account } => {
                let then = move |answer, cx: &mut Cx<'_>| {
                    let outcome = match answer {
                        Ok(Ok(())) => Outcome::Count(0),
                        Ok(Err(Missing)) => Outcome::Missing,
                        Err(fault) => Outcome::from(fault),
                    };
                    cx.out.push(Effect::Reply { to: reply, outcome });
                };
                removal::remove(domain, account, then, &mut self.cx);
            }
            Command::ContactsRemoved { changes } => {
                removal::tell(changes, &mut self.cx);
                self.cx.out.push(Effect::Reply { to: reply, outcome: Outcome::Count(0) });
            }
            Command::Presence { accounts } => {
                self.conclude(reply, Outcome::Presence(self.presence(&accounts)));
            }
            Command::Hears { account, room, said } => {
                self.conclude(reply, Outcome::Hearing(self.hearing(&account, &room, said)));
            }
            Command::RenderPush { account, text } => self.render_push(&account, text, reply),
            Command::TopicFigures { topics } => {
                let outcome = self.topic_figures(&topics);
                self.conclude(reply, outcome);
            }
            command @ (Command::Notify(_)
            | Command::NotifyFollowed { .. }
            | Command::Cancel { .. }
            | Command::Trace { .. }
            | Command::CountReached { .. }
            | Command::TracesInMemory { .. }) => {
                self.give_to_feature(command, reply);
            }
            Command::Sessions { domain, account, limit } => {
                self.conclude(reply, Outcome::Sessions(self.list(domain, account.as_ref(), limit)));
            }
        }
    }

    /// What the devices of an account are to show of a push, as the modules have it.
    fn render_push(&mut self, account: &BareJid, text: Box<PushText>, reply: ReplyTo) {
        let text = match self.cx.pipeline.render_push {
            Some(render) => render(account, text, &mut self.cx),
            None => Some(text),
        };
        self.conclude(reply, Outcome::PushText(text));
    }

    fn topic_figures(&self, topics: &[TopicId]) -> Outcome {
        let figures = |topic: &TopicId| TopicFigures {
            sessions: self.cx.shard.topics.subscribers.followers(*topic).len() as u64,
            ..self.cx.shard.topics.figures.of(*topic)
        };
        Outcome::TopicFigures(topics.iter().map(figures).collect())
    }

    fn conclude(&mut self, to: ReplyTo, outcome: Outcome) {
        self.cx.out.push(Effect::Reply { to, outcome });
    }

    /// Has a feature carry the command out.
    fn give_to_feature(&mut self, command: Command, reply: ReplyTo) {
        let hooks = &self.cx.pipeline.command;
        let left = hooks.iter().try_fold((command, reply), |(command, reply), hook| {
            hook(command, reply, self.sessions, &mut self.cx)
        });
        if let Some((_, to)) = left {
            self.cx.out.push(Effect::Reply { to, outcome: Outcome::Unavailable });
        }
    }

    fn kick(&mut self, jid: &Jid, reason: KickReason) -> u64 {
        if reason != KickReason::Operator {
            self.cx.shard.accounts.altered(jid.bare_str());
        }
        let ended: Vec<_> = match jid.local() {
            Some(_) => self
                .sessions
                .bound_of(jid.bare_str())
                .iter()
                .filter(|session| jid.is_bare() || session.jid == *jid)
                .map(|session| session.id)
                .collect(),
            None => self
                .sessions
                .all_bound()
                .filter(|session| session.bare.domain() == jid.domain())
                .map(|session| session.id)
                .collect(),
        };
        for &session in &ended {
            self.cx.end(session, reason.error());
        }
        ended.len() as u64
    }

    fn presence(&self, accounts: &[BareJid]) -> Vec<AccountPresence> {
        let of = |(index, account): (usize, &BareJid)| {
            let lives = self.sessions.bound_of(account.as_str());
            Some(AccountPresence {
                index,
                sessions: lives.len(),
                reach: lives.iter().map(|session| session.reach()).max()?,
                since: lives.iter().map(|session| session.since).min()?,
            })
        };
        accounts.iter().enumerate().filter_map(of).collect()
    }

    /// Whether a session of an account has what a room said at a time. A session that acknowledges stanzas has `push.grace_ms` to do so.
    fn hearing(&self, account: &BareJid, room: &BareJid, said: UnixMs) -> Hearing {
        let (now, until) = (self.cx.now, said.plus(self.cx.shard.settings.push.grace_ms));
        let hooks = &self.cx.pipeline.hears;
        let sessions = self.sessions.bound_of(account.as_str());
        let hears =
            |session: &&&BoundSession| session.io.is_some() && hooks.iter().any(|hook| hook(session, room));
        let mut hearing = sessions.iter().filter(hears).peekable();
        if hearing.peek().is_none() {
            return Hearing::None;
        }
        if now.unix < until {
            return Hearing::Until(until);
        }
        let has = |session: &&BoundSession| {
            let silent_ms = now.mono.since(session.heard);
            session.unacknowledged.unwrap_or(0) == 0 || silent_ms < now.unix.0.saturating_sub(said.0)
        };
        if hearing.any(has) { Hearing::Has } else { Hearing::None }
    }

    fn list(&self, domain: Option<DomainId>, account: Option<&BareJid>, limit: usize) -> Vec<SessionInfo> {
        let wanted = |session: &&BoundSession| domain.is_none_or(|d| d == session.domain);
        let describe = |session: &BoundSession| info(session, self.cx.shard.place.node, self.cx.pipeline);
        match account {
            Some(account) => self
                .sessions
                .bound_of(account.as_str())
                .into_iter()
                .filter(wanted)
                .take(limit)
                .map(describe)
                .collect(),
            None => self.sessions.all_bound().filter(wanted).take(limit).map(describe).collect(),
        }
    }
}

/// The store's answer to revoking the tokens of an account.
fn revoked(
    account: &BareJid,
    reply: ReplyTo,
    answer: &Result<<RevokeTokens as Question>::Answer, Fault>,
    cx: &mut Cx<'_>,
) {
    cx.shard.accounts.changed(account.as_str());
    let outcome = match answer {
        Ok(Some(_)) => Outcome::Count(0),
        Ok(None) => Outcome::Missing,
        Err(fault) => (*fault).into(),
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
            KickReason::DomainGone => {
                StreamError::new(Condition::HostGone, "this domain is no longer served")
            }
        }
    }
}

fn info(session: &BoundSession, home: NodeId, pipeline: &Pipeline) -> SessionInfo {
    let parked = session.resumption.as_ref().and_then(|resumption| resumption.parked);
    let transport = session.io.as_ref().map(Io::transport).or(parked.and_then(|parked| parked.transport));
    let mut info = SessionInfo {
        jid: session.jid.clone(),
        parked: session.io.is_none(),
        address: session.io.as_ref().map(|io| io.address).or(parked.map(|parked| parked.address)),
        transport,
        since: session.since,
        presence: session.presence.availability(),
        stream_management: false,
        topics: 0,
        unacknowledged: 0,
        via: session.io.as_ref().and_then(|io| io.via),
        home,
    };
    pipeline.describe.iter().for_each(|hook| hook(session, &mut info));
    info
}
