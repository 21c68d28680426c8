//! Logins.

use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::Store;
use carillon_core::ports::store::accounts;
use std::sync::Arc;

pub(super) fn of_nobody(store: &dyn Store) {
    missing(store, identity_ask(DomainId(1), "alice"));
    missing(store, login_ask(AccountId(1)));
    let domain = domain(store);
    missing(store, identity_ask(domain, "alice"));
    missing(store, identity_ask(domain, ""));
    let gone = account(store, domain, "alice");
    done(store, DeleteAccount { domain, local: "alice".into(), now: T, held_until: T, rows_max: u32::MAX });
    missing(store, login_ask(gone));
}

pub(super) fn hold_keys_and_state(store: &dyn Store) {
    let domain = domain(store);
    let id = account(store, domain, "alice");
    let who = identity(store, domain, "alice");
    assert_eq!((who.account, who.credentials, who.state), (id, keys(1), AccountState::Enabled));
    let login = login(store, domain, "alice");
    assert_eq!(login.state, AccountState::Enabled);
    assert!(login.subscriptions.is_empty());
    assert_eq!(login.waiting, LoginBacklog::default());
}

pub(super) fn hold_topics_by_id_with_last_items(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let with = |name, send_last_published_item| {
        let config = TopicConfig { send_last_published_item, ..TopicConfig::default() };
        answer!(ask(store, create_topic(domain, name, config)), CreateTopicAnswer::Created(topic) => topic.id)
    };
    let sends = with("sends", SendLast::OnSubAndPresence);
    let once = with("once", SendLast::OnSub);
    let never = with("never", SendLast::Never);
    let empty = with("empty", SendLast::OnSubAndPresence);
    let config = TopicConfig { persist_items: false, ..TopicConfig::default() };
    let keeps_none = answer!(ask(store, create_topic(domain, "none", config)), CreateTopicAnswer::Created(topic) => topic.id);
    for topic in [keeps_none, empty, never, once, sends] {
        subscribe(store, topic, domain, "alice");
    }
    for topic in [sends, once, never] {
        publish(store, topic, domain, "old", 10);
    }
    publish(store, keeps_none, domain, "old", 0);
    let last = publish(store, sends, domain, "new", 10);
    let found = login(store, domain, "alice").subscriptions;
    let topics: Vec<TopicId> = found.iter().map(|s| s.topic).collect();
    assert_eq!(topics, [sends, once, never, empty, keeps_none]);
    let revisions = |found: &[Subscription]| {
        let revisions = found.iter().map(|s| s.revision.map(|revision| revision.0));
        revisions.collect::<Vec<_>>()
    };
    assert_eq!(revisions(&found), [Some(2), Some(1), Some(1), Some(0), None]);
    let read = found[0].last.as_ref().expect("the topic sends its last item");
    assert_eq!((&*read.id, read.revision, &read.payload), ("new", last.revision, &last.payload));
    assert!(found[1..].iter().all(|s| s.last.is_none()));

    done(store, Retract { topic: sends, item: "new".into() });
    let found = login(store, domain, "alice").subscriptions;
    assert_eq!(found[0].last.as_ref().map(|item| &*item.id), Some("old"));
    assert_eq!(revisions(&found)[..2], [Some(3), Some(1)]);
    assert!(!ask(store, Purge { topic: sends, items_max: u32::MAX }));
    assert!(login(store, domain, "alice").subscriptions[0].last.is_none());
    done(store, Unsubscribe { topic: sends, domain, local: "alice".into() });
    assert_eq!(login(store, domain, "alice").subscriptions.len(), 4);
}

pub(super) fn share_items(store: &dyn Store) {
    let domain = domain(store);
    let news = topic(store, domain, "news");
    for local in ["alice", "bob"] {
        account(store, domain, local);
        subscribe(store, news, domain, local);
    }
    publish(store, news, domain, "1", 10);
    let last = |local| login(store, domain, local).subscriptions[0].last.clone().expect("an item");
    assert!(Arc::ptr_eq(&last("alice"), &last("bob")), "the same item is in memory once");
}

