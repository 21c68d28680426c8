//! What must still be there after the store was closed and opened again.

use super::Lasting;
use super::events;
use super::ground::*;
use super::leases;
use super::parked;
use super::webhooks;
use super::{archives, blocklists, inbox, links, nodes, private, rosters, vcards};
use carillon_core::model::*;
use carillon_core::ports::Store;

pub(super) const ALL: &[Lasting] = &[
    Lasting { name: "lasting::everything", write: write_everything, check: check_everything },
    Lasting { name: "lasting::revisions", write: write_revisions, check: check_revisions },
    Lasting { name: "lasting::events", write: events::write_lasting, check: events::check_lasting },
    Lasting { name: "lasting::webhooks", write: webhooks::write_lasting, check: webhooks::check_lasting },
    Lasting { name: "lasting::leases", write: leases::write_lasting, check: leases::check_lasting },
    Lasting { name: "lasting::private", write: private::write_lasting, check: private::check_lasting },
    Lasting { name: "lasting::vcards", write: vcards::write_lasting, check: vcards::check_lasting },
    Lasting { name: "lasting::inbox", write: inbox::write_lasting, check: inbox::check_lasting },
    Lasting { name: "lasting::parked", write: parked::write_lasting, check: parked::check_lasting },
    Lasting { name: "lasting::nodes", write: nodes::write_lasting, check: nodes::check_lasting },
    Lasting {
        name: "lasting::blocklists",
        write: blocklists::write_lasting,
        check: blocklists::check_lasting,
    },
    Lasting { name: "lasting::archives", write: archives::write_lasting, check: archives::check_lasting },
    Lasting { name: "lasting::rosters", write: rosters::write_lasting, check: rosters::check_lasting },
    Lasting { name: "lasting::links", write: links::write_lasting, check: links::check_lasting },
    Lasting { name: "lasting::nouns", write: write_nouns, check: check_nouns },
    Lasting { name: "lasting::unanswered", write: write_unanswered, check: check_unanswered },
];

/// Of the nouns that say so in their own files.
fn write_nouns(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    super::NOUNS.iter().for_each(|noun| (noun.write_lasting)(store, domain));
}

fn check_nouns(store: &dyn Store) {
    let domain = domains(store)[0].id;
    super::NOUNS.iter().for_each(|noun| (noun.check_lasting)(store, domain));
}

fn write_everything(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let news = topic(store, domain, "news");
    subscribe(store, news, domain, "alice");
    publish(store, news, domain, "1", 10);
    let changes = vec![(jid("alice@example.org"), Affiliation::Owner)];
    done(store, SetAffiliations { topic: news, changes });
    for n in 1..=3 {
        stored(store, notification(domain, "alice", n));
    }
    stored(store, Notification { send_at: Some(T.plus(50)), ..notification(domain, "alice", 4) });
    end(store, vec![acknowledged(id(2))]);
    let stanza = "<message/>".into();
    done(
        store,
        StoreOffline {
            domain,
            local: "alice".into(),
            received: T,
            stanza,
            expires: None,
            queue_max: 9,
            bytes_max: u64::MAX,
            wake: None,
        },
    );
    let scopes = Scopes::of(&[Scope::Admin]);
    let key = CreateKey {
        hash: [1; 32],
        name: "k".into(),
        domain: None,
        scopes,
        expires: None,
        networks: Box::default(),
        certificates: Box::default(),
        node_keys_max: NODE_KEYS_MAX,
        now: T,
    };
    done(store, key);
    assert_eq!(ask(store, reserve()), Reservation::Go { since: T });
    let idempotency_key = "order-1".into();
    done(store, Remember { key: KeyId(1), idempotency_key, response: "{}".into() });
}

fn reserve() -> Reserve {
    Reserve {
        key: KeyId(1),
        idempotency_key: "order-1".into(),
        body_hash: [1; 32],
        kept_bytes_max: u64::MAX,
        now: T,
    }
}

fn check_everything(store: &dyn Store) {
    let domains = domains(store);
    assert_eq!(domains.len(), 1);
    let domain = domains[0].id;
    let (who, login) = (identity(store, domain, "alice"), login(store, domain, "alice"));
    assert_eq!((who.credentials, who.state), (keys(1), AccountState::Enabled));
    assert_eq!(login.subscriptions[0].last.as_ref().map(|item| &*item.id), Some("1"));
    assert_eq!(login.waiting, LoginBacklog { notifications: true, messages: true });
    assert_eq!(waiting(store, domain, "alice", T), [1, 3].map(id));
    assert_eq!(state(store, id(2)), NotificationState::Acknowledged);
    assert_eq!(state(store, id(4)), NotificationState::Scheduled);
    let record = ask(store, Topic { domain, name: "news".into() });
    answer!(record, Some(record) => assert_eq!(record.affiliations.len(), 1));
    done(store, Key { hash: [1; 32] });
    assert_eq!(ask(store, reserve()), Reservation::Replay { response: "{}".into() });
}

fn write_revisions(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let news = topic(store, domain, "news");
    subscribe(store, news, domain, "alice");
    publish(store, news, domain, "kept", 1);
    // The last revision belongs to something that leaves no row.
    let passing = (0..10).map(|_| publish(store, news, domain, "passing", 0)).last().expect("ten");
    done(store, Unsubscribe { topic: news, domain, local: "alice".into() });
    let title = format!("{} {}", passing.revision, login(store, domain, "alice").generation);
    let config = TopicConfig { title, ..TopicConfig::default() };
    done(store, create_topic(domain, "reached", config));
}

fn check_revisions(store: &dyn Store) {
    let domain = domain(store);
    let topic =
        |name: &str| answer!(ask(store, Topic { domain, name: name.into() }), Some(record) => *record);
    let title = topic("reached").config.title;
    let (revision, generation) = title.split_once(' ').expect("two");
    let before: (u64, u64) = (revision.parse().expect("a number"), generation.parse().expect("a number"));
    assert_eq!(login(store, domain, "alice").generation, Generation(before.1));
    let news = topic("news").id;
    assert_eq!(publish(store, news, domain, "next", 1).revision, Revision(before.0 + 1));
    subscribe(store, news, domain, "alice");
    assert_eq!(login(store, domain, "alice").generation, Generation(before.1 + 1));
}

/// Asked, and closed without waiting: closing commits what waits.
fn write_unanswered(store: &dyn Store) {
    let domain = domain(store);
    for n in 0..1000 {
        drop(asked(store, create_account(domain, &format!("u{n}"))));
    }
    store.close();
}

fn check_unanswered(store: &dyn Store) {
    let domain = domain(store);
    for n in [0, 500, 999] {
        login(store, domain, &format!("u{n}"));
    }
}
