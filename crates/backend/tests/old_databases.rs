//! Databases of earlier versions: opened by this one, they have lost nothing, and everything in them can be used.
//!
//! `old/version-N.sql` is a whole database as version N of the schema wrote it, with rows in every table: `examples/old_database.rs` of that
//! version made it. `everything_is_there` asks for each of them through the port, and what a later version added has a function of its own.

use carillon_backend::sqlite::{Options, SqliteStore};
use carillon_core::model::*;
use carillon_core::ports::store::accounts::{
    Account, CreateAccount, CreateAccountAnswer, Identity, Login, SetAccountState,
};
use carillon_core::ports::store::domains::{Domains, PutDomain};
use carillon_core::ports::store::idempotency::{LineDigest, NoteLines, Reservation, Reserve};
use carillon_core::ports::store::items::{ItemNames, Items, Publish};
use carillon_core::ports::store::keys::{Key, Keys};
use carillon_core::ports::store::notifications::{
    self, CancelNotification, ClaimDue, EndNotifications, Events, NotificationChange, NotificationQuery,
    Pending, Whose,
};
use carillon_core::ports::store::offline::{DeleteOffline, Offline};
use carillon_core::ports::store::subscriptions::{Subscribers, SubscriptionsOf, Unsubscribe};
use carillon_core::ports::store::topics::{Topic, Topics};
use carillon_core::ports::{Ask, Page, Part, Question, Store};
use carillon_wire::jid::BareJid;
use rusqlite::Connection;
use std::path::Path;
use std::sync::mpsc::channel;

const T: UnixMs = UnixMs(1_795_167_000_000);
const HERE: DomainId = DomainId(1);
const THERE: DomainId = DomainId(2);
const NEWS: TopicId = TopicId(1);
const QUIET: TopicId = TopicId(2);

fn ask<Q: Question>(store: &dyn Store, question: Q) -> Q::Answer {
    said::<Q>(store, question.into())
}

/// Asks with the id of an operation, as `examples/old_database.rs` does.
fn once<Q: Question>(store: &dyn Store, operation: u128, question: Q) -> Q::Answer {
    said::<Q>(store, question.into().once(OperationId::new(T, operation << 64)))
}

fn said<Q: Question>(store: &dyn Store, ask: Ask) -> Q::Answer {
    let (sender, receiver) = channel();
    store.ask(ask, Q::reply(move |answer| drop(sender.send(answer))));
    receiver.recv().expect("one answer").expect("the store is well")
}

fn jid(text: &str) -> BareJid {
    BareJid::new(text).expect("an address")
}

fn id(n: u64) -> NotificationId {
    NotificationId::new(T, 3, n)
}

/// Makes the database at `path` from its dump.
fn restore(path: &Path, dump: &str) -> SqliteStore {
    Connection::open(path).expect("opens").execute_batch(dump).expect("the dump is whole");
    SqliteStore::open(Options::new(path)).expect("it is upgraded")
}

#[test]
fn of_the_first_version() {
    is_upgraded(1, include_str!("old/version-1.sql"));
}

#[test]
fn of_the_fifth_version() {
    is_upgraded(5, include_str!("old/version-5.sql"));
}

#[test]
fn of_the_sixth_version() {
    is_upgraded(6, include_str!("old/version-6.sql"));
}

#[test]
fn of_the_seventh_version() {
    is_upgraded(7, include_str!("old/version-7.sql"));
}

#[test]
fn of_the_eighth_version() {
    is_upgraded(8, include_str!("old/version-8.sql"));
}

#[test]
fn of_the_ninth_version() {
    is_upgraded(9, include_str!("old/version-9.sql"));
}

#[test]
fn of_the_twelfth_version() {
    is_upgraded(12, include_str!("old/version-12.sql"));
}

/// The database of this version has lost nothing, and can be used.
fn is_upgraded(version: u32, dump: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("carillon.db");
    let store = restore(&path, dump);
    everything_is_there(&store, version);
    if version >= 5 {
        tokens_and_senders(&store);
    }
    if version >= 6 {
        what_waits_is_in_the_order_in_which_it_was_stored(&store);
    }
    if version >= 7 {
        operations(&store);
    }
    events(&store, version);
    if version >= 9 {
        lines(&store);
    }
    everything_can_be_used(&store);
    is_as_if_it_were_new(&store, &path);
}

