//! What the cases stand on: asking and waiting, and the usual things to ask about.

use bytes::Bytes;
use carillon_core::model::*;
use carillon_core::ports::Store;
use carillon_core::ports::store::{Question, accounts, domains, notifications};
use carillon_wire::jid::BareJid;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

pub(super) use carillon_core::ports::store::accounts::{
    Account, Accounts, CreateAccount, CreateAccountAnswer, DeleteAccount, Enrolment, ImportAccounts,
    ImportRefused, ImportedAccount, RevokeTokens, SetAccountState, SetCredentials, UnfinishedRemoval,
    UnfinishedRemovals,
};
pub(super) use carillon_core::ports::store::domains::{
    ChangePolicy, DOMAIN_PART_ROWS, DeleteDomain, DomainUsage, NoteStored, Overtaken, PutDomain,
    PutDomainAnswer, SetPushTemplates, StoredBytes, StoredKind, Usage,
};
pub(super) use carillon_core::ports::store::idempotency::{
    ENTRY_BYTES, LINES_MAX, LineDigest, NoteLines, Release, Remember, Reservation, Reserve,
};
pub(super) use carillon_core::ports::store::items::{
    ItemNames, ItemNamesAnswer, Items, Publish, Purge, Retract,
};
pub(super) use carillon_core::ports::store::keys::{
    CreateKey, CreateKeyAnswer, DeleteKey, Key, Keys, NODE_KEYS_MAX,
};
pub(super) use carillon_core::ports::store::notifications::{
    CancelNotification, CancelNotificationAnswer, ClaimDue, EndNotifications, Events, NotificationChange,
    NotificationQuery, Pending, StoreNotification, StoreNotificationAnswer, Sweep, Unended, Whose,
};
pub(super) use carillon_core::ports::store::offline::{
    DeleteOffline, ExpiredOffline, Offline, StoreOffline, StoreOfflineAnswer,
};
pub(super) use carillon_core::ports::store::parked::{
    ForgetParked, ParkedGroup, ParkedGroups, StoreParked, StoreParkedAnswer,
};
pub(super) use carillon_core::ports::store::roster::{
    ChangeSubscription, ChangeSubscriptionAnswer, PutContact, PutContactAnswer, ReadRecord, RemoveContact,
    RemoveContactAnswer,
};
pub(super) use carillon_core::ports::store::subscriptions::{
    IsSubscribed, Subscribe, SubscribeAnswer, SubscriberCount, Subscribers, SubscriptionsOf, Unsubscribe,
};
pub(super) use carillon_core::ports::store::topics::{
    AffiliationsOf, ConfigureTopic, CreateTopic, CreateTopicAnswer, DeleteTopic, SetAffiliations,
    TOPIC_PART_ROWS, Topic, Topics,
};
pub(super) use carillon_core::ports::store::webhooks::{
    ClaimWebhooks, CommitWebhook, CreateWebhook, CreateWebhookAnswer, DeleteDeadLetters, DeleteWebhook, Lost,
    UpdateWebhook, Webhooks,
};
pub(super) use carillon_core::ports::{Fault, Missing, Page, Part};

/// When the cases take place.
pub(super) const T: UnixMs = UnixMs(1_795_167_000_000);

/// Longer than any answer takes, so that a store that never answers fails the case instead of hanging it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Takes what the pattern binds out of the answer, or fails with the answer.
macro_rules! answer {
    ($answer:expr, $pattern:pat => $value:expr) => {
        match $answer {
            $pattern => $value,
            other => panic!("expected {}, got {other:?}", stringify!($pattern)),
        }
    };
}
pub(super) use answer;

/// An answer that is on its way.
pub(super) type OnItsWay<A> = Receiver<Result<A, Fault>>;

/// Asks and waits.
pub(super) fn ask<Q: Question>(store: &dyn Store, question: Q) -> Q::Answer {
    waited(&asked(store, question))
}

/// Asks only.
pub(super) fn asked<Q: Question>(store: &dyn Store, question: Q) -> OnItsWay<Q::Answer> {
    let (sender, receiver) = channel();
    // A case that failed meanwhile does not listen any more.
    store.ask(question.into(), Q::reply(move |answer| drop(sender.send(answer))));
    receiver
}

/// Waits for the answer to what was asked.
pub(super) fn waited<A>(receiver: &OnItsWay<A>) -> A {
    answered(receiver).expect("the store can do it")
}

/// The same where the store may fail.
pub(super) fn answered<A>(receiver: &OnItsWay<A>) -> Result<A, Fault> {
    receiver.recv_timeout(PATIENCE).expect("a question is answered")
}

pub(super) fn done<Q: Question<Answer: Said>>(store: &dyn Store, question: Q) {
    assert_eq!(ask(store, question).said(), Some(true));
}

