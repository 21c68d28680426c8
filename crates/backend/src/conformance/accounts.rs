//! Accounts.

use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::Store;

fn described(store: &dyn Store, domain: DomainId, local: &str) -> Enrolment {
    let question = Account { domain, local: local.into() };
    answer!(ask(store, question), Some(enrolment) => *enrolment)
}

pub(super) fn are_created_once(store: &dyn Store) {
    let domain = domain(store);
    let id = account(store, domain, "alice");
    assert_eq!(ask(store, create_account(domain, "alice")), CreateAccountAnswer::Exists);
    assert_eq!(identity(store, domain, "alice").account, id);
}

pub(super) fn need_a_domain(store: &dyn Store) {
    missing(store, create_account(DomainId(7), "alice"));
    let accounts = vec![ImportedAccount { local: "alice".into(), credentials: keys(1) }];
    missing(store, ImportAccounts { domain: DomainId(7), accounts, now: T });
    missing(store, Account { domain: DomainId(7), local: "alice".into() });
}

pub(super) fn are_imported_and_replaced(store: &dyn Store) {
    let domain = domain(store);
    let id = account(store, domain, "u3");
    let accounts = (0..10)
        .map(|n| ImportedAccount { local: format!("u{n}").into(), credentials: keys(n + 50) })
        .collect();
    let import = ImportAccounts { domain, accounts, now: T.plus(5) };
    done(store, import);
    let replaced = identity(store, domain, "u3");
    assert_eq!((replaced.account, replaced.credentials), (id, keys(53)));
    assert_eq!(described(store, domain, "u3").created, T);
    assert_eq!(described(store, domain, "u4").created, T.plus(5));
    let nothing = ImportAccounts { domain, accounts: Vec::new(), now: T };
    done(store, nothing);
}

pub(super) fn are_as_many_as_the_domain_may_have(store: &dyn Store) {
    let (domain, other) = (domain(store), domain_named(store, "other.example"));
    account(store, other, "elsewhere");
    let policy = Policy { accounts_max: 3, ..Policy::default() };
    ask(store, PutDomain { name: "example.org".into(), policy });
    account(store, domain, "alice");
    account(store, domain, "bob");
    let import = |locals: &[&str]| {
        let of = |local: &&str| ImportedAccount { local: (*local).into(), credentials: keys(5) };
        ask(store, ImportAccounts { domain, accounts: locals.iter().map(of).collect(), now: T })
    };
    // Those that are there, and names that come twice, take no more room.
    assert_eq!(import(&["alice", "carol", "dave"]), Err(ImportRefused::DomainFull));
    missing(store, Account { domain, local: "carol".into() });
    assert_eq!(import(&["alice", "carol", "carol"]), Ok(()));
    assert_eq!(ask(store, create_account(domain, "dave")), CreateAccountAnswer::DomainFull);
    assert_eq!(ask(store, create_account(domain, "alice")), CreateAccountAnswer::Exists);
    assert_eq!(import(&["alice"]), Ok(()), "nobody is new");
    let delete = DeleteAccount { domain, local: "bob".into(), now: T, held_until: T, rows_max: u32::MAX };
    answer!(ask(store, delete), Ok(_) => ());
    account(store, domain, "dave");
    let usage = ask(store, DomainUsage { domain });
    assert_eq!(usage, Some(Usage { accounts: 3, topics: 0, rooms: 0, keys: 0 }));
    // A bound below what is there takes nothing away.
    let policy = Policy { accounts_max: 1, ..Policy::default() };
    ask(store, PutDomain { name: "example.org".into(), policy });
    assert_eq!(ask(store, create_account(domain, "erin")), CreateAccountAnswer::DomainFull);
    assert_eq!(import(&["alice", "bob"]), Err(ImportRefused::DomainFull));
    assert_eq!(ask(store, DomainUsage { domain: DomainId(77) }), None);
}

pub(super) fn get_other_keys(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    for credentials in [keys(9), Credentials { sha1: None, ..keys(8) }, Credentials::default()] {
        let set = SetCredentials { domain, local: "alice".into(), credentials: credentials.clone() };
        done(store, set);
        assert_eq!(identity(store, domain, "alice").credentials, credentials);
    }
    missing(store, SetCredentials { domain, local: "bob".into(), credentials: keys(1) });
}

pub(super) fn have_tokens_taken_back(store: &dyn Store) {
    let (domain, phone) = (domain(store), AgentId(u64::MAX));
    account(store, domain, "alice");
    account(store, domain, "bob");
    let revoke = |local: &str, agent| RevokeTokens { domain, local: local.into(), agent };
    let mut wanted = Revocations::default();
    assert_eq!(identity(store, domain, "alice").revocations, wanted);
    for agent in [Some(phone), Some(phone), None, Some(AgentId(0))] {
        match agent {
            Some(agent) => wanted.revoke(agent),
            None => wanted.revoke_all(),
        }
        let now = answer!(ask(store, revoke("alice", agent)), Some(now) => now);
        assert_eq!((&now, &identity(store, domain, "alice").revocations), (&wanted, &wanted));
    }
    assert_eq!(identity(store, domain, "bob").revocations, Revocations::default());
    missing(store, revoke("carol", None));
}

pub(super) fn are_disabled_and_enabled(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    for state in [AccountState::Disabled(T.plus(3)), AccountState::Enabled] {
        done(store, SetAccountState { domain, local: "alice".into(), state });
        assert_eq!(identity(store, domain, "alice").state, state);
        assert_eq!(login(store, domain, "alice").state, state);
        assert_eq!(described(store, domain, "alice").state, state);
    }
    missing(store, SetAccountState { domain, local: "bob".into(), state: AccountState::Enabled });
}

