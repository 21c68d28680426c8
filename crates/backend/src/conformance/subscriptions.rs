//! Subscriptions.

use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::Store;

fn subscribe_ask(topic: TopicId, domain: DomainId, local: &str) -> Subscribe {
    Subscribe { topic, domain, local: local.into(), max: u32::MAX, now: T }
}

pub(super) fn are_made_once(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let news = topic(store, domain, "news");
    let check = || IsSubscribed { topic: news, domain, local: "alice".into() };
    missing(store, check());
    answer!(ask(store, subscribe_ask(news, domain, "alice")), SubscribeAnswer::Subscribed { new: true, last: None } => ());
    answer!(ask(store, subscribe_ask(news, domain, "alice")), SubscribeAnswer::Subscribed { new: false, last: None } => ());
    done(store, check());
    assert_eq!(login(store, domain, "alice").subscriptions.len(), 1);
}

pub(super) fn need_account_and_topic(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let news = topic(store, domain, "news");
    missing(store, subscribe_ask(news, domain, "bob"));
    missing(store, subscribe_ask(TopicId(999), domain, "alice"));
    missing(store, subscribe_ask(news, DomainId(999), "alice"));
    missing(store, IsSubscribed { topic: news, domain, local: "bob".into() });
}

pub(super) fn give_the_last_item(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let news = topic(store, domain, "news");
    publish(store, news, domain, "1", 10);
    let newest = publish(store, news, domain, "2", 10);
    publish(store, news, domain, "3", 0);
    for new in [true, false] {
        let answer = ask(store, subscribe_ask(news, domain, "alice"));
        let (found, last) = answer!(answer, SubscribeAnswer::Subscribed { new, last } => (new, last));
        assert_eq!((found, last.as_deref()), (new, Some(&*newest)), "the last one that was kept");
    }
}

pub(super) fn end_once(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let news = topic(store, domain, "news");
    let end = |local: &str| Unsubscribe { topic: news, domain, local: local.into() };
    missing(store, end("alice"));
    subscribe(store, news, domain, "alice");
    done(store, end("alice"));
    missing(store, end("alice"));
    missing(store, end("bob"));
}

pub(super) fn are_listed_by_name(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let mut expected = Vec::new();
    for name in ["z", "a", "m"] {
        let topic = topic(store, domain, name);
        subscribe(store, topic, domain, "alice");
        expected.push((topic, Box::<str>::from(name)));
    }
    expected.sort_by(|a, b| a.1.cmp(&b.1));
    let of = |local: &str| {
        let question = SubscriptionsOf { domain, local: local.into() };
        ask(store, question)
    };
    assert_eq!(of("alice"), expected);
    assert!(of("bob").is_empty());
}

pub(super) fn are_listed_by_jid_in_pages(store: &dyn Store) {
    let (domain, other) = (domain(store), domain_named(store, "other.example"));
    let news = topic(store, domain, "news");
    let mut expected = Vec::new();
    for n in 0..50 {
        let (domain, host) = if n % 4 == 0 { (other, "other.example") } else { (domain, "example.org") };
        account(store, domain, &format!("u{n}"));
        subscribe(store, news, domain, &format!("u{n}"));
        expected.push(jid(&format!("u{n}@{host}")));
    }
    expected.sort();
    let mut found = Vec::new();
    loop {
        let question = Subscribers { topic: news, after: found.last().cloned(), limit: 7 };
        let page = ask(store, question);
        assert!(page.len() <= 7);
        if page.is_empty() {
            break;
        }
        found.extend(page);
    }
    assert_eq!(found, expected);
    let count = |topic| ask(store, SubscriberCount { topic });
    assert_eq!((count(news), count(TopicId(999))), (50, 0));
    let nobody = Subscribers { topic: TopicId(999), after: None, limit: 7 };
    assert!(ask(store, nobody).is_empty());
}

pub(super) fn are_bounded_for_their_account(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let topics = ["a", "b", "c"].map(|name| topic(store, domain, name));
    let subscribe = |topic, max| ask(store, Subscribe { topic, domain, local: "alice".into(), max, now: T });
    answer!(subscribe(topics[0], 2), SubscribeAnswer::Subscribed { new: true, .. } => ());
    answer!(subscribe(topics[1], 2), SubscribeAnswer::Subscribed { new: true, .. } => ());
    answer!(subscribe(topics[2], 2), SubscribeAnswer::Full => ());
    answer!(subscribe(topics[1], 2), SubscribeAnswer::Subscribed { new: false, .. } => ());
    missing(store, IsSubscribed { topic: topics[2], domain, local: "alice".into() });
    answer!(subscribe(topics[2], 3), SubscribeAnswer::Subscribed { new: true, .. } => ());
}
