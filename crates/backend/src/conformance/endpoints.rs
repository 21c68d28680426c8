//! Endpoints of this server as a push service.

use super::Noun;
use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::store::accounts::DeleteAccount;
use carillon_core::ports::store::endpoints::*;
use carillon_core::ports::{Ask, Store};

pub(super) const NOUN: Noun = Noun {
    writes: |domain| {
        vec![
            Ask::from(register(domain, "alice", 1)),
            Ask::from(RevokeEndpoints { domain, local: "alice".into(), id: Some(EndpointId(2)) }),
        ]
    },
    state: |store, domain| format!("{:?}", of(store, domain, None)),
    write_lasting: |store, domain| {
        for n in [1, 2] {
            registered(store, register(domain, "alice", n));
        }
        ask(store, RevokeEndpoints { domain, local: "alice".into(), id: Some(EndpointId(2)) });
    },
    check_lasting: |store, domain| {
        assert_eq!(ids(&of(store, domain, Some("alice"))), [1]);
    },
};

/// Asks for the endpoint of the `n`th application on a phone, for a minute from [`T`] on.
fn register(domain: DomainId, local: &str, n: u8) -> RegisterEndpoint {
    RegisterEndpoint {
        domain,
        local: local.into(),
        id: EndpointId(n.into()),
        resource: "phone".into(),
        application: [n; 32],
        instance: [0; 32],
        sender: None,
        now: T,
        expires: T.plus(60_000),
        per_account_max: 3,
    }
}

fn registered(store: &dyn Store, question: RegisterEndpoint) -> EndpointId {
    answer!(ask(store, question), RegisterEndpointAnswer::Registered(id) => id)
}

fn of(store: &dyn Store, domain: DomainId, account: Option<&str>) -> Vec<Endpoint> {
    let account = account.map(Box::from);
    ask(store, ListEndpoints { domain, account, after: EndpointId(0), max: 100 }).entries
}

fn ids(endpoints: &[Endpoint]) -> Vec<u128> {
    endpoints.iter().map(|endpoint| endpoint.id.0).collect()
}

pub(super) fn are_found_by_their_ids(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    account(store, domain, "bob");
    assert_eq!(ask(store, register(domain, "nobody", 1)), RegisterEndpointAnswer::NoAccount);
    let last = EndpointId(u128::MAX);
    let question = RegisterEndpoint {
        id: last,
        resource: "é / ".into(),
        sender: Some([4; 65]),
        ..register(domain, "alice", 1)
    };
    assert_eq!(registered(store, question), last);
    let found = ask(store, FindEndpoint { domain, id: last }).expect("it is there");
    let expected = Endpoint {
        id: last,
        domain,
        account: jid("alice@example.org"),
        resource: "é / ".into(),
        application: [1; 32],
        instance: [0; 32],
        sender: Some([4; 65]),
        created: T,
        expires: T.plus(60_000),
    };
    assert_eq!(*found, expected);
    assert_eq!(ask(store, FindEndpoint { domain: DomainId(domain.0 + 1), id: last }), None);
    assert_eq!(ask(store, FindEndpoint { domain, id: EndpointId(1) }), None);
    registered(store, register(domain, "bob", 7));
    registered(store, register(domain, "bob", 3));
    let list = |account: Option<&str>, after, max| {
        let (account, after) = (account.map(Box::from), EndpointId(after));
        let (found, more) = both(ask(store, ListEndpoints { domain, account, after, max }));
        (ids(&found), more)
    };
    assert_eq!(list(None, 0, 9), (vec![3, 7, u128::MAX], false));
    assert_eq!(list(None, 0, 2), (vec![3, 7], true));
    assert_eq!(list(None, 7, 2), (vec![u128::MAX], false));
    assert_eq!(list(Some("bob"), 0, 1), (vec![3], true));
    assert_eq!(list(Some("bob"), 3, 1), (vec![7], false));
    assert_eq!(list(Some("nobody"), 0, 9), (vec![], false));
}

