//! What the cases stand on: asking and waiting, and the usual things to ask about.

use bytes::Bytes;
use carillon_core::model::*;
use carillon_core::ports::{Answer, Ask, NotificationChange, Page, Store};
use carillon_wire::jid::BareJid;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

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

/// Asks and waits.
pub(super) fn ask(store: &dyn Store, question: Ask) -> Answer {
    waited(&asked(store, question))
}

/// Asks only.
pub(super) fn asked(store: &dyn Store, question: Ask) -> Receiver<Answer> {
    let (sender, receiver) = channel();
    // A case that failed meanwhile does not listen any more.
    store.ask(question, Box::new(move |answer| drop(sender.send(answer))));
    receiver
}

/// Waits for the answer to what was asked.
pub(super) fn waited(receiver: &Receiver<Answer>) -> Answer {
    receiver.recv_timeout(PATIENCE).expect("a question is answered")
}

pub(super) fn done(store: &dyn Store, question: Ask) {
    answer!(ask(store, question), Answer::Done => ());
}

pub(super) fn missing(store: &dyn Store, question: Ask) {
    answer!(ask(store, question), Answer::Missing => ());
}

// ---- things

/// The domain most cases use.
pub(super) fn domain(store: &dyn Store) -> DomainId {
    domain_named(store, "example.org")
}

pub(super) fn domain_named(store: &dyn Store, name: &str) -> DomainId {
    let put = Ask::PutDomain { name: name.into(), policy: Policy::default() };
    answer!(ask(store, put), Answer::Domain { domain, .. } => domain.id)
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

pub(super) fn create_account(domain: DomainId, local: &str) -> Ask {
    Ask::CreateAccount { domain, local: local.into(), credentials: keys(1), now: T }
}

pub(super) fn account(store: &dyn Store, domain: DomainId, local: &str) -> AccountId {
    answer!(ask(store, create_account(domain, local)), Answer::Account(id) => id)
}

pub(super) fn create_topic(domain: DomainId, name: &str, config: TopicConfig) -> Ask {
    Ask::CreateTopic { domain, name: name.into(), config, affiliations: Vec::new(), owned_max: 0, now: T }
}

/// A topic that keeps ten items.
pub(super) fn topic(store: &dyn Store, domain: DomainId, name: &str) -> TopicId {
    let config = TopicConfig { max_items: 10, ..TopicConfig::default() };
    answer!(ask(store, create_topic(domain, name, config)), Answer::Topic(topic) => topic.id)
}

pub(super) fn subscribe(store: &dyn Store, topic: TopicId, domain: DomainId, local: &str) {
    let question = Ask::Subscribe { topic, domain, local: local.into(), max: u32::MAX, now: T };
    answer!(ask(store, question), Answer::Subscribed { .. } => ());
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
    answer!(ask(store, Ask::Publish { item, keep }), Answer::Published(item) => item)
}

/// The ids of the kept items, newest first.
pub(super) fn item_ids(store: &dyn Store, topic: TopicId) -> Vec<Box<str>> {
    let items = answer!(ask(store, Ask::newest(topic, 1000)), Answer::Items(items) => items);
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

pub(super) fn store_at(notification: Notification, now: UnixMs) -> Ask {
    Ask::StoreNotification { notification: notification.into(), queue_max: 1000, now }
}

/// Stores it at [`T`]; what ended because of it.
pub(super) fn stored(store: &dyn Store, notification: Notification) -> Vec<Trace> {
    answer!(ask(store, store_at(notification, T)), Answer::Stored { new: true, ended } => ended)
}

/// So many entries, of any size.
pub(super) fn page(entries: u16) -> Page {
    Page { entries, bytes: usize::MAX }
}

pub(super) fn pending_ask(domain: DomainId, local: &str, max: u16, now: UnixMs) -> Ask {
    Ask::Pending { domain, local: local.into(), except: Vec::new(), page: page(max), now }
}

/// The numbers of the notifications that wait for an account, in the order they are handed out.
pub(super) fn waiting(store: &dyn Store, domain: DomainId, local: &str, now: UnixMs) -> Vec<NotificationId> {
    let found = answer!(
        ask(store, pending_ask(domain, local, 1000, now)),
        Answer::Pending { notifications, more: false } => notifications
    );
    found.iter().map(|n| n.id).collect()
}

pub(super) fn trace(store: &dyn Store, id: NotificationId) -> Trace {
    answer!(ask(store, Ask::Trace { id }), Answer::Trace(trace) => *trace)
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

pub(super) fn end(store: &dyn Store, changes: Vec<NotificationChange>) {
    done(store, Ask::EndNotifications { changes });
}

// ---- logins

pub(super) fn identity_ask(domain: DomainId, local: &str) -> Ask {
    Ask::Identity { domain, local: local.into() }
}

pub(super) fn identity(store: &dyn Store, domain: DomainId, local: &str) -> Identity {
    answer!(ask(store, identity_ask(domain, local)), Answer::Identity(identity) => *identity)
}

pub(super) fn login_ask(account: AccountId) -> Ask {
    Ask::Login { account, now: T }
}

pub(super) fn login(store: &dyn Store, domain: DomainId, local: &str) -> Login {
    let account = identity(store, domain, local).account;
    answer!(ask(store, login_ask(account)), Answer::Login(login) => *login)
}