pub(super) fn say_whether_notifications_wait(store: &dyn Store) {
    let domain = domain(store);
    let [alice, bob] = ["alice", "bob"].map(|local| account(store, domain, local));
    let waits = |account, now| {
        let login = answer!(ask(store, accounts::Login { account, parts: LoginParts::ALL, now }), Some(login) => login);
        assert!(!login.waiting.messages);
        login.waiting.notifications
    };
    stored(store, Notification { send_at: Some(T.plus(99)), ..notification(domain, "alice", 1) });
    assert!(!waits(alice, T), "not yet due");
    stored(store, Notification { expires: Some(T.plus(10)), ..notification(domain, "alice", 2) });
    assert!(waits(alice, T.plus(9)) && !waits(bob, T));
    assert!(!waits(alice, T.plus(10)), "expired by then");
    stored(store, notification(domain, "alice", 3));
    assert!(waits(alice, T.plus(10)));
    end(store, vec![acknowledged(id(3))]);
    assert!(!waits(alice, T.plus(10)));
}

fn keep_offline(store: &dyn Store, domain: DomainId, local: &str) {
    let (local, stanza) = (local.into(), bytes::Bytes::from_static(b"<message/>"));
    done(
        store,
        StoreOffline {
            domain,
            local,
            received: T,
            stanza,
            expires: None,
            queue_max: 9,
            bytes_max: u64::MAX,
            wake: None,
        },
    );
}

pub(super) fn say_whether_messages_wait(store: &dyn Store) {
    let domain = domain(store);
    for local in ["alice", "bob"] {
        account(store, domain, local);
    }
    keep_offline(store, domain, "alice");
    let waiting = LoginBacklog { notifications: false, messages: true };
    assert_eq!(login(store, domain, "alice").waiting, waiting);
    assert_eq!(login(store, domain, "bob").waiting, LoginBacklog::default());
    let page = Offline { domain, local: "alice".into(), after: 0, page: page(9) };
    let seqs = ask(store, page).entries;
    let seqs = seqs.iter().map(|message| message.seq).collect();
    done(store, DeleteOffline { domain, local: "alice".into(), seqs });
    assert_eq!(login(store, domain, "alice").waiting, LoginBacklog::default());
}

pub(super) fn hold_what_was_asked_for(store: &dyn Store) {
    let domain = domain(store);
    let alice = account(store, domain, "alice");
    let news = topic(store, domain, "news");
    subscribe(store, news, domain, "alice");
    publish(store, news, domain, "1", 1);
    stored(store, notification(domain, "alice", 1));
    keep_offline(store, domain, "alice");
    let generation = login(store, domain, "alice").generation;
    let all = [false, true];
    let wanted = all.map(|subscriptions| {
        all.map(|notifications| all.map(|messages| LoginParts { subscriptions, notifications, messages }))
    });
    // Together, so that a store that answers many by one query is asked for different parts in one.
    let asked = wanted.as_flattened().as_flattened().iter().map(|parts| {
        let login = accounts::Login { account: alice, parts: *parts, now: T };
        (*parts, asked(store, login))
    });
    for (parts, receiver) in asked.collect::<Vec<_>>() {
        let login = answer!(waited(&receiver), Some(login) => login);
        let found = LoginParts {
            subscriptions: !login.subscriptions.is_empty(),
            notifications: login.waiting.notifications,
            messages: login.waiting.messages,
        };
        assert_eq!((found, login.state), (parts, AccountState::Enabled));
        assert_eq!(login.generation, generation, "whatever is read");
    }
}

