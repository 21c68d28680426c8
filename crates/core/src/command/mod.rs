//! Commands: what the HTTP API, queues and operators ask for. A pubsub request over XMPP becomes the same [`TopicOp`] as one
//! over HTTP, so that there is one implementation.

#![expect(missing_docs, reason = "the sentence of a variant says what its fields are")]

mod asker;
mod change;
mod game;
mod pending_iq;
mod refusal;
mod room;

pub use crate::model::ConfigChange;
pub use asker::{About, Asker, TopicIq};
pub(crate) use change::check_topic_config;
pub use game::{MatchRequest, QueueOutcome, QueueRefusal, QueueRequest};
pub use pending_iq::PendingIq;
pub(crate) use refusal::DOMAIN_IS_FULL;
pub use refusal::{NoRoom, Refusal, Unacceptable};
pub use room::{
    RoomMemberChange, RoomOccupant, RoomOutcome, RoomPhoto, RoomRefusal, RoomRequest, RoomSpeaker,
};

use crate::model::*;
use crate::ports::modules::PushText;
use crate::ports::store::notifications::NotificationQuery;
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::Stanza;
use std::sync::Arc;

/// Something to be done, addressed to the home shard of what it is about.
#[derive(Clone, Debug)]
pub enum Command {
    /// Deliver a notification → [`Outcome::Notified`].
    Notify(Arc<Notification>),
    /// The same, and every step of it is told ([`Effect::Hop`](crate::Effect::Hop)) on the node of its account's home → [`Outcome::Notified`].
    NotifyFollowed { notification: Arc<Notification>, context: TraceContext },
    /// Cancel a notification → [`Outcome::Trace`] or [`Outcome::Missing`].
    Cancel { id: NotificationId },
    /// What became of a notification → [`Outcome::Trace`] or [`Outcome::Missing`].
    Trace { id: NotificationId },
    /// Traces of notifications that this shard has in memory, and the store not at all or in an earlier state: those of
    /// `ids`, and the newest that match of those that are never stored → [`Outcome::Traces`], in no particular order.
    TracesInMemory { query: Arc<NotificationQuery>, ids: Arc<[NotificationId]> },
    /// Do something with a topic → the [`TopicOutcome`] of the operation.
    Topic { domain: DomainId, name: Box<str>, actor: Actor, op: TopicOp },
    /// End sessions of an account, or one of them → [`Outcome::Count`] of sessions ended. `reason` is the stream error:
    /// the account is gone, its credentials changed, or an operator said so.
    Kick { jid: Jid, reason: KickReason },
    /// Accounts were changed in the store: their homes forget what they remember of them → [`Outcome::Count`] 0.
    Changed { accounts: Arc<[BareJid]> },
    /// Send a stanza in the name of an account, which is there: a message, as if one of its sessions had sent it → [`Outcome::Count`] 0 when it is settled; or a
    /// request or a presence that the account's home decides on → the same, if there is no reply. Replies, the recipient's errors too, are
    /// [`Outcome::Answered`].
    Act { account: BareJid, stanza: Box<Stanza> },
    /// Revoke the tokens of an account (XEP-0484) → [`Outcome::Count`] 0 or [`Outcome::Missing`].
    RevokeTokens { domain: DomainId, account: BareJid },
    /// Remove an account with all that belongs to it: its contacts are told, and its sessions end → [`Outcome::Count`] 0 or
    /// [`Outcome::Missing`].
    RemoveAccount { domain: DomainId, account: BareJid },
    /// Rosters were changed in the store because contacts in them were removed: the homes of their accounts are told, by any shard →
    /// [`Outcome::Count`] 0.
    ContactsRemoved { changes: Vec<RosterChange> },
    /// Which of these accounts have sessions; this shard is their home → [`Outcome::Presence`].
    Presence { accounts: Arc<[BareJid]> },
    /// The counts of each of these topics on this shard → [`Outcome::TopicFigures`], one for each.
    TopicFigures { topics: Arc<[TopicId]> },
    /// The live sessions of this shard, at most `limit`, those of `account` or of `domain` or all → [`Outcome::Sessions`].
    Sessions { domain: Option<DomainId>, account: Option<BareJid>, limit: usize },
    /// Whether a session of an account has what a room said then → [`Outcome::Hearing`].
    Hears { account: BareJid, room: BareJid, said: UnixMs },
    /// Have modules decide on what a push for an account tells → [`Outcome::PushText`].
    RenderPush { account: BareJid, text: Box<PushText> },
    /// How many accounts have a session on this shard that would be given a broadcast now → [`Outcome::Count`].
    CountReached { broadcast: Arc<Broadcast> },
    /// Do something with a room → the [`RoomOutcome`] of the request.
    Room { domain: DomainId, kind: RoomKind, name: Box<str>, request: Box<RoomRequest> },
    /// Do something with a queue of the matchmaker → [`Outcome::Queue`].
    Queue { domain: DomainId, name: Box<str>, request: Box<QueueRequest> },
    /// Do something with a match of a domain → [`Outcome::Match`] or [`Outcome::Missing`].
    Match { domain: DomainId, id: MatchId, request: MatchRequest },
}

