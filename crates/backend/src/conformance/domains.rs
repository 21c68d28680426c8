//! Domains.

use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::{Answer, Ask, Store};

fn listed(store: &dyn Store) -> Vec<Domain> {
    answer!(ask(store, Ask::Domains), Answer::Domains(domains) => domains)
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
    let put = |policy| Ask::PutDomain { name: "example.org".into(), policy };
    let first = answer!(
        ask(store, put(Policy::default())), Answer::Domain { domain, created: true } => domain
    );
    let policy = Policy {
        sessions: SessionPolicy::Single,
        registration: true,
        pubsub_create: PubsubCreate::Admin,
        sessions_max: 1000,
    };
    let second = answer!(ask(store, put(policy)), Answer::Domain { domain, created: false } => domain);
    assert_eq!((second.id, second.policy), (first.id, policy));
    assert_eq!(listed(store), [second]);
}

pub(super) fn that_are_missing(store: &dyn Store) {
    missing(store, Ask::DeleteDomain { domain: DomainId(42) });
    let domain = domain(store);
    done(store, Ask::DeleteDomain { domain });
    missing(store, Ask::DeleteDomain { domain });
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
    done(store, Ask::SetAffiliations { topic: theirs, changes });
    publish(store, news, domain, "1", 10);
    stored(store, notification(domain, "alice", 1));
    stored(store, notification(domain, "alice", 2));
    end(store, vec![acknowledged(id(2))]);
    let stanza = "<message/>".into();
    done(store, Ask::StoreOffline { domain, local: "alice".into(), received: T, stanza, queue_max: 9 });
    let hash = [1; 32];
    let key = Ask::CreateKey {
        hash,
        name: "k".into(),
        domain: Some(domain),
        scopes: Scopes::of(&[Scope::Send]),
        now: T,
    };
    answer!(ask(store, key), Answer::Key(_) => ());

    done(store, Ask::DeleteDomain { domain });

    missing(store, identity_ask(domain, "alice"));
    missing(store, Ask::Topic { domain, name: "news".into() });
    missing(store, Ask::Trace { id: id(1) });
    missing(store, Ask::Trace { id: id(2) });
    missing(store, Ask::Key { hash });
    assert!(item_ids(store, news).is_empty());
    let of_bob = Ask::SubscriptionsOf { domain: other, local: "bob".into() };
    answer!(ask(store, of_bob), Answer::TopicNames(names) => assert!(names.is_empty()));
    let of_theirs = Ask::Subscribers { topic: theirs, after: None, limit: 9 };
    answer!(ask(store, of_theirs), Answer::Jids(jids) => assert!(jids.is_empty()));
    let described = Ask::Topic { domain: other, name: "theirs".into() };
    answer!(ask(store, described), Answer::Topic(topic) => assert!(topic.affiliations.is_empty()));
    assert_ne!(domain_named(store, "example.org"), domain, "a number names one thing for ever");
}

pub(super) fn leave_others_alone(store: &dyn Store) {
    let (domain, other) = (domain(store), domain_named(store, "other.example"));
    account(store, other, "bob");
    let theirs = topic(store, other, "theirs");
    subscribe(store, theirs, other, "bob");
    stored(store, Notification { to: jid("bob@other.example"), ..notification(other, "bob", 1) });
    done(store, Ask::DeleteDomain { domain });
    assert_eq!(login(store, other, "bob").subscriptions.len(), 1);
    assert_eq!(trace(store, id(1)).to, jid("bob@other.example"));
}
