//! What one home sends another: within the node through the shards' inboxes, and later between nodes over the bus.

use crate::command::{Actor, Asker, Command, Refusal, ReplyTo, TopicOp, TopicOutcome};
use crate::model::{Domains, PubsubEvent, ShardId, TopicId, Trace};
use carillon_wire::jid::BareJid;
use carillon_wire::stanza::Stanza;
use std::net::IpAddr;
use std::sync::Arc;

/// A message between homes.
#[derive(Debug)]
pub enum ShardMessage {
    /// A stanza for the home of its `to`.
    Stanza(Stanza),
    /// A command from outside.
    Command {
        /// What is to be done.
        command: Command,
        /// Where its outcome goes.
        reply: ReplyTo,
    },
    /// An operation for the home of a topic, asked over XMPP.
    Topic {
        /// The topic's domain.
        domain: crate::model::DomainId,
        /// The topic's name.
        name: Box<str>,
        /// Who wants it done.
        actor: Actor,
        /// What.
        op: TopicOp,
        /// Where the outcome goes.
        asker: Asker,
    },
    /// Something happened on a topic: to every shard, which walks its own subscribers.
    Publication(Arc<PubsubEvent>),
    /// A shard fell behind with a topic's publications, or caught up: to every shard, one of which is the topic's home.
    Pace {
        /// The topic.
        topic: TopicId,
        /// Which shard it is.
        shard: ShardId,
        /// How it keeps up now.
        pace: Pace,
    },
    /// An account follows a topic from now on: to the account's home. `last` is sent to its available sessions.
    Subscribed {
        /// The account.
        account: BareJid,
        /// The topic.
        topic: TopicId,
        /// The topic's last item, when it is to be sent.
        last: Option<Arc<PubsubEvent>>,
    },
    /// An account follows a topic no longer: to the account's home.
    Unsubscribed {
        /// The account.
        account: BareJid,
        /// The topic.
        topic: TopicId,
    },
    /// What a shard asked about a topic for its light sessions ([`TopicOp::Listen`]).
    Listening {
        /// The topic's name.
        name: Box<str>,
        /// What its home says.
        result: Result<TopicOutcome, Refusal>,
    },
    /// A topic is open to all no longer: to every shard, where those who are no accounts must leave it.
    Restricted {
        /// The topic.
        topic: TopicId,
    },
    /// A login failed: to every other shard, which counts failures by address.
    LoginFailed {
        /// From where.
        address: IpAddr,
    },
    /// An account is being registered: to every other shard, which counts registrations by address.
    Registered {
        /// From where.
        address: IpAddr,
    },
    /// The store ended a notification by itself, because it expired: to any shard, which counts and tells it.
    Expired(Box<Trace>),
    /// The domains of the node changed: to every shard.
    Domains(Arc<Domains>),
}

/// How a shard keeps up with what is published to a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// It does, or does again.
    #[default]
    CaughtUp,
    /// It does not: nothing more is to be published for now.
    Behind,
}
