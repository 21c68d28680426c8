//! Domains.

use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::Store;

fn listed(store: &dyn Store) -> Vec<Domain> {
    domains(store)
}

pub(super) fn are_listed_by_name(store: &dyn Store) {
    assert!(listed(store).is_empty());
    for name in ["beta.example", "alpha.example", "gamma.example"] {
        domain_named(store, name);
    }
    let names: Vec<_> = listed(store).iter().map(|d| d.name.to_string()).collect();
    assert_eq!(names, ["alpha.example", "beta.example", "gamma.example"]);
}

pub(super) fn are_changed_by_putting_them_again(store: &dyn Store) {
    let put = |policy| PutDomain { name: "example.org".into(), policy };
    let first = answer!(
        ask(store, put(Policy::default())), PutDomainAnswer { domain, created: true } => domain
    );
    let policy = Policy {
        sessions: SessionPolicy::Single,
        registration: true,
        account_management: false,
        pubsub_create: PubsubCreate::Admin,
        sessions_max: 1000,
        messages_durable: false,
        resumption_ms_max: 0,
        archive: true,
        archive_days: 30,
        archive_messages_max: 1000,
        archive_bytes_max: 1 << 40,
        keys_max: 7,
        other_domains: true,
        requests_per_second: 250,
        stanzas_per_second: 5000,
        bytes_per_second: u32::MAX,
        rooms_create: RoomsCreate::Admin,
        rooms_owned_max: 3,
        rooms_max: 1_000_000,
        accounts_max: 100_000_000,
        topics_max: 4,
        topics_owned_max: 5,
        subscriptions_max: 6,
        sessions_total_max: 7,
        bytes_out_per_second: u32::MAX - 1,
        stored_bytes_max: 1 << 41,
        room_events: RoomEvents::Membership,
        room_archive_days: 36_500,
    };
    let second = answer!(ask(store, put(policy)), PutDomainAnswer { domain, created: false } => domain);
    assert_eq!((second.id, second.policy, second.granted), (first.id, policy, policy));
    assert_eq!(listed(store), [second]);
}

pub(super) fn are_changed_unless_somebody_else_was_first(store: &dyn Store) {
    let (name, default) = (|| Box::<str>::from("example.org"), Policy::default());
    let create = ChangePolicy { name: name(), was: None, granted: default, policy: default };
    let made = answer!(ask(store, create.clone()), Ok(domain) => domain);
    assert_eq!(ask(store, create), Err(Overtaken), "it is there");
    let (was, policy) = (Some(Box::new((default, default))), Policy { sessions_max: 3, ..default });
    let change = ChangePolicy { name: name(), was: was.clone(), granted: default, policy };
    let changed = answer!(ask(store, change.clone()), Ok(domain) => domain);
    assert_eq!((changed.id, changed.granted, changed.policy), (made.id, default, policy));
    assert_eq!(ask(store, change), Err(Overtaken), "it has changed since");
    assert_eq!(listed(store), [changed]);
    let nowhere = ChangePolicy { name: "nowhere.example".into(), was, granted: default, policy };
    assert_eq!(ask(store, nowhere), Err(Overtaken), "it is not there");

    // What was chosen stays where the grant did not change.
    let granted = Policy { registration: true, ..default };
    let put = PutDomain { name: name(), policy: granted };
    let put = answer!(ask(store, put), PutDomainAnswer { domain, created: false } => domain);
    assert_eq!((put.granted, put.policy), (granted, Policy { registration: true, ..policy }));
    assert_eq!(listed(store), [put]);
}

