//! Messages of other homes, and answers to questions.

use super::{Turn, light};
use crate::command::Outcome;
use crate::effect::Effect;
use crate::home::HomeKey;
use crate::message::ShardMessage;
use crate::model::{PubsubEvent, RoomKey, Ticket};
use crate::ports::{Answer, Derived};
use crate::route;
use crate::session::{Continuation, KeyContinuation, Session};
use crate::session::{account_reads, home};
use crate::topic::missed;
use carillon_wire::stanza::Stanza;
use std::sync::Arc;

impl Turn<'_> {
    /// A message came: for this shard, unless its home is on another node.
    pub(super) fn message(&mut self, message: ShardMessage) {
        if self.is_alone() {
            self.take(message);
        } else if let Some(message) = self.forward(message) {
            self.take(message);
        }
    }

    fn take(&mut self, message: ShardMessage) {
        match message {
            ShardMessage::Stanza { settlement: Some(settlement), .. }
                if self.cx.shard.adoption.is_known(&settlement) => {}
            ShardMessage::Stanza { stanza, settlement } => {
                if let Some((stanza, settlement)) =
                    home::incoming(stanza, settlement, self.sessions, &mut self.cx)
                {
                    route::arrived(stanza, settlement, self.sessions, &mut self.cx);
                }
            }
            ShardMessage::Reply { stanza } => self.answer_of_room(stanza),
            ShardMessage::ForAccounts { to, message } => {
                for account in to {
                    home::receive(&account, message.clone(), self.sessions, &mut self.cx);
                }
            }
            ShardMessage::Settled(settled) => {
                if let Some(to) = self.cx.shard.send_as.settled(&settled) {
                    self.cx.out.push(Effect::Reply { to, outcome: Outcome::Count(0) });
                } else if let Some(session) = self.sessions.bound(settled.session) {
                    if session.is_tapped {
                        session.tap_stored("settled", 1, &mut self.cx);
                    }
                    for hook in &self.cx.pipeline.settled {
                        hook(session, settled.number, &mut self.cx);
                    }
                }
            }
            ShardMessage::Command { command, reply } => self.command(command, reply),
            ShardMessage::Topic { domain, name, actor, op, asker } => {
                self.topics.operate(domain, &name, actor, op, asker, &mut self.cx);
            }
            ShardMessage::Room { domain, kind, name, op } => {
                self.note_sender(kind, &op);
                let key = RoomKey { domain, kind, name: name.into() };
                self.rooms.operate(&key, op, &mut self.cx);
            }
            ShardMessage::RoomEvent(event) => self.room_gives(event),
            ShardMessage::Publication(event) => self.published(&event),
            ShardMessage::Pace { topic, place, pace } => self.cx.shard.topics.behind.note(topic, place, pace),
            ShardMessage::Listening { name, result } => {
                light::heard(&name, result, self.sessions, &mut self.cx);
            }
            ShardMessage::Restricted { topic } => light::restricted(topic, self.sessions, &mut self.cx),
            ShardMessage::LoginFailed { address } => {
                let (mono, limits) = (self.cx.now.mono, &self.cx.shard.settings.limits);
                self.cx.shard.logins.throttle.failed_elsewhere(address, mono, limits);
            }
            ShardMessage::GivenAll { domain, wait_ms } => self.cx.given_elsewhere(domain, wait_ms),
            ShardMessage::Registered { address } => {
                let (mono, limits) = (self.cx.now.mono, &self.cx.shard.settings.limits);
                self.cx.shard.logins.throttle.registered_from(address, mono, limits);
            }
            ShardMessage::Game(message) => self.matches.message(*message, &mut self.cx),
            ShardMessage::Claim(claim) => self.claim_message(*claim),
            ShardMessage::Adoption(message) => self.adoption(*message),
            ShardMessage::Subscribed { .. }
            | ShardMessage::Unsubscribed { .. }
            | ShardMessage::MessageExpired(_)
            | ShardMessage::Broadcasts(_)
            | ShardMessage::Expired(_) => {
                let hooks = &self.cx.pipeline.message;
                // One whose feature is off is for nobody.
                let _ = hooks
                    .iter()
                    .try_fold(message, |message, hook| hook(message, self.sessions, &mut self.cx));
            }
        }
    }

    /// An item, or another event of a topic, for those who follow it here.
    fn published(&mut self, event: &Arc<PubsubEvent>) {
        if event.is_end() {
            self.cx.shard.topics.figures.forget(event.topic());
        }
        let pace = self.cx.shard.topics.subscribers.publish(event, &self.cx.shard.settings.fanout);
        self.cx.count_backlog();
        if let Some(pace) = pace {
            self.cx.tell_pace(event.topic(), pace);
        }
        missed::read_due(&mut self.cx);
    }

    /// The server answers an account: whoever waits for that, or the session that it is for.
    pub(super) fn reply(&mut self, stanza: Stanza) {
        if let Some(to) = self.cx.shard.send_as.refused(&stanza) {
            self.cx.out.push(Effect::Reply { to, outcome: Outcome::Answered(Box::new(stanza)) });
        } else if let Some(stanza) = account_reads::replied(stanza, self.sessions, &mut self.cx) {
            route::stanza(&stanza, None, self.sessions, &mut self.cx);
        }
    }

    pub(super) fn answer(&mut self, ticket: Ticket, answer: Answer) {
        let Some(then) = self.cx.agenda.answered(ticket) else { return };
        if let Answer::Failed(_) = answer {
            self.cx.shard.counters.faults += 1;
        }
        match then {
            Continuation::Unbound(conn) => {
                let Some(session) = self.sessions.take(conn) else { return };
                let session = match session {
                    Session::Asking(asking) => asking.answered(answer, &mut self.cx),
                    Session::Loading(loading) => loading.answered(answer, &mut self.cx),
                    other => other,
                };
                self.settle(conn, session);
            }
            Continuation::Home(HomeKey::Account(account)) => {
                home::answered(&account, ticket, answer, self.sessions, &mut self.cx);
            }
            Continuation::Home(HomeKey::Room(room)) => {
                self.rooms.answered(&room, ticket, answer, &mut self.cx);
            }
            Continuation::Home(HomeKey::Topic(topic)) => {
                self.topics.answered(&topic, ticket, answer, &mut self.cx);
            }
            Continuation::Call(then) => then(answer, self.sessions, &mut self.cx),
        }
        self.cx.shard.counters.given_up = self.cx.shard.retries.given_up();
    }

    /// Keys were derived.
    pub(super) fn derived(&mut self, ticket: Ticket, derived: Derived) {
        let Some(then) = self.cx.agenda.derived(ticket) else { return };
        match then {
            KeyContinuation::Unbound(conn) => {
                let Some(session) = self.sessions.take(conn) else { return };
                let session = match session {
                    Session::Deriving(deriving) => deriving.derived(derived, &mut self.cx),
                    other => other,
                };
                self.settle(conn, session);
            }
            KeyContinuation::Call(then) => then(derived, self.sessions, &mut self.cx),
        }
    }
}
