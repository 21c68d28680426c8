//! What one home sends another, through the shards' inboxes.

mod account;
mod adopted;
mod claim;
mod game;
mod room;

pub use account::{AccountMessage, Announcement, Requester, RosterCause};
pub use adopted::{AdoptionMessage, Orphan, Orphans};
pub use claim::{ClaimMessage, Claimant};
pub use game::{GameMessage, NewMatch, QueueAddress, Wish};
pub use room::{RoomAbout, RoomAudience, RoomEvent, RoomOp, RoomRecipient, RoomSeat, RoomStanza};

use crate::command::{Actor, Asker, Command, Refusal, ReplyTo, TopicOp, TopicOutcome};
use crate::model::{Broadcast, DomainId, ExpiredMessage, Place, PubsubEvent, Settlement, TopicId, Trace};
use carillon_wire::jid::BareJid;
use carillon_wire::stanza::Stanza;
use smallvec::SmallVec;
use std::net::IpAddr;
use std::sync::Arc;

/// A message between homes.
#[derive(Debug)]
pub enum ShardMessage {
    /// A stanza for the home of its `to`.
    Stanza {
        /// The stanza.
        stanza: Stanza,
        /// Who waits until it is settled.
        settlement: Option<Settlement>,
    },
    /// What this server answers to a stanza of an account, for the account's home. It bypasses the filters there, so that the sender is given it before the
    /// acknowledgement of the stanza.
    Reply {
        /// The stanza.
        stanza: Stanza,
    },
    /// A message for the home of these accounts, which is the same shard.
    ForAccounts {
        /// The accounts.
        to: Addressees,
        /// The message.
        message: AccountMessage,
    },
    /// A message is settled. Sent to the home of its sender.
    Settled(Settlement),
    /// A command from outside.
    Command {
        /// The command.
        command: Command,
        /// Where its outcome goes.
        reply: ReplyTo,
    },
    /// An operation for the home of a topic.
    Topic {
        /// The topic's domain.
        domain: DomainId,
        /// The topic's name.
        name: Box<str>,
        /// Who asks.
        actor: Actor,
        /// The operation.
        op: TopicOp,
        /// Where the outcome goes.
        asker: Asker,
    },
    /// Something for the home of a room.
    Room {
        /// The room's domain.
        domain: DomainId,
        /// The room's kind.
        kind: crate::model::RoomKind,
        /// The room's name.
        name: Box<str>,
        /// What it is told.
        op: RoomOp,
    },
    /// What a room gives to clients that are on the same shard.
    RoomEvent(Box<RoomEvent>),
    /// Something happened on a topic. Sent to every shard, each of which gives it to its own followers.
    Publication(Arc<PubsubEvent>),
    /// A shard fell behind with a topic's publications, or caught up. Sent to every shard, because one of them is the topic's
    /// home.
    Pace {
        /// The topic.
        topic: TopicId,
        /// Which shard it is.
        place: Place,
        /// How it keeps up now.
        pace: Pace,
    },
    /// An account follows a topic from now on. Sent to the account's home, which gives `last` to its available sessions.
    Subscribed {
        /// The account.
        account: BareJid,
        /// The topic.
        topic: TopicId,
        /// The topic's last item, when it is to be sent.
        last: Option<Arc<PubsubEvent>>,
    },
    /// An account no longer follows a topic. Sent to the account's home.
    Unsubscribed {
        /// The account.
        account: BareJid,
        /// The topic.
        topic: TopicId,
    },
    /// The answer to what a shard asked about a topic for its light sessions ([`TopicOp::Listen`]).
    Listening {
        /// The topic's name.
        name: Box<str>,
        /// The home's answer.
        result: Result<TopicOutcome, Refusal>,
    },
    /// A topic is no longer open to all. Sent to every shard, where anonymous connections stop following it.
    Restricted {
        /// The topic.
        topic: TopicId,
    },
    /// A login failed. Sent to every other shard, because each counts failures by address.
    LoginFailed {
        /// The client's address.
        address: IpAddr,
    },
    /// An account is being registered. Sent to every other shard, because each counts registrations by address.
    Registered {
        /// The client's address.
        address: IpAddr,
    },
    /// Sessions of a domain on the shard that says it were given more than they may. Sent to every other shard: nothing is published to topics of the domain
    /// for so long.
    GivenAll {
        /// The domain.
        domain: DomainId,
        /// Milliseconds after which it is paid for.
        wait_ms: u64,
    },
    /// The store ended a notification because it expired. Sent to any one shard, which counts and reports it.
    Expired(Box<Trace>),
    /// The time is over of a message that the store keeps for an account. Sent to the account's home, which has it deleted.
    MessageExpired(Box<ExpiredMessage>),
    /// Something about the homes of accounts, from another node.
    Claim(Box<ClaimMessage>),
    /// Broadcasts were created or changed. Sent to every shard.
    Broadcasts(Box<BroadcastNews>),
    /// Something between a queue of the matchmaker and the home of a match.
    Game(Box<GameMessage>),
    /// What follows from the death of a node, for the home of an account.
    Adoption(Box<AdoptionMessage>),
}

