//! Commits whose fate is not known, processes that are followed by others, and lanes side by side.

use crate::proxy::{Cut, Proxy};
use crate::server::{Database, server};
use bytes::Bytes;
use carillon_backend::postgres::{Options, PostgresStore};
use carillon_core::model::{Credentials, DomainId, Item, Policy, Revision, TopicConfig, UnixMs};
use carillon_core::ports::store::accounts::{CreateAccount, CreateAccountAnswer};
use carillon_core::ports::store::domains::{Domains, PutDomain};
use carillon_core::ports::store::items::{Publish, Purge};
use carillon_core::ports::store::offline::{Offline, StoreOffline, StoreOfflineAnswer};
use carillon_core::ports::store::topics::{CreateTopic, CreateTopicAnswer};
use carillon_core::ports::{Fault, Page, Question, Store};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

pub(crate) const T: UnixMs = UnixMs(1_795_167_000_000);

pub(crate) type Waiting<A> = Receiver<Result<A, Fault>>;

pub(crate) fn asked<Q: Question>(store: &dyn Store, question: Q) -> Waiting<Q::Answer> {
    let (sender, receiver) = channel();
    store.ask(question.into(), Q::reply(move |answer| drop(sender.send(answer))));
    receiver
}

pub(crate) fn ask<Q: Question>(store: &dyn Store, question: Q) -> Result<Q::Answer, Fault> {
    waited(&asked(store, question))
}

pub(crate) fn waited<A>(waiting: &Waiting<A>) -> Result<A, Fault> {
    waiting.recv_timeout(Duration::from_secs(60)).expect("a question is answered")
}

/// A domain with accounts `u0` to `u9`.
pub(crate) fn ground(store: &dyn Store) -> DomainId {
    let put = PutDomain { name: "example.org".into(), policy: Policy::default() };
    let domain = ask(store, put).expect("it is put").domain.id;
    for n in 0..10 {
        let (local, credentials) = (format!("u{n}").into(), Credentials { sha1: None, sha256: None });
        let create = CreateAccount { domain, local, credentials, is_in_band: false, now: T };
        assert!(matches!(ask(store, create), Ok(CreateAccountAnswer::Created(_))));
    }
    domain
}

/// A write that is not idempotent: each time it is done there is one message more.
fn message(domain: DomainId, account: usize, text: &str) -> StoreOffline {
    StoreOffline {
        domain,
        local: format!("u{account}").into(),
        received: T,
        stanza: Bytes::copy_from_slice(text.as_bytes()),
        expires: None,
        queue_max: u32::MAX,
        bytes_max: u64::MAX,
        wake: None,
    }
}

/// The messages of an account, in their order.
fn messages(store: &dyn Store, domain: DomainId, account: usize) -> Vec<(u64, String)> {
    let page = Page { entries: u16::MAX, bytes: usize::MAX };
    let page = Offline { domain, local: format!("u{account}").into(), after: 0, page };
    let found = ask(store, page).expect("they are read");
    let text = |stanza: &Bytes| String::from_utf8_lossy(stanza).into_owned();
    found.entries.iter().map(|message| (message.seq, text(&message.stanza))).collect()
}

fn texts(store: &dyn Store, domain: DomainId, account: usize) -> Vec<String> {
    messages(store, domain, account).into_iter().map(|(_, text)| text).collect()
}

/// What a write is charged for are the rows that it changes, also those that its statements give back.
#[test]
fn rows_that_statements_give_back_are_counted() {
    const ITEMS: u64 = 40;
    let database = Database::new();
    let store = database.open();
    let domain = ground(&store);
    let create = CreateTopic {
        domain,
        name: "news".into(),
        config: TopicConfig::default(),
        affiliations: Vec::new(),
        owned_max: 9,
        now: T,
    };
    let Ok(CreateTopicAnswer::Created(topic)) = ask(&store, create) else { panic!("it is new") };
    for n in 0..ITEMS {
        let item = Item {
            topic: topic.id,
            domain,
            name: "news".into(),
            id: n.to_string().into(),
            publisher: None,
            published: T,
            payload: "<x/>".into(),
            revision: Revision(0),
        };
        ask(&store, Publish { item, keep: 100, bytes_max: 1 << 20 }).expect("it is published");
    }
    let before = store.stats().write_cost;
    assert_eq!(ask(&store, Purge { topic: topic.id, items_max: 1000 }), Ok(false));
    let cost = store.stats().write_cost - before;
    assert!((ITEMS..2 * ITEMS).contains(&cost), "{cost}");
}

