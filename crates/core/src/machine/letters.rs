//! What comes from elsewhere: messages of other homes, and answers to what was asked.

use super::{Turn, light};
use crate::message::ShardMessage;
use crate::model::Ticket;
use crate::ports::{Answer, Derived};
use crate::route;
use crate::session::{Session, Then};

impl Turn<'_> {
    pub(super) fn letter(&mut self, letter: ShardMessage) {
        match letter {
            ShardMessage::Stanza(stanza) => route::stanza(&stanza, self.sessions, &mut self.cx),
            ShardMessage::Command { command, reply } => self.command(command, reply),
            ShardMessage::Topic { domain, name, actor, op, asker } => {
                self.topics.operate(domain, &name, actor, op, asker, &mut self.cx);
            }
            ShardMessage::Publication(notice) => {
                if notice.is_end() {
                    self.cx.hub.topic_figures.forget(notice.topic());
                }
                let pace = self.cx.hub.subscribers.publish(&notice, &self.cx.hub.settings.fanout);
                self.cx.hub.counters.backlog = self.cx.hub.subscribers.backlog();
                if let Some(pace) = pace {
                    self.cx.tell_pace(notice.topic(), pace);
                }
            }
            ShardMessage::Pace { topic, shard, pace } => self.cx.hub.behind.note(topic, shard, pace),
            ShardMessage::Listening { name, result } => {
                light::heard(&name, result, self.sessions, &mut self.cx);
            }
            ShardMessage::Restricted { topic } => light::restricted(topic, self.sessions, &mut self.cx),
            ShardMessage::LoginFailed { address } => {
                let (mono, limits) = (self.cx.now.mono, &self.cx.hub.settings.limits);
                self.cx.hub.throttle.failed_from(address, mono, limits);
            }
            ShardMessage::Registered { address } => {
                let (mono, limits) = (self.cx.now.mono, &self.cx.hub.settings.limits);
                self.cx.hub.throttle.registered_from(address, mono, limits);
            }
            ShardMessage::Domains(domains) => self.domains(domains),
            ShardMessage::Subscribed { .. }
            | ShardMessage::Unsubscribed { .. }
            | ShardMessage::Expired(_) => {
                let hooks = &self.cx.pipeline.letter;
                // One whose feature is off is for nobody.
                let _ =
                    hooks.iter().try_fold(letter, |letter, hook| hook(letter, self.sessions, &mut self.cx));
            }
        }
    }

    pub(super) fn answer(&mut self, ticket: Ticket, answer: Answer) {
        let Some(then) = self.cx.agenda.answered(ticket) else { return };
        if let Answer::Failed(_) = answer {
            self.cx.hub.counters.faults += 1;
        }
        match then {
            Then::Unbound(conn) => {
                let Some(session) = self.sessions.take(conn) else { return };
                let session = match session {
                    Session::Authenticating(authenticating) => authenticating.answered(answer, &mut self.cx),
                    Session::Loading(loading) => loading.answered(answer, &mut self.cx),
                    other => other,
                };
                self.settle(conn, session);
            }
            Then::Topic(topic) => self.topics.answered(&topic, ticket, answer, &mut self.cx),
            Then::Answered(then) => then(answer, self.sessions, &mut self.cx),
            Then::Derived(_) => debug_assert!(false, "keys are not the store's to give"),
        }
        self.cx.hub.counters.given_up = self.cx.hub.owed.given_up();
    }

    /// Keys were derived.
    pub(super) fn derived(&mut self, ticket: Ticket, derived: Derived) {
        let Some(then) = self.cx.agenda.answered(ticket) else { return };
        match then {
            Then::Unbound(conn) => {
                let Some(session) = self.sessions.take(conn) else { return };
                let session = match session {
                    Session::Authenticating(authenticating) => authenticating.derived(derived, &mut self.cx),
                    other => other,
                };
                self.settle(conn, session);
            }
            Then::Derived(then) => then(derived, self.sessions, &mut self.cx),
            Then::Topic(_) | Then::Answered(_) => debug_assert!(false, "the store derives no keys"),
        }
    }
}