fn everything_is_there(store: &dyn Store, version: u32) {
    domains_and_keys(store, version);
    accounts(store);
    topics(store);
    items(store);
    notifications_that_wait(store);
    notifications_that_ended(store);
    let messages = offline(store);
    assert_eq!(messages.iter().map(|m| m.received).collect::<Vec<_>>(), [T.plus(9), T.plus(10)]);
    assert!(messages[1].stanza.ends_with(b"<body>two</body></message>"));
}

fn domains_and_keys(store: &dyn Store, version: u32) {
    let policy = |sessions, registration, pubsub_create, sessions_max| Policy {
        sessions,
        registration,
        pubsub_create,
        sessions_max,
        // Of domains made before version 11, all are.
        messages_durable: registration || version < 11,
        resumption_ms_max: Policy::RESUMPTION_MS_MAX,
        // Domains made before there was a bound by default keep none.
        archive_bytes_max: 0,
        ..Policy::default()
    };
    let domain = |id, name: &str, policy| Domain::new(id, name, policy);
    let expected = [
        domain(HERE, "example.org", policy(SessionPolicy::Single, true, PubsubCreate::Admin, 3)),
        domain(THERE, "other.example", policy(SessionPolicy::Multi, false, PubsubCreate::Any, 20)),
    ];
    assert_eq!(ask(store, Domains), expected);
    let key = |id, name: &str, domain, scope, created| ApiKey {
        id: KeyId(id),
        name: name.into(),
        domain,
        scopes: Scopes::of(&[scope]),
        created,
        expires: None,
        networks: Box::default(),
        certificates: Box::default(),
        used: None,
    };
    let everything = key(1, "everything", None, Scope::Admin, T);
    let of_a_domain = key(2, "of a domain", Some(HERE), Scope::Send, T.plus(1));
    assert_eq!(ask(store, Keys { domain: None }), [everything.clone(), of_a_domain.clone()]);
    assert_eq!(ask(store, Key { hash: [7; 32] }), Some(everything));
    assert_eq!(ask(store, Key { hash: [8; 32] }), Some(of_a_domain));
    let idempotency_key = "order-1".into();
    let again = Reserve {
        key: KeyId(2),
        idempotency_key,
        body_hash: [1; 32],
        kept_bytes_max: u64::MAX,
        now: T.plus(1),
    };
    assert_eq!(ask(store, again), Reservation::Replay { response: "202 {\"id\": \"é\"}".into() });
}

fn accounts(store: &dyn Store) {
    let keys = |iterations, salt, size: usize, first: u8| ScramKeys {
        salt: Box::from([salt; 16]),
        iterations,
        stored_key: vec![first; size].into(),
        server_key: vec![first + 1; size].into(),
    };
    let (sha1, sha256) = (keys(4096, 1, 20, 2), keys(10_000, 4, 32, 5));
    let both = Credentials { sha1: Some(sha1), sha256: Some(sha256.clone()) };
    let one = Credentials { sha1: None, sha256: Some(sha256) };
    let disabled = AccountState::Disabled(T.plus(5));
    for (number, domain, local, credentials, state, topics) in [
        (1, HERE, "alice", &both, AccountState::Enabled, &["news", "quiet"][..]),
        (2, HERE, "bob", &one, disabled, &["news"]),
        (3, THERE, "alice", &both, AccountState::Enabled, &[]),
    ] {
        let found = ask(store, Identity { domain, local: local.into() }).expect("it is there");
        assert_eq!((found.account, &found.credentials), (AccountId(number), credentials));
        assert_eq!(found.state, state, "{number}");
        let found = ask(store, Account { domain, local: local.into() }).expect("it is there");
        assert_eq!(found.topics.iter().map(|name| &**name).collect::<Vec<_>>(), topics);
        assert_eq!(found.created, T.plus(number - 1));
    }
    let login =
        ask(store, Login { account: AccountId(1), parts: LoginParts::ALL, now: T }).expect("it is there");
    let last = |at: usize| login.subscriptions[at].last.as_ref().map(|item| &*item.id);
    assert_eq!(login.subscriptions.iter().map(|s| s.topic).collect::<Vec<_>>(), [NEWS, QUIET]);
    assert_eq!((last(0), last(1)), (Some("second"), None));
    assert_eq!(login.waiting, LoginBacklog { notifications: true, messages: true });
}