crate::form! {
    enum Command {
        0 = Notify(notification),
        1 = Cancel { id },
        2 = Trace { id },
        3 = TracesInMemory { query, ids },
        4 = Topic { domain, name, actor, op },
        5 = Kick { jid, reason },
        6 = Changed { accounts },
        7 = Act { account, stanza },
        8 = RevokeTokens { domain, account },
        9 = RemoveAccount { domain, account },
        10 = ContactsRemoved { changes },
        11 = Presence { accounts },
        12 = TopicFigures { topics },
        13 = Sessions { domain, account, limit },
        14 = Room { domain, kind, name, request },
        15 = CountReached { broadcast },
        20 = Queue { domain, name, request },
        21 = Match { domain, id, request },
        22 = Hears { account, room, said },
        23 = RenderPush { account, text },
        24 = NotifyFollowed { notification, context },
    }
}

/// Who wants something done with a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A provider with scope `topics`: may do everything in its domain.
    Provider,
    /// An account, by its session.
    Account(Jid),
    /// An anonymous connection: may listen to open topics, and nothing else.
    Anyone,
}

crate::form! { enum Actor { 0 = Provider, 1 = Account(jid), 2 = Anyone } }

/// An operation on a topic.
#[derive(Clone, Debug)]
pub enum TopicOp {
    /// Create it; fails when it is there → [`TopicOutcome::Record`].
    Create { config: TopicConfig },
    /// Create it or change its configuration → [`TopicOutcome::Record`].
    Put { config: TopicConfig },
    /// Change its configuration → [`TopicOutcome::Record`].
    Configure { config: TopicConfig },
    /// Change some of its configuration → [`TopicOutcome::Record`].
    Amend { change: ConfigChange },
    /// Its record → [`TopicOutcome::Record`].
    Describe,
    /// Its record, for those who may change it → [`TopicOutcome::Record`].
    Manage,
    /// Remove it with its items and subscriptions → [`TopicOutcome::Done`].
    Delete,
    /// Publish an item; the server makes an id if there is none. With the id of an operation it is done once, however often it is asked for
    /// with it → [`TopicOutcome::Published`].
    Publish { id: Option<Box<str>>, payload: Payload, operation: Option<OperationId> },
    /// Publish an item if the topic has this configuration; a topic that the publication creates gets it (XEP-0060 §7.1.5).
    PublishIf { id: Option<Box<str>>, payload: Payload, options: ConfigChange },
    /// Tell followers that something happened, without an item (XEP-0060 §7.1.1), if the topic has this configuration → [`TopicOutcome::Published`].
    PublishNothing { options: ConfigChange },
    /// Remove an item; `notify` overrides the topic's `notify_retract` → [`TopicOutcome::Done`].
    Retract { id: Box<str>, notify: Option<bool> },
    /// Remove every item → [`TopicOutcome::Done`].
    Purge,
    /// Its kept items: those of `ids`, or at most `max`. They end when their payloads reach `bytes_max` →
    /// [`TopicOutcome::Items`].
    Items { ids: Vec<Box<str>>, from: ItemsFrom, max: Option<u32>, bytes_max: usize },
    /// The ids of at most `max` of its items → [`TopicOutcome::ItemNames`].
    ItemNames { from: ItemsFrom, max: u32 },
    /// Make an account follow it → [`TopicOutcome::Subscribed`].
    Subscribe { account: BareJid },
    /// End an account's subscription → [`TopicOutcome::Done`].
    Unsubscribe { account: BareJid },
    /// Its number and last item, for anonymous followers → [`TopicOutcome::Listening`].
    Listen,
    /// Its followers, those after `after` → [`TopicOutcome::Jids`].
    Subscribers { after: Option<BareJid>, max: u16 },
    /// Change its affiliations → [`TopicOutcome::Done`].
    SetAffiliations { changes: Vec<(BareJid, Affiliation)> },
}

crate::form! {
    enum TopicOp {
        0 = Create { config },
        1 = Put { config },
        2 = Configure { config },
        3 = Amend { change },
        4 = Describe,
        5 = Manage,
        6 = Delete,
        7 = Publish { id, payload, operation },
        8 = PublishIf { id, payload, options },
        9 = PublishNothing { options },
        10 = Retract { id, notify },
        11 = Purge,
        12 = Items { ids, from, max, bytes_max },
        13 = ItemNames { from, max },
        14 = Subscribe { account },
        15 = Unsubscribe { account },
        16 = Listen,
        17 = Subscribers { after, max },
        18 = SetAffiliations { changes },
    }
}

