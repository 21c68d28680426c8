//! The home of topics: everything about a topic is decided by the one shard that is its home.

mod notice;

pub use notice::{Notice, Retained};

use crate::command::{Actor, TopicOp};
use crate::effect::ReplyTo;
use crate::model::DomainId;
use crate::node::Cx;
use crate::ports::Answer;
use carillon_wire::jid::Jid;

/// Who asked for an operation on a topic.
#[derive(Debug)]
pub enum Asker {
    /// A client, by an IQ to the pubsub service: the outcome becomes the IQ's result or error.
    Iq {
        /// The client.
        from: Jid,
        /// The service's address, as the client wrote it.
        service: Jid,
        /// The IQ's id.
        id: Box<str>,
    },
    /// A command from outside.
    Command(ReplyTo),
}

/// An operation that waits for the store.
#[derive(Debug)]
pub struct Then {}

/// The topics at home on a shard.
#[derive(Debug, Default)]
pub struct Topics {}

impl Topics {
    /// Carries out an operation, after those that came before it for the same topic.
    pub fn operate(
        &mut self,
        _domain: DomainId,
        _name: &str,
        _actor: Actor,
        _op: TopicOp,
        _asker: Asker,
        _cx: &mut Cx<'_>,
    ) {
    }

    /// The store answered.
    pub fn answered(&mut self, _then: Then, _answer: Answer, _cx: &mut Cx<'_>) {}

    /// Forgets topics that nobody asked about lately.
    pub fn tidy(&mut self) {}
}
