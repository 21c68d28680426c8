//! Lists of notifications: whose they are, in which bounds, and by pages.

use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::Store;

/// All of the node's, in one page.
fn all() -> NotificationQuery {
    NotificationQuery {
        whose: Whose::Anyones,
        states: States::ALL,
        key: None,
        from: NotificationId(0),
        before: NotificationId(u128::MAX),
        limit: 1000,
    }
}

/// A page, and where the next begins.
fn page(store: &dyn Store, query: NotificationQuery) -> (Vec<Trace>, Option<NotificationId>) {
    let answer = ask(store, query);
    (answer.traces, answer.next)
}

/// The ids of all pages, and how many pages there were.
fn pages(store: &dyn Store, mut query: NotificationQuery) -> (Vec<NotificationId>, usize) {
    let mut ids = Vec::new();
    for count in 1.. {
        let (traces, next) = page(store, query.clone());
        assert!(traces.len() <= usize::from(query.limit));
        ids.extend(traces.iter().map(|trace| trace.id));
        match next {
            Some(next) => {
                assert!(next < query.before, "a page that does not go on");
                query.before = next;
            }
            None => return (ids, count),
        }
    }
    unreachable!("pages end, or are counted for ever")
}

fn ids(store: &dyn Store, query: NotificationQuery) -> Vec<NotificationId> {
    pages(store, query).0
}

/// Notifications 0 to 5 for alice and, every third, for bob. 1 and 3 have ended.
fn some(store: &dyn Store) -> DomainId {
    let domain = domain(store);
    account(store, domain, "alice");
    account(store, domain, "bob");
    for n in 0..6 {
        let local = if n % 3 == 0 { "bob" } else { "alice" };
        let key = (n % 2 == 0).then_some(KeyId(7));
        stored(store, Notification { key, ..notification(domain, local, n) });
    }
    end(store, vec![acknowledged(id(1)), acknowledged(id(3))]);
    domain
}

pub(super) fn is_newest_first(store: &dyn Store) {
    assert_eq!(page(store, all()), (Vec::new(), None));
    some(store);
    assert_eq!(ids(store, all()), [5, 4, 3, 2, 1, 0].map(id), "those that wait and those that ended");
}

pub(super) fn says_what_a_trace_says(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let whole = |n| Notification {
        priority: Priority::High,
        expires: Some(T.plus(9000)),
        collapse_key: Some(format!("k{n}").into()),
        key: Some(KeyId(u32::MAX)),
        send_at: (n == 3).then(|| T.plus(99)),
        ..notification(domain, "alice", n)
    };
    let sent = [1, 2, 3].map(whole);
    sent.iter().for_each(|notification| assert!(stored(store, notification.clone()).is_empty()));
    end(store, vec![acknowledged(id(1))]);
    let (found, _) = page(store, all());
    assert_eq!(found, [3, 2, 1].map(|n| trace(store, id(n))));
    for (trace, notification) in found.iter().rev().zip(&sent) {
        assert_eq!((trace.expires, trace.key), (notification.expires, notification.key));
        assert_eq!(trace.collapse_key, notification.collapse_key);
    }
    let states = [NotificationState::Scheduled, NotificationState::Stored, NotificationState::Acknowledged];
    assert_eq!(found.iter().map(|t| t.state).collect::<Vec<_>>(), states);
}

pub(super) fn is_of_an_account(store: &dyn Store) {
    let here = some(store);
    let there = domain_named(store, "other.example");
    account(store, there, "alice");
    stored(store, Notification { to: jid("alice@other.example"), ..notification(there, "alice", 8) });
    let of = |domain, local: &str| NotificationQuery { whose: Whose::Account(domain, local.into()), ..all() };
    assert_eq!(ids(store, of(here, "alice")), [5, 4, 2, 1].map(id));
    assert_eq!(ids(store, of(here, "bob")), [3, 0].map(id));
    assert_eq!(ids(store, of(there, "alice")), [id(8)]);
    assert!(ids(store, of(here, "nobody")).is_empty());
    done(
        store,
        DeleteAccount {
            domain: here,
            local: "alice".into(),
            now: T.plus(5),
            held_until: T,
            rows_max: u32::MAX,
        },
    );
    assert_eq!(
        ids(store, of(here, "alice")),
        [5, 4, 2, 1].map(id),
        "what became of them outlives the account"
    );
}

pub(super) fn is_of_a_domain(store: &dyn Store) {
    let here = some(store);
    let there = domain_named(store, "other.example");
    account(store, there, "carol");
    for n in [7, 9] {
        stored(store, Notification { to: jid("carol@other.example"), ..notification(there, "carol", n) });
    }
    end(store, vec![acknowledged(id(7))]);
    let of = |domain| NotificationQuery { whose: Whose::Domain(domain), ..all() };
    assert_eq!(ids(store, of(there)), [9, 7].map(id));
    assert_eq!(ids(store, of(here)), [5, 4, 3, 2, 1, 0].map(id));
    done(store, delete_domain(there));
    assert!(ids(store, of(there)).is_empty());
    assert_eq!(ids(store, all()).len(), 6, "nor among all when its domain is gone");
}