pub(super) fn missing<Q: Question<Answer: Said>>(store: &dyn Store, question: Q) {
    assert_eq!(ask(store, question).said(), Some(false));
}

/// An answer that says whether what was asked about is there.
pub(super) trait Said {
    /// Whether it is there; none when it says something else.
    fn said(&self) -> Option<bool>;
}

impl Said for () {
    fn said(&self) -> Option<bool> {
        Some(true)
    }
}

impl Said for bool {
    fn said(&self) -> Option<bool> {
        Some(*self)
    }
}

impl<T> Said for Result<T, Missing> {
    fn said(&self) -> Option<bool> {
        Some(self.is_ok())
    }
}

impl Said for Result<(), ImportRefused> {
    fn said(&self) -> Option<bool> {
        match self {
            Ok(()) => Some(true),
            Err(ImportRefused::NoDomain) => Some(false),
            Err(ImportRefused::DomainFull | ImportRefused::IsBeingRemoved) => None,
        }
    }
}

impl<T> Said for Option<T> {
    fn said(&self) -> Option<bool> {
        Some(self.is_some())
    }
}

macro_rules! said {
    ($($answer:ident { $there:pat, $missing:ident })*) => {
        $(impl Said for $answer {
            fn said(&self) -> Option<bool> {
                match self {
                    $there => Some(true),
                    $answer::$missing => Some(false),
                    _ => None,
                }
            }
        })*
    };
}

said! {
    CreateAccountAnswer { CreateAccountAnswer::Created(_), NoDomain }
    CreateTopicAnswer { CreateTopicAnswer::Created(_), NoDomain }
    CreateKeyAnswer { CreateKeyAnswer::Created(_), NoDomain }
    CreateWebhookAnswer { CreateWebhookAnswer::Created(_), NoDomain }
    SubscribeAnswer { SubscribeAnswer::Subscribed { .. }, Missing }
    CancelNotificationAnswer { CancelNotificationAnswer::Cancelled(_), Missing }
    StoreNotificationAnswer { StoreNotificationAnswer::Stored { .. }, NoAccount }
    StoreOfflineAnswer { StoreOfflineAnswer::Stored(_), NoAccount }
    PutContactAnswer { PutContactAnswer::Put(_), NoAccount }
    RemoveContactAnswer { RemoveContactAnswer::Removed(_), Missing }
}

// ---- things

/// The domain most cases use.
pub(super) fn domain(store: &dyn Store) -> DomainId {
    domain_named(store, "example.org")
}

pub(super) fn domain_named(store: &dyn Store, name: &str) -> DomainId {
    let put = PutDomain { name: name.into(), policy: Policy::default() };
    ask(store, put).domain.id
}

pub(super) fn keys(seed: u8) -> Credentials {
    let scram = |size: usize, seed: u8| ScramKeys {
        salt: Box::from([seed; 16]),
        iterations: 4096 + u32::from(seed),
        stored_key: vec![seed.wrapping_add(1); size].into(),
        server_key: vec![seed.wrapping_add(2); size].into(),
    };
    Credentials { sha1: Some(scram(20, seed)), sha256: Some(scram(32, seed.wrapping_add(100))) }
}

pub(super) fn delete_domain(domain: DomainId) -> DeleteDomain {
    DeleteDomain { domain, now: T, rows_max: DOMAIN_PART_ROWS }
}

pub(super) fn create_account(domain: DomainId, local: &str) -> CreateAccount {
    CreateAccount { domain, local: local.into(), credentials: keys(1), is_in_band: false, now: T }
}

pub(super) fn account(store: &dyn Store, domain: DomainId, local: &str) -> AccountId {
    answer!(ask(store, create_account(domain, local)), CreateAccountAnswer::Created(id) => id)
}

pub(super) fn create_topic(domain: DomainId, name: &str, config: TopicConfig) -> CreateTopic {
    CreateTopic { domain, name: name.into(), config, affiliations: Vec::new(), owned_max: 0, now: T }
}

/// A topic that keeps ten items.
pub(super) fn topic(store: &dyn Store, domain: DomainId, name: &str) -> TopicId {
    let config = TopicConfig { max_items: 10, ..TopicConfig::default() };
    answer!(ask(store, create_topic(domain, name, config)), CreateTopicAnswer::Created(topic) => topic.id)
}

pub(super) fn subscribe(store: &dyn Store, topic: TopicId, domain: DomainId, local: &str) {
    let question = Subscribe { topic, domain, local: local.into(), max: u32::MAX, now: T };
    answer!(ask(store, question), SubscribeAnswer::Subscribed { .. } => ());
}

pub(super) fn item(topic: TopicId, domain: DomainId, name: &str, id: &str) -> Item {
    Item {
        topic,
        domain,
        name: name.into(),
        id: id.into(),
        publisher: None,
        published: T,
        payload: Bytes::from(format!("<p xmlns='urn:p'>{id}</p>").into_bytes()),
        revision: Revision(u64::MAX),
    }
}