fn topics(store: &dyn Store) {
    let news = ask(store, Topic { domain: HERE, name: "news".into() }).expect("it is there");
    let config = TopicConfig {
        title: "The news".to_owned(),
        access_model: Access::Open,
        publish_model: PublishModel::Subscribers,
        max_items: 10,
        persist_items: true,
        send_last_published_item: SendLast::OnSubAndPresence,
        notify_retract: true,
        notify_delete: false,
        deliver_payloads: true,
    };
    let affiliations = vec![
        (jid("alice@example.org"), Affiliation::Owner),
        (jid("mallory@example.org"), Affiliation::Outcast),
    ];
    let name = "news".into();
    assert_eq!(*news, TopicRecord { id: NEWS, domain: HERE, name, config, affiliations, created: T });
    let all = ask(store, Topics { domain: HERE, after: None, limit: 9 });
    assert_eq!(all.iter().map(|topic| topic.id).collect::<Vec<_>>(), [NEWS, QUIET]);
    assert_eq!(all[1].config.access_model, Access::Whitelist);
    let followers = ask(store, Subscribers { topic: NEWS, after: None, limit: 9 });
    assert_eq!(followers, [jid("alice@example.org"), jid("bob@example.org")]);
}

fn items(store: &dyn Store) {
    let items = ask(store, Items::newest(NEWS, 9)).expect("the topic is there");
    assert_eq!(items.iter().map(|item| &*item.id).collect::<Vec<_>>(), ["second", "first"]);
    assert_eq!(items[0].publisher, Some(jid("bob@example.org")));
    assert_eq!((items[0].published, items[1].published), (T.plus(4), T.plus(3)));
    assert_eq!(&items[1].payload[..], b"<p xmlns='urn:p'>1</p>");
    assert!(items[0].revision > items[1].revision);
    // A client that read the first page before the upgrade goes on behind the item that it ended with.
    let behind = ItemNames { topic: NEWS, from: ItemsFrom::After("second".into()), max: 9 };
    let names = ask(store, behind).expect("the item is there");
    assert_eq!((names.ids, names.count), (vec!["first".into()], 2));
}

fn notifications_that_wait(store: &dyn Store) {
    let found = pending(store, T);
    assert_eq!(found.iter().map(|n| n.id).collect::<Vec<_>>(), [id(2), id(1)]);
    assert_eq!(found[0].payload, Payload::Xml("<p xmlns='urn:p'/>".into()));
    assert_eq!(found[1].payload, Payload::Json("{\"n\":1}".into()));
    assert_eq!((found[0].priority, found[0].collapse_key.as_deref()), (Priority::High, Some("key")));
    assert_eq!((found[0].expires, found[0].accepted), (Some(T.plus(86_400_000)), T.plus(2)));
    for (n, state) in [
        (1, NotificationState::Stored),
        (2, NotificationState::Sent),
        (3, NotificationState::Scheduled),
        (4, NotificationState::Scheduled),
    ] {
        assert_eq!(ask(store, notifications::Trace { id: id(n) }).expect("it waits").state, state, "{n}");
    }
}

