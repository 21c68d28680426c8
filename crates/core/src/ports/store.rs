//! The durable store: accounts, topics, retained items, waiting notifications, keys.
//!
//! Questions and answers are values, so that the same machine that asks them can be simulated, and so that a store can
//! coalesce the questions of many sessions into one query and the writes of many into one commit.

#![expect(missing_docs, reason = "the sentence of a variant says what its fields are")]

use super::Reply;
use crate::model::*;
use bytes::Bytes;
use carillon_wire::jid::BareJid;
use std::sync::Arc;

/// The durable store.
///
/// Guarantees, for every implementation:
/// - **Durable before answered.** The answer to a write is given only after its commit reached the disk.
/// - **Order.** Writes take effect, and are answered, in the order in which [`Store::ask`] was called by one thread.
///   A read sees every write that was answered before the read was asked.
/// - **All or nothing.** One question is one atomic step, also when many share a commit: one that fails changes nothing
///   and harms none of the others.
/// - **One answer.** `reply` is called exactly once, with [`Answer::Failed`] when the store could not do it.
pub trait Store: Send + Sync + 'static {
    /// Asks; returns at once. Past its bound of waiting questions a store answers [`Fault::Busy`] at once.
    fn ask(&self, ask: Ask, reply: Reply<Answer>);

    /// Asks all of them, in their order: the same as one after the other, at the price of one. Empties `asks`.
    fn ask_all(&self, asks: &mut Vec<(Ask, Reply<Answer>)>) {
        asks.drain(..).for_each(|(ask, reply)| self.ask(ask, reply));
    }

    /// Figures for the operator.
    fn stats(&self) -> StoreStats;

    /// Commits what waits and stops. Questions asked later are answered [`Fault::Closed`].
    fn close(&self);
}

