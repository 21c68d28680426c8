//! Names and texts that are not what one thinks of first.

use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::Store;

fn texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "news",
        "",
        " ",
        "nouvelles d'été",
        "ニュース",
        "أخبار",
        "🔔🔕",
        "e\u{301} and \u{e9}",
        "'; DROP TABLE topic; --",
        "\"quoted\" `ticks` [brackets]",
        "100 % _ * ? \\",
        "a\0b",
        "a\0c",
        "\0",
        "line\r\nbreak\tand tab",
        "NULL",
        "007",
        "7",
        "7.0",
        "\u{feff}bom",
        "\u{10ffff}",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.push("x".repeat(1023));
    texts
}

/// Topics, items, titles, collapse keys, API keys and idempotency keys of every text, each found under its own only.
fn every_text(store: &dyn Store, texts: &[String]) {
    let domain = domain(store);
    account(store, domain, "alice");
    let mut named = Vec::new();
    for (n, text) in (0..).zip(texts.iter().filter(|text| !text.is_empty())) {
        let config = TopicConfig { title: text.clone(), ..TopicConfig::default() };
        let made = answer!(ask(store, create_topic(domain, text, config)), CreateTopicAnswer::Created(topic) => topic);
        publish(store, made.id, domain, text, 1);
        subscribe(store, made.id, domain, "alice");
        named.push((made.id, Box::<str>::from(text.as_str())));
        let found = ask(store, Topic { domain, name: text.as_str().into() });
        answer!(found, Some(found) => assert_eq!(found, made));
        assert_eq!(item_ids(store, made.id), [Box::from(text.as_str())]);
        let keyed =
            Notification { collapse_key: Some(text.as_str().into()), ..notification(domain, "alice", n) };
        assert!(stored(store, keyed).is_empty(), "{text:?} is no other's key");
    }
    named.sort_by(|a, b| a.1.cmp(&b.1));
    let of = SubscriptionsOf { domain, local: "alice".into() };
    assert_eq!(ask(store, of), named);
    for text in texts {
        let idempotency_key: Box<str> = text.as_str().into();
        let reserve =
            Reserve { key: KeyId(1), idempotency_key, body_hash: [1; 32], kept_bytes_max: u64::MAX, now: T };
        assert_eq!(ask(store, reserve), Reservation::Go { since: T });
    }
}

pub(super) fn in_every_script(store: &dyn Store) {
    let domain = domain_named(store, "münchen.example");
    for local in ["jürgen", "用户", "пользователь", "émile.d"] {
        account(store, domain, local);
        let found = ask(store, Account { domain, local: local.into() });
        let found = answer!(found, Some(found) => found);
        assert_eq!(found.jid.local(), Some(local));
        assert_eq!(found.jid.domain(), "münchen.example");
    }
    missing(store, identity_ask(domain, "jurgen"));
}

pub(super) fn hostile(store: &dyn Store) {
    every_text(store, &texts());
}

pub(super) fn very_long(store: &dyn Store) {
    let domain = domain(store);
    let local = "l".repeat(1023);
    account(store, domain, &local);
    assert!(login(store, domain, &local).subscriptions.is_empty());
    let name = "é".repeat(511);
    let news = topic(store, domain, &name);
    let mut long = item(news, domain, &name, &"i".repeat(10_000));
    long.payload = vec![0xa5; 2 << 20].into();
    let made = answer!(ask(store, Publish { item: long, keep: 1, bytes_max: u64::MAX }), Some(item) => item);
    let found = answer!(ask(store, Items::newest(news, 5)), Some(items) => items);
    assert_eq!(found, [made]);
    subscribe(store, news, domain, &local);
    assert_eq!(login(store, domain, &local).subscriptions[0].last, found.first().cloned());
}

pub(super) fn far_in_time(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let end_of_time = UnixMs(u64::MAX);
    stored(store, Notification { expires: Some(end_of_time), ..notification(domain, "alice", 1) });
    stored(store, Notification { send_at: Some(end_of_time), ..notification(domain, "alice", 2) });
    assert_eq!(waiting(store, domain, "alice", T), [id(1)]);
    assert_eq!(state(store, id(2)), NotificationState::Scheduled);
    let swept = ask(store, Sweep { now: UnixMs(0), forget: UnixMs(0), max: 9 });
    answer!(swept, Part { entries: traces, more: false } => assert!(traces.is_empty()));
}