#[test]
fn a_commit_that_is_cut_is_done_once_and_in_its_order() {
    let (database, proxy) = (Database::new(), Proxy::new());
    let store = PostgresStore::open(Options { lanes: 1, ..proxy.options(&database.name) }).expect("opens");
    let domain = ground(&store);
    let mut expected = Vec::new();
    for round in 0..30 {
        let cuts: &[Cut] = match round % 4 {
            0 => &[Cut::Before],
            1 => &[Cut::After],
            2 => &[Cut::Before, Cut::Before, Cut::After],
            _ => &[Cut::After, Cut::Before],
        };
        proxy.cut(cuts);
        // Several at once: what follows the group that is cut waits for it. Until all cuts have met a commit.
        while !proxy.is_done() {
            let batch: Vec<String> = (0..5).map(|n| format!("{round}.{n}.{}", expected.len())).collect();
            let waiting: Vec<_> = batch.iter().map(|text| asked(&store, message(domain, 0, text))).collect();
            for one in &waiting {
                assert!(matches!(waited(one), Ok(StoreOfflineAnswer::Stored(_))));
            }
            expected.extend(batch);
        }
    }
    assert_eq!(texts(&store, domain, 0), expected);
    let [lane] = store.lanes()[..] else { panic!("there is one lane") };
    assert!(lane.settled >= 30 && lane.connects > lane.settled && lane.unknown == 0, "{lane:?}");
    assert!(lane.repeats > 0 && lane.round_trips > 3 * lane.commits, "{lane:?}");
}

#[test]
fn a_commit_without_an_answer_is_done_once() {
    let (database, proxy) = (Database::new(), Proxy::new());
    let options = Options { lanes: 1, answer_max: Duration::from_secs(3), ..proxy.options(&database.name) };
    let store = PostgresStore::open(options).expect("opens");
    let domain = ground(&store);
    for text in ["a", "b"] {
        proxy.cut(&[Cut::Stalled]);
        assert!(matches!(ask(&store, message(domain, 0, text)), Ok(StoreOfflineAnswer::Stored(_))));
    }
    assert_eq!(texts(&store, domain, 0), ["a", "b"]);
}

#[test]
fn a_commit_is_unknown_only_while_the_database_is_away() {
    let (database, proxy) = (Database::new(), Proxy::new());
    let options = Options { lanes: 1, patience: Duration::from_millis(300), ..proxy.options(&database.name) };
    let store = PostgresStore::open(options).expect("opens");
    let domain = ground(&store);
    proxy.cut(&[Cut::After]);
    proxy.refuse(true);
    assert_eq!(ask(&store, message(domain, 0, "unknown")), Err(Fault::Unknown));
    assert_eq!(ask(&store, message(domain, 0, "refused")), Err(Fault::Broken), "nothing was changed");
    assert!(store.health().fails);
    assert_eq!(store.lanes()[0].unknown, 1);
    proxy.refuse(false);
    assert!(matches!(ask(&store, message(domain, 0, "after")), Ok(StoreOfflineAnswer::Stored(_))));
    assert!(!store.health().fails, "it recovers by itself");
    assert_eq!(texts(&store, domain, 0), ["unknown", "after"]);
}