/// A question to the store. Each names the [`Answer`] it gets when all is well.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Ask {
    // ---- domains
    /// All domains, ordered by name → [`Answer::Domains`].
    Domains,
    /// Creates a domain, or changes its policy when it exists → [`Answer::Domain`] (`created` says which).
    PutDomain { name: Box<str>, policy: Policy },
    /// Removes a domain with its accounts, topics, notifications and keys → [`Answer::Done`] or [`Answer::Missing`].
    DeleteDomain { domain: DomainId },

    // ---- accounts
    /// Who an account is and what proves it, before anything is proved. `local` is prepared → [`Answer::Identity`], or
    /// [`Answer::Missing`].
    Identity { domain: DomainId, local: Box<str> },
    /// What belongs to an account whose client has proved itself → [`Answer::Login`], or [`Answer::Missing`].
    /// Notifications that expired by `now` or are not due yet do not count as waiting.
    Login { account: AccountId, now: UnixMs },
    /// Creates an account → [`Answer::Account`], or [`Answer::Exists`], or [`Answer::Missing`] without the domain.
    CreateAccount { domain: DomainId, local: Box<str>, credentials: Credentials, now: UnixMs },
    /// Creates or replaces many accounts in one step → [`Answer::Count`] of accounts written.
    ImportAccounts { domain: DomainId, accounts: Vec<ImportedAccount>, now: UnixMs },
    /// Replaces an account's keys → [`Answer::Done`] or [`Answer::Missing`].
    SetCredentials { domain: DomainId, local: Box<str>, credentials: Credentials },
    /// Lets an account log in again, or no longer → [`Answer::Done`] or [`Answer::Missing`].
    SetAccountState { domain: DomainId, local: Box<str>, state: AccountState },
    /// Takes back the tokens of one client of an account, or of all → [`Answer::Revocations`] as they then are, or
    /// [`Answer::Missing`].
    RevokeTokens { domain: DomainId, local: Box<str>, agent: Option<AgentId> },
    /// Removes an account with all that belongs to it; its undelivered notifications end as
    /// [`DropReason::DeviceDeleted`] → [`Answer::Done`] or [`Answer::Missing`].
    DeleteAccount { domain: DomainId, local: Box<str>, now: UnixMs },
    /// An account without its keys, with the names of the topics it follows → [`Answer::Enrolment`] or [`Answer::Missing`].
    Account { domain: DomainId, local: Box<str> },
    /// Accounts in the order of their local part, those after `after`, at most `limit` → [`Answer::Enrolments`]
    /// (without topics).
    Accounts { domain: DomainId, after: Option<Box<str>>, limit: u16 },

    // ---- topics
    /// A topic → [`Answer::Topic`] or [`Answer::Missing`].
    Topic { domain: DomainId, name: Box<str> },
    /// Topics in the order of their names, those after `after`, at most `limit` → [`Answer::Topics`].
    Topics { domain: DomainId, after: Option<Box<str>>, limit: u16 },
    /// Creates a topic → [`Answer::Topic`], or [`Answer::Exists`], or [`Answer::Full`] when one of its owners owns
    /// `owned_max` topics already. `affiliations` as in [`TopicRecord`].
    CreateTopic {
        domain: DomainId,
        name: Box<str>,
        config: TopicConfig,
        affiliations: Vec<(BareJid, Affiliation)>,
        owned_max: u32,
        now: UnixMs,
    },
    /// Changes a topic's configuration; items over the new bound are removed → [`Answer::Done`] or [`Answer::Missing`].
    ConfigureTopic { topic: TopicId, config: TopicConfig },
    /// Sets affiliations ([`Affiliation::None`] removes one) → [`Answer::Done`] or [`Answer::Missing`].
    SetAffiliations { topic: TopicId, changes: Vec<(BareJid, Affiliation)> },
    /// Removes a topic with its items and subscriptions → [`Answer::Done`] or [`Answer::Missing`].
    DeleteTopic { topic: TopicId },
    /// Follows a topic → [`Answer::Subscribed`] with its last kept item and whether this is new; [`Answer::Missing`]
    /// without the account or the topic; [`Answer::Full`] when this would be new and it follows `max` topics already.
    Subscribe { topic: TopicId, domain: DomainId, local: Box<str>, max: u32, now: UnixMs },
    /// Follows it no longer → [`Answer::Done`], or [`Answer::Missing`] when it did not.
    Unsubscribe { topic: TopicId, domain: DomainId, local: Box<str> },
    /// The topics an account follows → [`Answer::TopicNames`].
    SubscriptionsOf { domain: DomainId, local: Box<str> },
    /// Whether an account follows a topic → [`Answer::Done`] or [`Answer::Missing`].
    IsSubscribed { topic: TopicId, domain: DomainId, local: Box<str> },
    /// Who follows a topic, in the order of their JIDs, those after `after`, at most `limit` → [`Answer::Jids`].
    Subscribers { topic: TopicId, after: Option<BareJid>, limit: u16 },
    /// How many accounts follow a topic → [`Answer::Count`].
    SubscriberCount { topic: TopicId },
    /// The topics to which an account stands in some way → [`Answer::Affiliations`].
    AffiliationsOf { domain: DomainId, jid: BareJid },
    /// Publishes an item. Kept when `keep` is not 0: then an item of the same id is replaced and the oldest items over
    /// `keep` are removed. `revision` in `item` is ignored → [`Answer::Published`] or [`Answer::Missing`].
    Publish { item: Item, keep: u32 },
    /// Removes an item → [`Answer::Done`] or [`Answer::Missing`].
    Retract { topic: TopicId, item: Box<str> },
    /// Removes every item of a topic → [`Answer::Done`].
    Purge { topic: TopicId },
    /// Kept items: those of `ids`, or when empty `max` of them from `from` on; newest first → [`Answer::Items`].
    /// [`Answer::Missing`] when the item that `from` names is not there. Once the payloads have more than `bytes_max`
    /// no further item is read; one always is.
    Items { topic: TopicId, ids: Vec<Box<str>>, from: ItemsFrom, max: u32, bytes_max: usize },
    /// The ids of kept items, as [`Ask::Items`] without `ids`; no payload is read → [`Answer::ItemNames`] or
    /// [`Answer::Missing`].
    ItemNames { topic: TopicId, from: ItemsFrom, max: u32 },

    // ---- notifications
    /// Keeps a notification; those of the same account and `collapse_key` that are still stored or scheduled end as
    /// replaced, and when the account then has over `queue_max` waiting, the oldest of the lowest priority end as
    /// [`DropReason::QueueFull`]. An id that is there already is left as it is → [`Answer::Stored`] or
    /// [`Answer::Missing`] without the account.
    StoreNotification { notification: Arc<Notification>, queue_max: u32, now: UnixMs },
    /// Ends notifications; a change of one that has ended otherwise, or is not there, is passed over → [`Answer::Done`].
    EndNotifications { changes: Vec<NotificationChange> },
    /// Takes a notification back → [`Answer::Trace`] as it then is (`Cancelled`, or what it already was), or
    /// [`Answer::Missing`].
    CancelNotification { id: NotificationId, now: UnixMs },
    /// A notification's trace → [`Answer::Trace`] or [`Answer::Missing`].
    Trace { id: NotificationId },
    /// Notifications that wait or have ended, newest first → [`Answer::Notifications`]. What a store looks at for one
    /// answer is bounded: it may give fewer than there are, and says where to go on.
    Notifications { query: NotificationQuery },
    /// The next waiting notifications of an account, in delivery order, leaving out `except`: at most `page` →
    /// [`Answer::Pending`].
    Pending { domain: DomainId, local: Box<str>, except: Vec<NotificationId>, page: Page, now: UnixMs },
    /// Scheduled notifications that are due by `now`: they become stored (audience always) or are removed from the
    /// store (others), and are handed out → [`Answer::Pending`].
    TakeDue { now: UnixMs, max: u16 },
    /// Ends what expired by `now` and forgets traces that ended before `forget` → [`Answer::Expired`]: at most `max`.
    Sweep { now: UnixMs, forget: UnixMs, max: u32 },

    // ---- offline messages
    /// Keeps a chat message → [`Answer::Done`]; [`Answer::Missing`] without the account; [`Answer::Full`] past `queue_max`.
    StoreOffline { domain: DomainId, local: Box<str>, received: UnixMs, stanza: Bytes, queue_max: u32 },
    /// The next offline messages of an account, those after `after`: at most `page` → [`Answer::Offline`].
    Offline { domain: DomainId, local: Box<str>, after: u64, page: Page },
    /// Forgets the offline messages of an account with these numbers → [`Answer::Done`].
    DeleteOffline { domain: DomainId, local: Box<str>, seqs: Vec<u64> },

    // ---- API keys and idempotency
    /// Makes a key known by its hash → [`Answer::Key`].
    CreateKey { hash: [u8; 32], name: Box<str>, domain: Option<DomainId>, scopes: Scopes, now: UnixMs },
    /// The key of this hash → [`Answer::Key`] or [`Answer::Missing`].
    Key { hash: [u8; 32] },
    /// Keys, those of `domain` or all → [`Answer::Keys`].
    Keys { domain: Option<DomainId> },
    /// Removes a key → [`Answer::Done`] or [`Answer::Missing`].
    DeleteKey { id: KeyId },
    /// Reserves an idempotency key of an API key for 24 hours → [`Answer::Reserved`].
    Reserve { key: KeyId, idempotency_key: Box<str>, body_hash: [u8; 32], now: UnixMs },
    /// Remembers the response that was given under a reservation → [`Answer::Done`].
    Remember { key: KeyId, idempotency_key: Box<str>, status: u16, response: Box<str> },
    /// The request under a reservation is over and has no response to be given again: the next with the same key and body
    /// goes at once. One that has a response keeps it → [`Answer::Done`].
    Release { key: KeyId, idempotency_key: Box<str> },
}