pub(super) fn are_described(store: &dyn Store) {
    let domain = domain(store);
    let number = account(store, domain, "alice");
    for name in ["zebra", "ant"] {
        let topic = topic(store, domain, name);
        subscribe(store, topic, domain, "alice");
    }
    stored(store, notification(domain, "alice", 1));
    stored(store, notification(domain, "alice", 2));
    let expected = Enrolment {
        id: number,
        jid: jid("alice@example.org"),
        state: AccountState::Enabled,
        created: T,
        topics: vec!["ant".into(), "zebra".into()],
        pending: 2,
    };
    assert_eq!(described(store, domain, "alice"), expected);
    end(store, vec![acknowledged(id(1))]);
    assert_eq!(described(store, domain, "alice").pending, 1);
    missing(store, Account { domain, local: "bob".into() });
}

pub(super) fn are_listed_in_pages(store: &dyn Store) {
    let (domain, other) = (domain(store), domain_named(store, "other.example"));
    account(store, other, "elsewhere");
    for local in ["u2", "u10", "u1", "u-", "v"] {
        account(store, domain, local);
    }
    let page = |after: Option<&str>, limit| {
        let question = Accounts { domain, after: after.map(Box::from), limit };
        let found = ask(store, question);
        found.iter().map(|e| e.jid.local().expect("an account").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(page(None, 100), ["u-", "u1", "u10", "u2", "v"]);
    assert_eq!(page(None, 2), ["u-", "u1"]);
    assert_eq!(page(Some("u1"), 2), ["u10", "u2"]);
    assert_eq!(page(Some("u1x"), 2), ["u2", "v"], "also after one that is not there");
    assert!(page(Some("v"), 2).is_empty());
}

pub(super) fn that_are_deleted_take_all_along(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let news = topic(store, domain, "news");
    subscribe(store, news, domain, "alice");
    let changes = vec![(jid("alice@example.org"), Affiliation::Publisher)];
    done(store, SetAffiliations { topic: news, changes });
    stored(store, notification(domain, "alice", 1));
    let collapse_key = Some("score".into());
    let later = Notification { send_at: Some(T.plus(5)), collapse_key, ..notification(domain, "alice", 2) };
    stored(store, later);
    stored(store, notification(domain, "alice", 3));
    end(store, vec![acknowledged(id(3))]);
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

    done(
        store,
        DeleteAccount { domain, local: "alice".into(), now: T.plus(9), held_until: T, rows_max: u32::MAX },
    );

    missing(store, identity_ask(domain, "alice"));
    missing(
        store,
        DeleteAccount { domain, local: "alice".into(), now: T, held_until: T, rows_max: u32::MAX },
    );
    for n in [1, 2] {
        let trace = trace(store, id(n));
        assert_eq!(
            (trace.state, trace.reason),
            (NotificationState::Dropped, Some(DropReason::DeviceDeleted))
        );
        assert_eq!((trace.ended, trace.to), (Some(T.plus(9)), jid("alice@example.org")));
        assert_eq!(trace.collapse_key, None, "what its sender called it goes with the account");
    }
    assert_eq!(state(store, id(3)), NotificationState::Acknowledged);
    let due = ask(store, ClaimDue { now: T.plus(50), until: T.plus(60), page: page(9) });
    assert!(due.entries.is_empty());
    let followers = Subscribers { topic: news, after: None, limit: 9 };
    assert!(ask(store, followers).is_empty());

    account(store, domain, "alice");
    let again = login(store, domain, "alice");
    assert!(again.subscriptions.is_empty());
    assert_eq!(again.waiting, LoginBacklog::default());
    let record = Topic { domain, name: "news".into() };
    answer!(ask(store, record), Some(topic) => assert!(topic.affiliations.is_empty()));
}

pub(super) fn that_are_deleted_leave_bans(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "mallory");
    let news = topic(store, domain, "news");
    let changes = vec![(jid("mallory@example.org"), Affiliation::Outcast)];
    done(store, SetAffiliations { topic: news, changes: changes.clone() });
    done(store, DeleteAccount { domain, local: "mallory".into(), now: T, held_until: T, rows_max: u32::MAX });
    let record = Topic { domain, name: "news".into() };
    answer!(ask(store, record), Some(topic) => assert_eq!(topic.affiliations, changes));
}

pub(super) fn of_the_same_name_in_two_domains(store: &dyn Store) {
    let (domain, other) = (domain(store), domain_named(store, "other.example"));
    let (here, there) = (account(store, domain, "alice"), account(store, other, "alice"));
    assert_ne!(here, there);
    done(store, DeleteAccount { domain, local: "alice".into(), now: T, held_until: T, rows_max: u32::MAX });
    assert_eq!(identity(store, other, "alice").account, there);
}

pub(super) fn are_never_numbered_twice(store: &dyn Store) {
    let domain = domain(store);
    let first = account(store, domain, "alice");
    done(store, DeleteAccount { domain, local: "alice".into(), now: T, held_until: T, rows_max: u32::MAX });
    assert_ne!(account(store, domain, "alice"), first);
    let topic_number = topic(store, domain, "news");
    done(store, DeleteTopic { topic: topic_number, rows_max: TOPIC_PART_ROWS });
    assert_ne!(topic(store, domain, "news"), topic_number);
}
