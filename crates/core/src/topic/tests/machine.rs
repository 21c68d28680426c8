//! The machine that the tests drive.

use super::store::Store;
use crate::command::{Actor, Asker, Command, Outcome, ReplyTo, TopicOp, TopicOutcome};
use crate::machine::ShardMachine;
use crate::message::ShardMessage;
use crate::model::*;
use crate::model::{PubsubEvent, Retained};
use crate::ports::Ask;
use crate::settings::Settings;
use crate::{Effect, Effects, Input};
use carillon_wire::jid::Jid;
use carillon_wire::stanza::Condition;
use std::collections::VecDeque;
use std::sync::{Arc, mpsc};

/// A shard, its store, and what it told the other shard of its node.
pub struct Machine {
    pub shard: ShardMachine,
    pub store: Store,
    pub asks: VecDeque<(Ticket, Ask)>,
    pub notices: Vec<Arc<PubsubEvent>>,
    pub messages: Vec<ShardMessage>,
    pub now: Now,
}

impl Machine {
    pub fn new(settings: Settings) -> Machine {
        let domain = Domain { id: DomainId(1), name: "d".into(), policy: Policy::default() };
        let domains = Arc::new(Domains::new([domain]));
        Machine {
            // The other of two shards stands for all that are told.
            shard: ShardMachine::new(ShardId(0), 2, Arc::new(settings), domains, [0; 32]),
            store: Store::new(),
            asks: VecDeque::new(),
            notices: Vec::new(),
            messages: Vec::new(),
            now: Now { mono: Mono(0), unix: UnixMs(1_795_167_000_000) },
        }
    }

    pub fn give(&mut self, input: Input<'_>) {
        let mut effects = Effects::default();
        self.shard.handle(self.now, input, &mut effects);
        for effect in effects.list {
            match effect {
                Effect::Ask { ticket, ask } => self.asks.push_back((ticket, ask)),
                Effect::Post { message: ShardMessage::Publication(event), .. } => self.notices.push(event),
                Effect::Post { message, .. } => self.messages.push(message),
                Effect::Reply { to, outcome } => (to.0)(outcome),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Begins an operation of the provider's; its outcome, once there is one.
    pub fn begin(&mut self, name: &str, op: TopicOp) -> mpsc::Receiver<Outcome> {
        let (sender, outcome) = mpsc::channel();
        let reply = ReplyTo(Box::new(move |outcome| drop(sender.send(outcome))));
        let command = Command::Topic { domain: DomainId(1), name: name.into(), actor: Actor::Provider, op };
        self.give(Input::Message(ShardMessage::Command { command, reply }));
        outcome
    }

    /// The same, as an account.
    pub fn begin_as(&mut self, account: &str, name: &str, op: TopicOp) -> mpsc::Receiver<Outcome> {
        let (sender, outcome) = mpsc::channel();
        let asker = Asker::Command(ReplyTo(Box::new(move |outcome| drop(sender.send(outcome)))));
        let actor = Actor::Account(Jid::new(account).expect("a JID"));
        self.give(Input::Message(ShardMessage::Topic {
            domain: DomainId(1),
            name: name.into(),
            actor,
            op,
            asker,
        }));
        outcome
    }

    /// Lets the store answer the oldest question.
    pub fn answer(&mut self) {
        let (ticket, ask) = self.asks.pop_front().expect("a question");
        let answer = self.store.answer(&ask);
        self.give(Input::Answer { ticket, answer });
    }

    pub fn settle(&mut self) {
        while !self.asks.is_empty() {
            self.answer();
        }
    }

    /// Does an operation of the provider's to its end.
    pub fn does(&mut self, name: &str, op: TopicOp) -> Result<TopicOutcome, Condition> {
        let outcome = self.begin(name, op);
        self.settle();
        result(&outcome)
    }

    pub fn does_as(&mut self, account: &str, name: &str, op: TopicOp) -> Result<TopicOutcome, Condition> {
        let outcome = self.begin_as(account, name, op);
        self.settle();
        result(&outcome)
    }
}

pub fn result(outcome: &mpsc::Receiver<Outcome>) -> Result<TopicOutcome, Condition> {
    match outcome.try_recv().expect("it is done") {
        Outcome::Topic(result) => result.map_err(|error| error.condition),
        other => panic!("{other:?}"),
    }
}

pub fn create() -> TopicOp {
    TopicOp::Create { config: TopicConfig::default() }
}

pub fn publish(id: &str) -> TopicOp {
    TopicOp::Publish { id: Some(id.into()), payload: Payload::Json("1".into()) }
}

pub fn configure(change: impl FnOnce(&mut TopicConfig)) -> TopicOp {
    let mut config = TopicConfig::default();
    change(&mut config);
    TopicOp::Configure { config }
}

/// The id of the item that an event leaves to logins: none for nothing, `=` for what it was.
pub fn left(event: &PubsubEvent) -> Option<&str> {
    match event.retained() {
        Retained::Last(last) => last.names().map(|(_, item)| item),
        Retained::Nothing => None,
        Retained::Unchanged => Some("="),
    }
}