fn notifications_that_ended(store: &dyn Store) {
    let trace = ask(store, notifications::Trace { id: id(5) }).expect("it is remembered");
    assert_eq!((trace.state, trace.ended), (NotificationState::Acknowledged, Some(T.plus(7))));
    assert_eq!((trace.stored, trace.sent), (Some(T.plus(5)), Some(T.plus(6))));
    assert_eq!(trace.acknowledged_by, Some(AcknowledgedBy::StreamManagement));
    let trace = ask(store, notifications::Trace { id: id(6) }).expect("it is remembered");
    assert_eq!((trace.state, trace.reason), (NotificationState::Dropped, Some(DropReason::NotConnected)));
    let list = NotificationQuery {
        whose: Whose::Account(HERE, "alice".into()),
        states: States::ALL,
        key: None,
        from: NotificationId(0),
        before: NotificationId(u128::MAX),
        limit: 9,
    };
    let listed: Vec<_> = ask(store, list).traces.iter().map(|trace| trace.id).collect();
    assert_eq!(listed, [6, 5, 3, 2, 1].map(id));
}

fn tokens_and_senders(store: &dyn Store) {
    let alice = ask(store, Identity { domain: HERE, local: "alice".into() }).expect("alice");
    let mut revoked = Revocations::default();
    (0..2).for_each(|_| revoked.revoke_all());
    revoked.revoke(AgentId(9));
    assert_eq!(alice.revocations, revoked);
    let trace = ask(store, notifications::Trace { id: id(5) }).expect("it is remembered");
    assert_eq!(
        (trace.key, trace.expires, trace.collapse_key.as_deref()),
        (Some(KeyId(2)), Some(T.plus(100)), Some("key"))
    );
    assert_eq!(ask(store, notifications::Trace { id: id(2) }).expect("it waits").key, Some(KeyId(2)));
}

/// The clock was set back between the two.
fn what_waits_is_in_the_order_in_which_it_was_stored(store: &dyn Store) {
    let page = Page { entries: 9, bytes: usize::MAX };
    let question =
        Pending { domain: THERE, local: "alice".into(), resource: None, except: Vec::new(), page, now: T };
    let found = ask(store, question).entries;
    let times: Vec<_> = found.iter().map(|n| (n.id, n.accepted)).collect();
    assert_eq!(times, [(id(7), T.plus(20)), (id(8), T.plus(10))]);
}

/// What was done once is not done again.
fn operations(store: &dyn Store) {
    let create = |local: &str, now| {
        let credentials = Credentials { sha1: None, sha256: None };
        CreateAccount { domain: HERE, local: local.into(), credentials, is_in_band: false, now }
    };
    assert_eq!(once(store, 1, create("alice", T)), CreateAccountAnswer::Created(AccountId(1)));
    assert_eq!(once(store, 3, create("alice", T)), CreateAccountAnswer::Created(AccountId(3)));
    assert_eq!(ask(store, create("alice", T)), CreateAccountAnswer::Exists);
    let first = ask(store, Items::newest(NEWS, 9)).expect("the topic is there")[1].clone();
    let item = Item { revision: Revision(0), ..(*first).clone() };
    let again = once(store, 11, Publish { item, keep: 10, bytes_max: u64::MAX }).expect("the topic is there");
    assert_eq!((again.revision, again.published), (first.revision, T.plus(3)));
    let names = ItemNames { topic: NEWS, from: ItemsFrom::Newest, max: 9 };
    assert_eq!(ask(store, names).expect("the topic is there").ids, ["second", "first"].map(Box::from));
}

/// Of ends before version 8 there are none; what ends from now on has the next number.
fn events(store: &dyn Store, version: u32) {
    let told = || {
        let all = Events { after: 0, domain: None, wanted: EventFilter::ALL, max: 9 };
        let answer = ask(store, all);
        let ended = answer.events.iter().filter_map(|(number, event)| Some((*number, event.trace()?.id)));
        (ended.collect::<Vec<_>>(), answer.newest)
    };
    let before = if version >= 8 { vec![(1, id(5)), (2, id(6))] } else { Vec::new() };
    assert_eq!(told(), (before.clone(), before.len() as u64));
    ask(store, CancelNotification { id: id(1), now: T.plus(9) });
    let next = before.len() as u64 + 1;
    assert_eq!(told(), ([before, vec![(next, id(1))]].concat(), next));
}

/// A line of a batch that was altered is noticed.
fn lines(store: &dyn Store) {
    let line = |number, digest| LineDigest { number, digest };
    let lines = vec![line(1, 1001), line(2, 7), line(3, 1003), line(300, 7)];
    let again = NoteLines { key: KeyId(2), idempotency_key: "lines".into(), lines, now: T.plus(1) };
    assert_eq!(ask(store, again), [2, 300]);
}