pub(super) fn are_measured_in_pages(store: &dyn Store) {
    let (domain, other) = (domain(store), domain_named(store, "other.example"));
    account(store, other, "elsewhere");
    for local in ["a", "b", "c"] {
        account(store, domain, local);
        let (stanza, received) = (vec![b'x'; 1000].into(), T);
        let local = local.into();
        done(
            store,
            StoreOffline {
                domain,
                local,
                received,
                stanza,
                expires: None,
                queue_max: 9,
                bytes_max: u64::MAX,
                wake: None,
            },
        );
    }
    let news = topic(store, domain, "news");
    let measured = |kind, after: Option<&str>, limit| {
        let part = ask(store, StoredBytes { domain, kind, after: after.map(Into::into), limit });
        (part.bytes, part.last)
    };
    let (two, last) = measured(StoredKind::Accounts, None, 2);
    assert!(two >= 2000, "{two}");
    assert_eq!(last.as_deref(), Some("b"));
    let (one, last) = measured(StoredKind::Accounts, last.as_deref(), 2);
    assert_eq!((one, last), (two / 2, None));
    assert_eq!(measured(StoredKind::Topics, None, 2), (0, None));
    ask(store, Publish { item: item(news, domain, "news", "1"), keep: 10, bytes_max: u64::MAX });
    assert!(measured(StoredKind::Topics, None, 2).0 > 0);
    assert_eq!(listed(store).iter().map(|d| d.stored_bytes).collect::<Vec<_>>(), [0, 0]);
    done(store, NoteStored { domain, bytes: 3000 });
    missing(store, NoteStored { domain: DomainId(77), bytes: 1 });
    let noted = listed(store);
    assert_eq!(noted.iter().map(|d| d.stored_bytes).collect::<Vec<_>>(), [3000, 0]);
    done(store, SetPushTemplates { domain, templates: Some("{}".into()) });
    missing(store, SetPushTemplates { domain: DomainId(77), templates: None });
    let templates =
        || listed(store).iter().map(|d| d.push_templates.as_deref().map(str::len)).collect::<Vec<_>>();
    assert_eq!(templates(), [Some(2), None]);
    // A new policy is no new measure, and changes no words.
    let policy = Policy { stored_bytes_max: 3000, ..Policy::default() };
    let put = ask(store, PutDomain { name: "example.org".into(), policy }).domain;
    assert!(put.is_full());
    assert_eq!(listed(store).first(), Some(&put));
    done(store, SetPushTemplates { domain, templates: None });
    assert_eq!(templates(), [None, None]);
}

pub(super) fn that_are_missing(store: &dyn Store) {
    missing(store, delete_domain(DomainId(42)));
    let domain = domain(store);
    done(store, delete_domain(domain));
    missing(store, delete_domain(domain));
    assert!(listed(store).is_empty());
}

pub(super) fn take_all_along(store: &dyn Store) {
    let (domain, other) = (domain(store), domain_named(store, "other.example"));
    account(store, domain, "alice");
    account(store, other, "bob");
    let (news, theirs) = (topic(store, domain, "news"), topic(store, other, "theirs"));
    subscribe(store, news, other, "bob");
    subscribe(store, theirs, domain, "alice");
    let changes = vec![(jid("alice@example.org"), Affiliation::Owner)];
    done(store, SetAffiliations { topic: theirs, changes });
    publish(store, news, domain, "1", 10);
    stored(store, notification(domain, "alice", 1));
    stored(store, notification(domain, "alice", 2));
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
    let hash = [1; 32];
    let key = CreateKey {
        hash,
        name: "k".into(),
        domain: Some(domain),
        scopes: Scopes::of(&[Scope::Send]),
        expires: None,
        networks: Box::default(),
        certificates: Box::default(),
        node_keys_max: NODE_KEYS_MAX,
        now: T,
    };
    done(store, key);

    done(store, delete_domain(domain));

    missing(store, identity_ask(domain, "alice"));
    missing(store, Topic { domain, name: "news".into() });
    missing(store, trace_ask(id(1)));
    missing(store, trace_ask(id(2)));
    missing(store, Key { hash });
    assert!(item_ids(store, news).is_empty());
    let of_bob = SubscriptionsOf { domain: other, local: "bob".into() };
    assert!(ask(store, of_bob).is_empty());
    let of_theirs = Subscribers { topic: theirs, after: None, limit: 9 };
    assert!(ask(store, of_theirs).is_empty());
    let described = Topic { domain: other, name: "theirs".into() };
    answer!(ask(store, described), Some(topic) => assert!(topic.affiliations.is_empty()));
    assert_ne!(domain_named(store, "example.org"), domain, "a number names one thing for ever");
}

pub(super) fn leave_others_alone(store: &dyn Store) {
    let (domain, other) = (domain(store), domain_named(store, "other.example"));
    account(store, other, "bob");
    let theirs = topic(store, other, "theirs");
    subscribe(store, theirs, other, "bob");
    stored(store, Notification { to: jid("bob@other.example"), ..notification(other, "bob", 1) });
    done(store, delete_domain(domain));
    assert_eq!(login(store, other, "bob").subscriptions.len(), 1);
    assert_eq!(trace(store, id(1)).to, jid("bob@other.example"));
}