pub(super) fn go_on_when_they_are_asked_for_again(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    registered(store, register(domain, "alice", 1));
    let later = RegisterEndpoint {
        id: EndpointId(99),
        now: T.plus(10),
        expires: T.plus(70_000),
        ..register(domain, "alice", 1)
    };
    assert_eq!(registered(store, later.clone()), EndpointId(1), "it keeps its id");
    let found = of(store, domain, None);
    assert_eq!((ids(&found), found[0].created, found[0].expires), (vec![1], T, T.plus(70_000)));
    // For another sender it is another one, and the URL of the one before is of no use any more.
    assert_eq!(
        registered(store, RegisterEndpoint { sender: Some([4; 65]), ..later.clone() }),
        EndpointId(99)
    );
    assert_eq!(ids(&of(store, domain, None)), [99]);
    let others = [
        RegisterEndpoint { id: EndpointId(5), resource: "desk".into(), ..later.clone() },
        RegisterEndpoint { id: EndpointId(6), instance: [1; 32], ..later },
    ];
    for other in others {
        assert_eq!(registered(store, other.clone()), other.id);
    }
    assert_eq!(ids(&of(store, domain, None)), [5, 6, 99]);
}

pub(super) fn are_as_many_as_an_account_may_have(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    account(store, domain, "bob");
    for n in [1, 2, 3, 1] {
        registered(store, register(domain, "alice", n));
    }
    assert_eq!(ask(store, register(domain, "alice", 4)), RegisterEndpointAnswer::TooMany);
    registered(store, register(domain, "bob", 5));
    ask(store, RevokeEndpoints { domain, local: "alice".into(), id: Some(EndpointId(2)) });
    registered(store, register(domain, "alice", 4));
    assert_eq!(ids(&of(store, domain, Some("alice"))), [1, 3, 4]);
}

pub(super) fn are_forgotten_when_they_have_expired(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    account(store, domain, "bob");
    for n in [1, 2] {
        registered(store, register(domain, "alice", n));
    }
    registered(store, register(domain, "bob", 3));
    // They are there until somebody asks for one.
    assert_eq!(ids(&of(store, domain, None)), [1, 2, 3]);
    let now = T.plus(60_001);
    let later = RegisterEndpoint { now, expires: now.plus(1), ..register(domain, "alice", 2) };
    assert_eq!(registered(store, later), EndpointId(2));
    let found = of(store, domain, None);
    assert_eq!((ids(&found), found[0].created), (vec![2], now));
}

pub(super) fn are_revoked(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    account(store, domain, "bob");
    for n in [1, 2, 3] {
        registered(store, register(domain, "alice", n));
    }
    registered(store, register(domain, "bob", 4));
    let revoke = |local: &str, id: Option<u128>| {
        ask(store, RevokeEndpoints { domain, local: local.into(), id: id.map(EndpointId) });
    };
    revoke("bob", Some(1));
    revoke("nobody", None);
    assert_eq!(ids(&of(store, domain, None)), [1, 2, 3, 4], "they are of their account");
    revoke("alice", Some(1));
    assert_eq!(ids(&of(store, domain, None)), [2, 3, 4]);
    revoke("alice", None);
    assert_eq!(ids(&of(store, domain, None)), [4]);
}

pub(super) fn go_with_their_account_and_their_domain(store: &dyn Store) {
    let domain = domain(store);
    for (local, n) in [("alice", 1), ("bob", 2)] {
        account(store, domain, local);
        registered(store, register(domain, local, n));
    }
    done(store, DeleteAccount { domain, local: "alice".into(), now: T, held_until: T, rows_max: u32::MAX });
    assert_eq!(ids(&of(store, domain, None)), [2]);
    while ask(store, delete_domain(domain)).expect("it is there").more {}
    assert_eq!(ask(store, FindEndpoint { domain, id: EndpointId(2) }), None);
}