fn everything_can_be_used(store: &dyn Store) {
    let state = AccountState::Enabled;
    ask(store, SetAccountState { domain: HERE, local: "bob".into(), state }).expect("bob is there");
    ask(store, Unsubscribe { topic: QUIET, domain: HERE, local: "alice".into() }).expect("alice follows it");
    let topics = ask(store, SubscriptionsOf { domain: HERE, local: "alice".into() });
    assert_eq!(topics, [(NEWS, "news".into())]);
    // A new item is newer than all that were there.
    let before = ask(store, Items::newest(NEWS, 1)).expect("the topic is there")[0].clone();
    let item = Item { id: "third".into(), revision: Revision(0), ..(*before).clone() };
    let published = ask(store, Publish { item, keep: 2, bytes_max: u64::MAX }).expect("the topic is there");
    assert!(published.revision > before.revision);
    let names = ItemNames { topic: NEWS, from: ItemsFrom::Newest, max: 9 };
    assert_eq!(ask(store, names).expect("the topic is there").ids, ["third", "second"].map(Box::from));
    // What was scheduled is handed out, and ends.
    let due = ask(
        store,
        ClaimDue { now: T.plus(60_000), until: T.plus(90_000), page: Page { entries: 9, bytes: 1 << 20 } },
    );
    assert_eq!(due.entries.iter().map(|n| n.id).collect::<Vec<_>>(), [3, 4].map(id));
    let end = |n| NotificationChange {
        id: id(n),
        state: NotificationState::Acknowledged,
        sent: None,
        at: T.plus(60_001),
        acknowledged_by: Some(AcknowledgedBy::Receipt),
        reason: None,
    };
    ask(store, EndNotifications { changes: [1, 2, 3].map(end).into() });
    assert!(pending(store, T.plus(60_001)).is_empty());
    let seqs = offline(store).iter().map(|message| message.seq).collect();
    ask(store, DeleteOffline { domain: HERE, local: "alice".into(), seqs });
    assert!(offline(store).is_empty());
    let put = PutDomain { name: "third.example".into(), policy: Policy::default() };
    assert_eq!(ask(store, put).domain.id, DomainId(3), "a number is never used twice");
}

/// The tables, indices and settings of an upgraded database are those of a new one.
fn is_as_if_it_were_new(store: &SqliteStore, path: &Path) {
    store.close();
    let new = path.with_extension("new");
    SqliteStore::open(Options::new(&new)).expect("opens").close();
    assert_eq!(schema(path), schema(&new));
    let db = Connection::open(path).expect("opens");
    let check = |pragma: &str| -> Option<String> {
        let mut rows = db.prepare(pragma).expect("prepares");
        let mut rows = rows.query([]).expect("checks");
        rows.next().expect("checks").map(|row| row.get::<_, String>(0).expect("text"))
    };
    assert_eq!(check("PRAGMA integrity_check").as_deref(), Some("ok"));
    assert_eq!(check("PRAGMA foreign_key_check"), None);
}

fn schema(path: &Path) -> Vec<String> {
    let db = Connection::open(path).expect("opens");
    let mut rows = db
        .prepare(
            "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY type, name",
        )
        .expect("prepares");
    rows.query_map([], |row| row.get::<_, String>(0))
        .expect("reads")
        .map(|row| row.expect("text").replace('"', "").split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

fn pending(store: &dyn Store, now: UnixMs) -> Vec<Notification> {
    let page = Page { entries: 9, bytes: usize::MAX };
    let (local, except) = ("alice".into(), Vec::new());
    ask(store, Pending { domain: HERE, local, resource: None, except, page, now }).entries
}

fn offline(store: &dyn Store) -> Vec<OfflineMessage> {
    let page = Page { entries: 9, bytes: usize::MAX };
    let question = Offline { domain: HERE, local: "alice".into(), after: 0, page };
    let Part { entries, .. } = ask(store, question);
    entries
}