#[test]
fn sessions_that_are_killed_lose_and_double_nothing() {
    let database = Database::new();
    let store = PostgresStore::open(Options { lanes: 3, ..server().options(&database.name) }).expect("opens");
    let domain = ground(&store);
    let is_over = AtomicBool::new(false);
    let kill = "SELECT pg_terminate_backend(pid), pg_sleep(0.02) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1";
    thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let mut kills = 0;
            while !is_over.load(Ordering::SeqCst) {
                kills += database.run(kill).len();
            }
            kills
        });
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let store = &store;
                scope.spawn(move || {
                    for n in 0..60 {
                        let done = ask(store, message(domain, writer, &n.to_string()));
                        assert!(matches!(done, Ok(StoreOfflineAnswer::Stored(_))), "{done:?}");
                        assert!(ask(store, Domains).is_ok(), "reads go on");
                    }
                })
            })
            .collect();
        let done: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::SeqCst);
        assert!(done.iter().all(Result::is_ok));
        assert!(killer.join().expect("it ended") > 0);
    });
    let expected: Vec<String> = (0..60).map(|n: u32| n.to_string()).collect();
    for writer in 0..4 {
        assert_eq!(texts(&store, domain, writer), expected);
    }
}

#[test]
fn a_process_that_is_followed_by_another_writes_nothing() {
    let database = Database::new();
    let old = database.open();
    let domain = ground(&old);
    assert!(ask(&old, message(domain, 0, "old")).is_ok());
    let new = database.open();
    assert_eq!(ask(&old, message(domain, 0, "late")), Err(Fault::Broken));
    assert!(ask(&new, message(domain, 0, "new")).is_ok());
    assert_eq!(ask(&old, message(domain, 0, "later")), Err(Fault::Broken));
    assert_eq!(texts(&new, domain, 0), ["old", "new"]);
}

#[test]
fn two_nodes_write_to_the_same_accounts_side_by_side() {
    let database = Database::new();
    let of = |node: &str| Options { node: node.into(), lanes: 2, ..server().options(&database.name) };
    let stores = ["a", "b"].map(|node| PostgresStore::open(of(node)).expect("opens"));
    let domain = ground(&stores[0]);
    thread::scope(|scope| {
        for writer in 0..4 {
            let store = &stores[writer % 2];
            scope.spawn(move || {
                // In another order for each, so that groups would wait for each other if they could.
                let accounts = |n: usize| (n * (writer * 2 + 1)) % 10;
                let waiting: Vec<_> = (0..200)
                    .map(|n| asked(store, message(domain, accounts(n), &format!("{writer}.{n}"))))
                    .collect();
                let mut seqs = [0; 10];
                for (n, one) in waiting.iter().enumerate() {
                    let Ok(StoreOfflineAnswer::Stored(seq)) = waited(one) else {
                        panic!("{n} is not stored")
                    };
                    assert!(seq > seqs[accounts(n)], "they ascend");
                    seqs[accounts(n)] = seq;
                }
            });
        }
    });
    let all: usize = (0..10).map(|account| messages(&stores[1], domain, account).len()).sum();
    assert_eq!(all, 800);
}

#[test]
fn a_lane_that_is_full_says_so() {
    let database = Database::new();
    let options = Options { lanes: 1, queue_max: 8, ..server().options(&database.name) };
    let store = PostgresStore::open(options).expect("opens");
    let domain = ground(&store);
    // Somebody holds what every group needs: one group of what waits is in flight, and as much waits behind it.
    let held = database.hold(0);
    let waiting: Vec<_> = (0..40).map(|n| asked(&store, message(domain, 0, &n.to_string()))).collect();
    // Who is refused is answered at once.
    let answers: Vec<_> = waiting.iter().map(|one| one.try_recv().ok()).collect();
    let refused = answers.iter().filter(|answer| **answer == Some(Err(Fault::Busy))).count();
    assert!((24..40).contains(&refused), "{answers:?}");
    assert_eq!(answers.iter().flatten().count(), refused);
    let [lane] = store.lanes()[..] else { panic!("there is one lane") };
    assert!(lane.waiting <= 8, "{lane:?}");
    drop(held);
    for (one, _) in waiting.iter().zip(answers).filter(|(_, answer)| answer.is_none()) {
        let done = waited(one);
        assert!(matches!(done, Ok(StoreOfflineAnswer::Stored(_))), "{done:?}");
    }
}