impl Command {
    /// Bytes of the payload that it carries.
    pub fn payload_bytes(&self) -> usize {
        match self {
            Command::Notify(notification) | Command::NotifyFollowed { notification, .. } => {
                notification.payload.bytes()
            }
            Command::Topic { op, .. } => op.payload_bytes(),
            Command::Act { stanza, .. } => stanza.memory_bytes(),
            Command::Room { request, .. } => request.bytes(),
            Command::Queue { request, .. } => request.bytes(),
            Command::RenderPush { text, .. } => text.bytes(),
            Command::ContactsRemoved { changes } => changes.iter().map(RosterChange::bytes).sum(),
            _ => 0,
        }
    }
}

impl TopicOp {
    /// Bytes of the payload that it carries.
    pub fn payload_bytes(&self) -> usize {
        match self {
            TopicOp::Publish { payload, .. } | TopicOp::PublishIf { payload, .. } => payload.bytes(),
            _ => 0,
        }
    }

    /// Whether an item is published.
    pub(crate) fn is_published(&self) -> bool {
        matches!(self, TopicOp::Publish { .. } | TopicOp::PublishIf { .. })
    }

    /// Whether followers are told of each such operation: it may then be done no faster than they can be told.
    pub(crate) fn is_told(&self) -> bool {
        match self {
            TopicOp::Publish { .. }
            | TopicOp::PublishIf { .. }
            | TopicOp::PublishNothing { .. }
            | TopicOp::Retract { .. }
            | TopicOp::Purge => true,
            TopicOp::Create { .. }
            | TopicOp::Put { .. }
            | TopicOp::Configure { .. }
            | TopicOp::Amend { .. }
            | TopicOp::Describe
            | TopicOp::Manage
            | TopicOp::Delete
            | TopicOp::Items { .. }
            | TopicOp::ItemNames { .. }
            | TopicOp::Subscribe { .. }
            | TopicOp::Unsubscribe { .. }
            | TopicOp::Listen
            | TopicOp::Subscribers { .. }
            | TopicOp::SetAffiliations { .. } => false,
        }
    }
}

/// Why a session is ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KickReason {
    /// An operator said so: `<policy-violation/>`.
    Operator,
    /// Its credentials were changed or revoked: `<not-authorized/>`.
    Credentials,
    /// It was disabled: `<not-authorized/>`.
    Disabled,
    /// Its account is gone: `<not-authorized/>`.
    Gone,
    /// Its domain is about to go: `<host-gone/>`.
    DomainGone,
}

crate::form! { enum KickReason { 0 = Operator, 1 = Credentials, 2 = Disabled, 3 = Gone, 4 = DomainGone } }

/// What became of a command.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// To [`Command::Notify`]: the trace so far.
    Notified(Box<Trace>),
    /// To [`Command::Trace`] and [`Command::Cancel`].
    Trace(Box<Trace>),
    /// To [`Command::TracesInMemory`].
    Traces(Vec<Trace>),
    /// To [`Command::Topic`].
    Topic(Result<TopicOutcome, Refusal>),
    /// To [`Command::Kick`].
    Count(u64),
    /// To [`Command::Presence`]: those that have a session, in no order.
    Presence(Vec<AccountPresence>),
    /// To [`Command::TopicFigures`].
    TopicFigures(Vec<TopicFigures>),
    /// To [`Command::Sessions`].
    Sessions(Vec<SessionInfo>),
    /// To [`Command::Act`]: a result or an error.
    Answered(Box<Stanza>),
    /// To [`Command::Room`].
    Room(Result<RoomOutcome, RoomRefusal>),
    /// To [`Command::Queue`].
    Queue(Box<Result<QueueOutcome, QueueRefusal>>),
    /// To [`Command::Match`].
    Match(Box<MatchView>),
    /// To [`MatchRequest::Watch`]: what a spectator joins with, and until when.
    MatchToken { token: Box<str>, expires: UnixMs },
    /// To [`MatchRequest::Replay`].
    MatchReplay(Box<MatchReplay>),
    /// To [`Command::Hears`].
    Hearing(Hearing),
    /// To [`Command::RenderPush`]: what is told instead; none if the push is not to be sent.
    PushText(Option<Box<PushText>>),
    /// The subject of the command does not exist.
    Missing,
    /// The node could not do it now (store busy or broken, or shutting down); nothing was changed.
    Unavailable,
    /// The store failed, and it is unknown whether it was done before ([`Fault::Unknown`](crate::ports::Fault::Unknown)).
    Unknown,
}