pub(super) fn is_of_states(store: &dyn Store) {
    use NotificationState::{Acknowledged, Dropped, Scheduled, Sent, Stored};
    let domain = some(store);
    let sent = NotificationChange { state: Sent, acknowledged_by: None, ..acknowledged(id(2)) };
    end(store, vec![sent]);
    let later = Notification { send_at: Some(T.plus(50)), ..notification(domain, "bob", 6) };
    stored(store, later);
    let of = |states: &[NotificationState]| {
        let states = states.iter().fold(States::NONE, |all, state| all.with(States::from(*state)));
        ids(store, NotificationQuery { states, ..all() })
    };
    assert_eq!(of(&[Stored]), [5, 4, 0].map(id));
    assert_eq!(of(&[Sent]), [id(2)]);
    assert_eq!(of(&[Scheduled]), [id(6)]);
    assert_eq!(of(&[Acknowledged]), [3, 1].map(id));
    assert_eq!(of(&[Acknowledged, Sent, Dropped]), [3, 2, 1].map(id));
    assert!(of(&[Dropped]).is_empty() && of(&[]).is_empty());
}

pub(super) fn is_of_a_sender(store: &dyn Store) {
    let domain = some(store);
    let of = |key| NotificationQuery { key: Some(KeyId(key)), ..all() };
    assert_eq!(ids(store, of(7)), [4, 2, 0].map(id));
    assert!(ids(store, of(8)).is_empty());
    let whose = Whose::Account(domain, "alice".into());
    assert_eq!(ids(store, NotificationQuery { whose, ..of(7) }), [4, 2].map(id));
}

pub(super) fn is_of_a_time(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    for n in 0..6 {
        let id = NotificationId::new(T.plus(n), 3, 0);
        stored(store, Notification { id, ..notification(domain, "alice", n) });
        if n % 2 == 0 {
            end(store, vec![acknowledged(id)]);
        }
    }
    let whose = [Whose::Anyones, Whose::Domain(domain), Whose::Account(domain, "alice".into())];
    for whose in whose {
        let (from, before) = (NotificationId::first_at(T.plus(2)), NotificationId::first_at(T.plus(5)));
        let query = NotificationQuery { whose, from, before, ..all() };
        let found: Vec<u64> = ids(store, query).iter().map(|id| id.time().0 - T.0).collect();
        assert_eq!(found, [4, 3, 2]);
    }
}

pub(super) fn comes_in_pages(store: &dyn Store) {
    some(store);
    for limit in 1..=7 {
        let (ids, count) = pages(store, NotificationQuery { limit, ..all() });
        assert_eq!(ids, [5, 4, 3, 2, 1, 0].map(id), "in pages of {limit}");
        assert_eq!(count, 6_usize.div_ceil(usize::from(limit)), "no page that is empty");
    }
}

/// What is asked for is rare: a store may look through a part only, and then says where to go on.
pub(super) fn finds_what_is_rare(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    for numbers in (0..12_000).collect::<Vec<u64>>().chunks(1000) {
        let waiting: Vec<_> = numbers
            .iter()
            .map(|n| Notification {
                key: (n % 5000 == 10).then_some(KeyId(7)),
                ..notification(domain, "alice", *n)
            })
            .map(|notification| StoreNotification {
                notification: notification.into(),
                queue_max: 20_000,
                now: T,
                wake: None,
            })
            .map(|question| asked(store, question))
            .collect();
        for receiver in &waiting {
            answer!(waited(receiver), StoreNotificationAnswer::Stored { .. } => ());
        }
        end(store, numbers.iter().filter(|n| *n % 2 == 0).map(|n| acknowledged(id(*n))).collect());
    }
    let rare = NotificationQuery { key: Some(KeyId(7)), limit: 2, ..all() };
    assert_eq!(ids(store, rare), [10_010, 5010, 10].map(id));
}

/// They end in another order than they came, some not at all, and there are too many to be looked for one by one.
pub(super) fn is_whole_when_they_end_in_any_order(store: &dyn Store) {
    const COUNT: u64 = 12_000;
    let domain = domain(store);
    let locals = ["alice", "bob", "carol"];
    for local in locals {
        account(store, domain, local);
    }
    let id = |n: u64| NotificationId::new(T.plus(n / 20), 3, n);
    let local_of = |n: u64| locals[(n * n % 7 % 3) as usize];
    for numbers in (0..COUNT).collect::<Vec<u64>>().chunks(1000) {
        let waiting: Vec<_> = numbers
            .iter()
            .map(|n| Notification { id: id(*n), ..notification(domain, local_of(*n), *n) })
            .map(|notification| StoreNotification {
                notification: notification.into(),
                queue_max: 20_000,
                now: T,
                wake: None,
            })
            .map(|question| asked(store, question))
            .collect();
        for receiver in &waiting {
            answer!(waited(receiver), StoreNotificationAnswer::Stored { .. } => ());
        }
        // Of these nine in ten, a thousand later than they came.
        let first = numbers[0].saturating_sub(1000);
        let late = (0..1000).map(|n| first + n * 619 % 1000).filter(|n| n % 10 != 7);
        end(store, late.map(|n| acknowledged(id(n))).collect());
    }
    for local in locals {
        for (from, before, limit) in [(0, COUNT, 1000), (0, COUNT, 97), (3000, 9500, 10)] {
            let whose = Whose::Account(domain, local.into());
            let query = NotificationQuery { whose, from: id(from), before: id(before), limit, ..all() };
            let expected: Vec<_> = (from..before).rev().filter(|n| local_of(*n) == local).map(id).collect();
            assert_eq!(ids(store, query), expected, "of {local}, in pages of {limit}");
        }
    }
}