impl Ask {
    /// The newest items of a topic.
    pub fn newest(topic: TopicId, max: u32) -> Ask {
        Ask::Items { topic, ids: Vec::new(), from: ItemsFrom::Newest, max, bytes_max: usize::MAX }
    }
}

/// The bounds of a page. It ends before the entry that would take it over `bytes`, but the first entry is in it whatever its
/// size, unless `entries` is 0: whoever reads page after page comes to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Entries at most.
    pub entries: u16,
    /// Bytes at most of what the entries carry: payloads of notifications, whole stanzas of messages.
    pub bytes: usize,
}

/// An answer of the store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Answer {
    /// Done and committed.
    Done,
    /// What the question is about is not there.
    Missing,
    /// What was to be created is there already.
    Exists,
    /// A bound was reached; nothing was changed.
    Full,
    /// The store could not do it; nothing was changed.
    Failed(Fault),
    /// To [`Ask::Domains`].
    Domains(Vec<Domain>),
    /// To [`Ask::PutDomain`].
    Domain { domain: Domain, created: bool },
    /// To [`Ask::Identity`].
    Identity(Box<Identity>),
    /// To [`Ask::Login`].
    Login(Box<Login>),
    /// To [`Ask::CreateAccount`].
    Account(AccountId),
    /// To [`Ask::RevokeTokens`].
    Revocations(Revocations),
    /// To [`Ask::ImportAccounts`] and [`Ask::SubscriberCount`].
    Count(u64),
    /// To [`Ask::Account`].
    Enrolment(Box<Enrolment>),
    /// To [`Ask::Accounts`].
    Enrolments(Vec<Enrolment>),
    /// To [`Ask::Topic`] and [`Ask::CreateTopic`].
    Topic(Box<TopicRecord>),
    /// To [`Ask::Topics`].
    Topics(Vec<TopicRecord>),
    /// To [`Ask::Subscribe`].
    Subscribed { new: bool, last: Option<Arc<Item>> },
    /// To [`Ask::SubscriptionsOf`]: ordered by name.
    TopicNames(Vec<(TopicId, Box<str>)>),
    /// To [`Ask::Subscribers`].
    Jids(Vec<BareJid>),
    /// To [`Ask::AffiliationsOf`]: ordered by topic name.
    Affiliations(Vec<(Box<str>, Affiliation)>),
    /// To [`Ask::Publish`]: the item with its revision.
    Published(Arc<Item>),
    /// To [`Ask::Items`].
    Items(Vec<Arc<Item>>),
    /// To [`Ask::ItemNames`]: newest first; how many items the topic has.
    ItemNames { ids: Vec<Box<str>>, count: u32 },
    /// To [`Ask::StoreNotification`]: whether it was new, and the notifications that ended because of it.
    Stored { new: bool, ended: Vec<Trace> },
    /// To [`Ask::CancelNotification`] and [`Ask::Trace`].
    Trace(Box<Trace>),
    /// To [`Ask::Notifications`]: newest first. `next` is what to give as `before` for those that come after; none when
    /// there are no more.
    Notifications { traces: Vec<Trace>, next: Option<NotificationId> },
    /// To [`Ask::Pending`] and [`Ask::TakeDue`]; whether there are more.
    Pending { notifications: Vec<Pending>, more: bool },
    /// To [`Ask::Sweep`]: the traces of those that expired just now; whether there are more.
    Expired { traces: Vec<Trace>, more: bool },
    /// To [`Ask::Offline`]; whether there are more.
    Offline { messages: Vec<OfflineMessage>, more: bool },
    /// To [`Ask::CreateKey`] and [`Ask::Key`].
    Key(ApiKey),
    /// To [`Ask::Keys`].
    Keys(Vec<ApiKey>),
    /// To [`Ask::Reserve`].
    Reserved(Reservation),
}