/// Publishes to the topic `news`; the item with its revision.
pub(super) fn publish(store: &dyn Store, topic: TopicId, domain: DomainId, id: &str, keep: u32) -> Arc<Item> {
    let item = item(topic, domain, "news", id);
    answer!(ask(store, Publish { item, keep, bytes_max: u64::MAX }), Some(item) => item)
}

/// The ids of the kept items, newest first.
pub(super) fn item_ids(store: &dyn Store, topic: TopicId) -> Vec<Box<str>> {
    let items = answer!(ask(store, Items::newest(topic, 1000)), Some(items) => items);
    items.iter().map(|item| item.id.clone()).collect()
}

pub(super) fn jid(text: &str) -> BareJid {
    BareJid::new(text).expect("an address")
}

// ---- notifications

pub(super) fn id(n: u64) -> NotificationId {
    NotificationId::new(T, 3, n)
}

/// Notification `n` for an account of `example.org`: always, normal priority, accepted `n` ms after [`T`].
pub(super) fn notification(domain: DomainId, local: &str, n: u64) -> Notification {
    Notification {
        id: id(n),
        domain,
        to: jid(&format!("{local}@example.org")),
        audience: Audience::Always,
        priority: Priority::Normal,
        expires: None,
        collapse_key: None,
        key: None,
        payload: Payload::Json(format!("{{\"n\":{n}}}").into()),
        accepted: T.plus(n),
        send_at: None,
    }
}

pub(super) fn store_at(notification: Notification, now: UnixMs) -> StoreNotification {
    StoreNotification { notification: notification.into(), queue_max: 1000, now, wake: None }
}

/// Stores it at [`T`]; what ended because of it.
pub(super) fn stored(store: &dyn Store, notification: Notification) -> Vec<Trace> {
    answer!(ask(store, store_at(notification, T)), StoreNotificationAnswer::Stored { ended } => ended)
}

/// A part, and whether there is more.
pub(super) fn both<T>(part: Part<T>) -> (Vec<T>, bool) {
    (part.entries, part.more)
}

/// So many entries, of any size.
pub(super) fn page(entries: u16) -> Page {
    Page { entries, bytes: usize::MAX }
}

pub(super) fn pending_ask(domain: DomainId, local: &str, max: u16, now: UnixMs) -> Pending {
    Pending { domain, local: local.into(), resource: None, except: Vec::new(), page: page(max), now }
}

/// The numbers of the notifications that wait for an account, in the order they are handed out.
pub(super) fn waiting(store: &dyn Store, domain: DomainId, local: &str, now: UnixMs) -> Vec<NotificationId> {
    let found = answer!(
        ask(store, pending_ask(domain, local, 1000, now)),
        Part { entries: notifications, more: false } => notifications
    );
    found.iter().map(|n| n.id).collect()
}

pub(super) fn trace_ask(id: NotificationId) -> notifications::Trace {
    notifications::Trace { id }
}

pub(super) fn domains(store: &dyn Store) -> Vec<Domain> {
    ask(store, domains::Domains)
}

pub(super) fn trace(store: &dyn Store, id: NotificationId) -> Trace {
    answer!(ask(store, trace_ask(id)), Some(trace) => *trace)
}

pub(super) fn state(store: &dyn Store, id: NotificationId) -> NotificationState {
    trace(store, id).state
}

/// The device has it, by its XEP-0198 count, a second after [`T`].
pub(super) fn acknowledged(id: NotificationId) -> NotificationChange {
    NotificationChange {
        id,
        state: NotificationState::Acknowledged,
        sent: Some(T.plus(900)),
        at: T.plus(1000),
        acknowledged_by: Some(AcknowledgedBy::StreamManagement),
        reason: None,
    }
}

/// Ends notifications; those that these changes did not end.
pub(super) fn end(store: &dyn Store, changes: Vec<NotificationChange>) -> Vec<NotificationId> {
    ask(store, EndNotifications { changes })
}

// ---- logins

pub(super) fn identity_ask(domain: DomainId, local: &str) -> accounts::Identity {
    accounts::Identity { domain, local: local.into() }
}

pub(super) fn identity(store: &dyn Store, domain: DomainId, local: &str) -> Identity {
    answer!(ask(store, identity_ask(domain, local)), Some(identity) => *identity)
}

pub(super) fn login_ask(account: AccountId) -> accounts::Login {
    accounts::Login { account, parts: LoginParts::ALL, now: T }
}

pub(super) fn login(store: &dyn Store, domain: DomainId, local: &str) -> Login {
    let account = identity(store, domain, local).account;
    answer!(ask(store, login_ask(account)), Some(login) => *login)
}