pub(super) fn have_a_higher_generation_after_each_change(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let [news, other, gone] = ["news", "other", "gone"].map(|name| topic(store, domain, name));
    let mut last = login(store, domain, "alice").generation;
    let mut is_higher = |what: &str| {
        let generation = login(store, domain, "alice").generation;
        assert!(generation > last, "{what}: {generation} after {last}");
        last = generation;
    };
    for topic in [news, other, gone] {
        subscribe(store, topic, domain, "alice");
        is_higher("a subscription");
    }
    done(store, SetCredentials { domain, local: "alice".into(), credentials: keys(2) });
    is_higher("other keys");
    let accounts = vec![ImportedAccount { local: "alice".into(), credentials: keys(3) }];
    done(store, ImportAccounts { domain, accounts, now: T });
    is_higher("imported keys");
    let state = AccountState::Disabled(T);
    done(store, SetAccountState { domain, local: "alice".into(), state });
    is_higher("another state");
    done(store, RevokeTokens { domain, local: "alice".into(), agent: None });
    is_higher("revoked tokens");
    // The newest of its subscriptions is the first that goes.
    done(store, DeleteTopic { topic: gone, rows_max: TOPIC_PART_ROWS });
    is_higher("a topic that is gone");
    for topic in [other, news] {
        done(store, Unsubscribe { topic, domain, local: "alice".into() });
        is_higher("a subscription that ended");
    }
    subscribe(store, news, domain, "alice");
    is_higher("a subscription that is back");
}

pub(super) fn have_a_generation_of_their_own(store: &dyn Store) {
    let domain = domain(store);
    for local in ["alice", "bob"] {
        account(store, domain, local);
    }
    let news = topic(store, domain, "news");
    subscribe(store, news, domain, "alice");
    let before = login(store, domain, "alice").generation;
    subscribe(store, news, domain, "alice");
    subscribe(store, news, domain, "bob");
    done(store, SetCredentials { domain, local: "bob".into(), credentials: keys(2) });
    done(store, Unsubscribe { topic: news, domain, local: "bob".into() });
    missing(store, Unsubscribe { topic: TopicId(999), domain, local: "alice".into() });
    publish(store, news, domain, "1", 1);
    stored(store, notification(domain, "alice", 1));
    let after = login(store, domain, "alice");
    assert_eq!(after.generation, before, "others, items and notifications are no part of it");
    assert_eq!(after.subscriptions[0].last.as_ref().map(|item| &*item.id), Some("1"), "and yet the truth");
}

pub(super) fn of_many_at_once(store: &dyn Store) {
    let domains = [domain(store), domain_named(store, "other.example")];
    let news = topic(store, domains[0], "news");
    publish(store, news, domains[0], "1", 1);
    let who = |n: usize| (domains[usize::from(n.is_multiple_of(5))], format!("u{n}"));
    let (exists, follows) = (|n: usize| !n.is_multiple_of(7), |n: usize| n.is_multiple_of(3));
    let writes: Vec<_> = (0..500)
        .filter(|n| exists(*n))
        .map(|n| {
            let (domain, local) = who(n);
            let account = asked(store, create_account(domain, &local));
            let subscribe =
                Subscribe { topic: news, domain, local: local.as_str().into(), max: u32::MAX, now: T };
            (account, follows(n).then(|| asked(store, subscribe)))
        })
        .collect();
    for (account, subscribed) in &writes {
        answer!(waited(account), CreateAccountAnswer::Created(_) => ());
        if let Some(receiver) = subscribed {
            answer!(waited(receiver), SubscribeAnswer::Subscribed { new: true, .. } => ());
        }
    }
    let identities: Vec<_> = (0..500).map(|n| asked(store, identity_ask(who(n).0, &who(n).1))).collect();
    let mut accounts = Vec::new();
    for (n, receiver) in identities.iter().enumerate() {
        match waited(receiver) {
            None if !exists(n) => {}
            Some(identity) if exists(n) => accounts.push((n, identity.account)),
            other => panic!("u{n}: {other:?}"),
        }
    }
    let different: std::collections::HashSet<_> = accounts.iter().map(|(_, account)| account).collect();
    assert_eq!(different.len(), accounts.len(), "nobody got the answer of another");
    // One that is not there, in the middle of those that are.
    accounts.insert(250, (500, AccountId(1 << 40)));
    let logins: Vec<_> = accounts.iter().map(|(_, account)| asked(store, login_ask(*account))).collect();
    for ((n, _), receiver) in accounts.iter().zip(&logins) {
        match waited(receiver) {
            None if *n == 500 => {}
            Some(login) => {
                assert_eq!(login.subscriptions.len(), usize::from(follows(*n)), "u{n}");
            }
            other => panic!("u{n}: {other:?}"),
        }
    }
}