crate::form! {
    enum ShardMessage {
        0 = Stanza { stanza, settlement },
        1 = Reply { stanza },
        2 = ForAccounts { to, message },
        3 = Settled(settlement),
        4 = Command { command, reply },
        5 = Topic { domain, name, actor, op, asker },
        6 = Publication(event),
        7 = Pace { topic, place, pace },
        8 = Subscribed { account, topic, last },
        9 = Unsubscribed { account, topic },
        10 = Listening { name, result },
        11 = Restricted { topic },
        12 = LoginFailed { address },
        13 = Registered { address },
        14 = Expired(trace),
        15 = Room { domain, kind, name, op },
        16 = RoomEvent(event),
        17 = MessageExpired(expired),
        18 = Claim(claim),
        19 = Broadcasts(news),
        21 = Game(message),
        22 = Adoption(message),
        23 = GivenAll { domain, wait_ms },
    }
}

impl ShardMessage {
    /// Bytes that it takes in memory, as far as a client or a sender chose them: what the bounds of inboxes count.
    pub fn memory_bytes(&self) -> usize {
        let carried = match self {
            ShardMessage::Stanza { stanza, .. } | ShardMessage::Reply { stanza } => stanza.memory_bytes(),
            ShardMessage::Command { command, .. } => command.payload_bytes(),
            ShardMessage::Topic { op, .. } => op.payload_bytes(),
            ShardMessage::Room { op, .. } => op.memory_bytes(),
            ShardMessage::RoomEvent(event) => event.memory_bytes(),
            ShardMessage::Publication(event) | ShardMessage::Subscribed { last: Some(event), .. } => {
                event.bytes()
            }
            ShardMessage::ForAccounts { to, message } => {
                to.len() * size_of::<BareJid>() + message.memory_bytes()
            }
            ShardMessage::MessageExpired(expired) => expired.message.stanza.len(),
            ShardMessage::Claim(claim) => claim.memory_bytes(),
            ShardMessage::Game(message) => message.memory_bytes(),
            ShardMessage::Adoption(message) => message.memory_bytes(),
            ShardMessage::Broadcasts(news) => news.changed.iter().map(|one| one.bytes()).sum(),
            ShardMessage::Settled(_)
            | ShardMessage::Pace { .. }
            | ShardMessage::Subscribed { last: None, .. }
            | ShardMessage::Unsubscribed { .. }
            | ShardMessage::Listening { .. }
            | ShardMessage::Restricted { .. }
            | ShardMessage::LoginFailed { .. }
            | ShardMessage::Registered { .. }
            | ShardMessage::GivenAll { .. }
            | ShardMessage::Expired(_) => 0,
        };
        size_of::<ShardMessage>() + carried
    }
}

/// What a shard is told of broadcasts.
#[derive(Debug)]
pub struct BroadcastNews {
    /// Broadcasts as they are now.
    pub changed: Vec<Arc<Broadcast>>,
    /// Whether these are all that are open.
    pub is_all: bool,
    /// Whether all shards of all nodes are to be told by this one.
    pub tell: bool,
}

crate::form! { struct BroadcastNews { changed, is_all, tell } }

/// Whom a message is for: mostly one.
pub type Addressees = SmallVec<[BareJid; 1]>;

/// How a shard keeps up with what is published to a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// It keeps up, or has caught up again.
    #[default]
    CaughtUp,
    /// It does not keep up: nothing more may be published for now.
    Behind,
}

crate::form! { enum Pace { 0 = CaughtUp, 1 = Behind } }
