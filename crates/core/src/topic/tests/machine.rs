//! The machine that the tests drive.

use crate::Input;
use crate::command::{Actor, Asker, Command, Outcome, TopicOp, TopicOutcome};
use crate::message::ShardMessage;
use crate::model::*;
use crate::ports::{Ask, Fault};
use crate::settings::Settings;
use crate::sim::{Plan, World};
use carillon_wire::jid::Jid;
use carillon_wire::stanza::{Condition, StanzaError};
use std::sync::{Arc, mpsc};

/// The first shard of two, where all topics are at home here, and what it tells the other, which hears nothing of it: it
/// stands for all that are told.
pub(super) struct Machine {
    pub world: World,
    pub notices: Vec<Arc<PubsubEvent>>,
    pub messages: Vec<ShardMessage>,
}

impl Machine {
    pub(super) fn new(settings: Settings) -> Machine {
        let mut world = World::new(Plan { settings, ..Plan::default() });
        world.domain("d", Policy::default());
        Machine { world, notices: Vec::new(), messages: Vec::new() }
    }

    /// The same with accounts.
    pub(super) fn with_accounts(accounts: &[&str]) -> Machine {
        let mut machine = Machine::new(Settings::default());
        accounts.iter().for_each(|local| machine.world.account("d", local, "secret", 1));
        machine
    }

    pub(super) fn give(&mut self, message: ShardMessage) {
        self.world.give(0, Input::Message(message));
        self.hear();
    }

    /// What the other shard is told.
    fn hear(&mut self) {
        for post in self.world.take_posts(0, 1) {
            match post {
                Input::Message(ShardMessage::Publication(notice)) => self.notices.push(notice),
                Input::Message(message) => self.messages.push(message),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Begins an operation of the provider's; its outcome, once there is one.
    pub(super) fn begin(&mut self, name: &str, op: TopicOp) -> mpsc::Receiver<Outcome> {
        let (domain, actor) = (self.world.domain_id("d"), Actor::Provider);
        let command = Command::Topic { domain, name: name.into(), actor, op };
        let outcome = self.world.begin_at(0, |reply| ShardMessage::Command { command, reply });
        self.hear();
        outcome
    }

    /// The same, as an account.
    pub(super) fn begin_as(&mut self, account: &str, name: &str, op: TopicOp) -> mpsc::Receiver<Outcome> {
        let (domain, actor) = (self.world.domain_id("d"), Actor::Account(Jid::new(account).expect("a JID")));
        let outcome = self.world.begin_at(0, |reply| {
            let asker = Asker::Command(reply);
            ShardMessage::Topic { domain, name: name.into(), actor, op, asker }
        });
        self.hear();
        outcome
    }

    /// What the store has not answered, the oldest first.
    pub(super) fn asks(&self) -> Vec<&Ask> {
        self.world.disk.waiting()
    }

    /// Lets the store answer the oldest question.
    pub(super) fn answer(&mut self) {
        assert!(self.world.answer_oldest(), "a question");
        self.hear();
    }

    /// The oldest question fails.
    pub(super) fn fail(&mut self) {
        assert!(self.world.fail_oldest(Fault::Busy), "a question");
        self.hear();
    }

    pub(super) fn settle(&mut self) {
        while self.world.answer_oldest() {
            self.hear();
        }
    }

    /// Does an operation of the provider's to its end.
    pub(super) fn does(&mut self, name: &str, op: TopicOp) -> Result<TopicOutcome, Condition> {
        let outcome = self.begin(name, op);
        self.settle();
        result(&outcome)
    }

    pub(super) fn does_as(
        &mut self,
        account: &str,
        name: &str,
        op: TopicOp,
    ) -> Result<TopicOutcome, Condition> {
        let outcome = self.begin_as(account, name, op);
        self.settle();
        result(&outcome)
    }
}

pub(super) fn result(outcome: &mpsc::Receiver<Outcome>) -> Result<TopicOutcome, Condition> {
    match outcome.try_recv().expect("it is done") {
        Outcome::Topic(result) => result.map_err(|refusal| StanzaError::from(refusal).condition),
        other => panic!("{other:?}"),
    }
}

pub(super) fn create() -> TopicOp {
    TopicOp::Create { config: TopicConfig::default() }
}

pub(super) fn publish(id: &str) -> TopicOp {
    TopicOp::Publish { id: Some(id.into()), payload: Payload::Json("1".into()), operation: None }
}

pub(super) fn configure(change: impl FnOnce(&mut TopicConfig)) -> TopicOp {
    let mut config = TopicConfig::default();
    change(&mut config);
    TopicOp::Configure { config }
}

/// The id of the item that an event leaves to logins: none for nothing, `=` for what it was.
pub(super) fn left(event: &PubsubEvent) -> Option<&str> {
    match event.retained() {
        Retained::Last(last) => last.names().map(|(_, item)| item),
        Retained::Nothing => None,
        Retained::Unchanged => Some("="),
    }
}