crate::form! {
    enum Outcome {
        0 = Notified(trace),
        1 = Trace(trace),
        2 = Traces(traces),
        3 = Topic(result),
        4 = Count(count),
        5 = Presence(present),
        6 = TopicFigures(figures),
        7 = Sessions(sessions),
        8 = Answered(stanza),
        9 = Missing,
        10 = Unavailable,
        11 = Unknown,
        12 = Room(result),
        20 = Queue(result),
        21 = Match(view),
        22 = MatchToken { token, expires },
        23 = MatchReplay(replay),
        24 = Hearing(hearing),
        25 = PushText(text),
    }
}

/// Whether a session of an account has what a room said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hearing {
    /// None has a connection and is given what the room says, or it does not acknowledge it.
    None,
    /// One was given it, and may acknowledge it until then.
    Until(UnixMs),
    /// One has it.
    Has,
}

crate::form! { enum Hearing { 0 = None, 1 = Until(at), 2 = Has } }

/// What became of an operation on a topic.
#[derive(Clone, Debug)]
pub enum TopicOutcome {
    /// Done.
    Done,
    /// The topic's record; whether it was created just now.
    Record { record: Arc<TopicRecord>, created: bool },
    /// The item as it was published.
    Published(Arc<Item>),
    /// Items, newest first.
    Items(Vec<Arc<Item>>),
    /// Ids of items, newest first, and how many items there are in all.
    ItemNames { ids: Vec<Box<str>>, count: u32 },
    /// Whether the subscription is new.
    Subscribed { new: bool },
    /// Accounts.
    Jids(Vec<BareJid>),
    /// The topic, and its last item where new followers are given it. The shard that asked was given every earlier event, and
    /// no later one.
    Listening { topic: TopicId, last: Option<Arc<PubsubEvent>> },
}

crate::form! {
    enum TopicOutcome {
        0 = Done,
        1 = Record { record, created },
        2 = Published(item),
        3 = Items(items),
        4 = ItemNames { ids, count },
        5 = Subscribed { new },
        6 = Jids(jids),
        7 = Listening { topic, last },
    }
}

/// An account that has sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountPresence {
    /// Its index among the accounts that were asked about.
    pub index: usize,
    /// The number of its sessions.
    pub sessions: usize,
    /// The best reach of its sessions.
    pub reach: Reach,
    /// Since when it has had a session without interruption, as far as its present sessions show.
    pub since: UnixMs,
}

crate::form! { struct AccountPresence { index, sessions, reach, since } }

/// Which notifications reach an account, or a session of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// None: it sent no presence, or is unavailable.
    Unavailable,
    /// All but those for the audience `active`.
    Asleep,
    /// All.
    Active,
}

crate::form! { enum Reach { 0 = Unavailable, 1 = Asleep, 2 = Active } }

/// The counts of a topic since the start, and its present followers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopicFigures {
    /// Sessions that follow it now.
    pub sessions: u64,
    /// Items published on it.
    pub published: u64,
    /// Items given to its followers' connections.
    pub delivered: u64,
}

crate::form! { struct TopicFigures { sessions, published, delivered } }

impl std::ops::AddAssign for TopicFigures {
    fn add_assign(&mut self, other: TopicFigures) {
        self.sessions += other.sessions;
        self.published += other.published;
        self.delivered += other.delivered;
    }
}

/// A bound session, as shown to an operator.
#[derive(Clone, Debug)]
pub struct SessionInfo {
    /// Its full JID.
    pub jid: Jid,
    /// Whether its connection is lost, and it waits for its client to resume it.
    pub parked: bool,
    /// The client's address, the last one where it is parked.
    pub address: Option<std::net::IpAddr>,
    /// What carries its stanzas, or carried them where it is parked; none if an older release parked it.
    pub transport: Option<Transport>,
    /// When it was bound.
    pub since: UnixMs,
    /// How available it is.
    pub presence: Availability,
    /// Whether stream management is on.
    pub stream_management: bool,
    /// How many topics it follows.
    pub topics: u32,
    /// Notifications given to it and not yet acknowledged.
    pub unacknowledged: u32,
    /// The node that its connection is on, where that is another than the session's.
    pub via: Option<NodeId>,
    /// The node that it is on: its account's home.
    pub home: NodeId,
}

crate::form! {
    struct SessionInfo {
        jid, parked, address, transport, since, presence, stream_management, topics, unacknowledged,
        via: since(5), home: since(5),
    }
}

/// A notification reached a state: those who watch are told.
#[derive(Clone, Debug)]
pub struct StateChange {
    /// The domain of its account.
    pub domain: DomainId,
    /// What is known of it.
    pub trace: Arc<Trace>,
}

/// Where the outcome of a command goes: a number that the node which gave the command resolves. It is given one outcome at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyTo {
    /// The node that gave the command.
    pub node: NodeId,
    /// The number by which that node knows who waits.
    pub number: u64,
}

crate::form! { struct ReplyTo { node, number } }