/// How a notification of the store ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationChange {
    /// Which.
    pub id: NotificationId,
    /// [`NotificationState::Acknowledged`], `Expired` or `Dropped`; `Sent` only notes the time.
    pub state: NotificationState,
    /// When a connection took it.
    pub sent: Option<UnixMs>,
    /// When it ended.
    pub at: UnixMs,
    /// Who acknowledged it.
    pub acknowledged_by: Option<AcknowledgedBy>,
    /// Why it was dropped.
    pub reason: Option<DropReason>,
}

/// An account as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enrolment {
    /// Its number.
    pub id: AccountId,
    /// Its bare JID.
    pub jid: BareJid,
    /// Whether it may log in.
    pub state: AccountState,
    /// When it was created.
    pub created: UnixMs,
    /// The names of the topics it follows, where asked for.
    pub topics: Vec<Box<str>>,
    /// How many notifications wait for it.
    pub pending: u32,
}

/// One account of an import.
#[derive(Clone, Debug)]
pub struct ImportedAccount {
    /// The prepared local part.
    pub local: Box<str>,
    /// Its keys.
    pub credentials: Credentials,
}

/// What an idempotency key stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reservation {
    /// Not seen before, or released, or seen and never finished: do it. `since` is when it was first reserved, so that ids made from
    /// it are the same each time.
    Go { since: UnixMs },
    /// Done before: give this response again.
    Replay { status: u16, response: Box<str> },
    /// Used with another body.
    Mismatch,
    /// Another request with it is being worked on (reserved less than 60 s ago, no response yet).
    InProgress,
}

/// Why the store could not do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Too many questions wait; ask again later.
    #[error("the store has too many questions waiting")]
    Busy,
    /// The store is being closed.
    #[error("the store is closed")]
    Closed,
    /// The disk or the database failed; the store's log says more.
    #[error("the store failed")]
    Broken,
}

/// Figures of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Questions waiting.
    pub waiting: u64,
    /// Questions answered since the start.
    pub answered: u64,
    /// Commits since the start.
    pub commits: u64,
    /// Writes that shared those commits.
    pub writes: u64,
    /// How long each commit took to be on disk.
    pub commit: Durations,
    /// Size of the database in bytes.
    pub bytes: u64,
}
