//! Events: how notifications ended, told to others.

use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::Store;

/// All events after a number: each with its number, its notification and its state.
fn events(store: &dyn Store, after: u64) -> Vec<(u64, NotificationId, NotificationState)> {
    let (mut found, mut after) = (Vec::new(), after);
    loop {
        let answer = ask(store, Events { after, domain: None, wanted: EventFilter::ALL, max: 7 });
        let told = answer.events.iter().filter_map(|(number, event)| Some((*number, event.trace()?)));
        found.extend(told.map(|(number, trace)| (number, trace.id, trace.state)));
        if answer.examined == after {
            return found;
        }
        after = answer.examined;
    }
}

fn numbers(store: &dyn Store, asked: Events) -> Vec<NotificationId> {
    ask(store, asked).events.iter().filter_map(|(_, event)| event.trace()).map(|trace| trace.id).collect()
}

fn ended(store: &dyn Store, ids: impl IntoIterator<Item = u64>) {
    assert!(end(store, ids.into_iter().map(|n| acknowledged(id(n))).collect()).is_empty());
}

pub(super) fn tell_how_notifications_ended(store: &dyn Store) {
    use NotificationState::{Acknowledged, Cancelled, Dropped, Expired, Replaced};
    let domain = domain(store);
    account(store, domain, "alice");
    let with_key = |n| Notification { collapse_key: Some("k".into()), ..notification(domain, "alice", n) };
    stored(store, with_key(1));
    stored(store, with_key(2));
    stored(store, Notification { expires: Some(T.plus(20)), ..notification(domain, "alice", 3) });
    stored(store, notification(domain, "alice", 4));
    stored(store, notification(domain, "alice", 5));
    done(store, CancelNotification { id: id(4), now: T });
    ended(store, [2]);
    // What has ended ends no second time.
    ended(store, [2]);
    ask(store, Sweep { now: T.plus(20), forget: UnixMs(0), max: 9 });
    done(
        store,
        DeleteAccount { domain, local: "alice".into(), now: T.plus(30), held_until: T, rows_max: u32::MAX },
    );
    let told = events(store, 0);
    let order: Vec<_> = told.iter().map(|(_, id, state)| (*id, *state)).collect();
    assert_eq!(
        order,
        [(id(1), Replaced), (id(4), Cancelled), (id(2), Acknowledged), (id(3), Expired), (id(5), Dropped)]
    );
    assert!(told.is_sorted_by_key(|(number, ..)| *number) && told[0].0 > 0);
    let answer = ask(store, Events { after: 0, domain: None, wanted: EventFilter::ALL, max: 99 });
    assert_eq!((answer.examined, answer.newest, answer.oldest), (told[4].0, told[4].0, told[0].0));
    let traces: Vec<_> = answer.events.iter().filter_map(|(_, event)| event.trace().cloned()).collect();
    assert_eq!(traces, [1, 4, 2, 3, 5].map(|n| trace(store, id(n))));
}

pub(super) fn are_of_a_domain_and_of_states(store: &dyn Store) {
    let here = domain(store);
    let there = ask(store, PutDomain { name: "there.example".into(), policy: Policy::default() }).domain.id;
    account(store, here, "alice");
    account(store, there, "bob");
    for n in [1, 2] {
        stored(store, notification(here, "alice", n));
    }
    let bob = Notification { to: jid("bob@there.example"), domain: there, ..notification(here, "bob", 3) };
    stored(store, bob);
    ended(store, [1, 3]);
    done(store, CancelNotification { id: id(2), now: T });
    let all = Events { after: 0, domain: None, wanted: EventFilter::ALL, max: 9 };
    assert_eq!(numbers(store, all.clone()), [1, 3, 2].map(id));
    assert_eq!(numbers(store, Events { domain: Some(here), ..all.clone() }), [1, 2].map(id));
    let cancelled = Events { wanted: States::from(NotificationState::Cancelled).into(), ..all.clone() };
    let answer = ask(store, cancelled);
    assert_eq!(answer.events.len(), 1);
    assert_eq!(answer.examined, answer.newest, "what is not wanted was examined, too");
    done(store, delete_domain(there));
    assert_eq!(numbers(store, all), [1, 2].map(id), "those of a domain that is gone are nobody's");
}

pub(super) fn come_in_pages(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    for n in 0..50 {
        stored(store, notification(domain, "alice", n));
    }
    ended(store, (0..50).rev());
    let told: Vec<_> = events(store, 0).iter().map(|(_, id, _)| *id).collect();
    assert_eq!(told, (0..50).rev().map(id).collect::<Vec<_>>(), "in the order in which they ended");
    let middle = events(store, 0)[24].0;
    assert_eq!(events(store, middle).len(), 25);
}

pub(super) fn are_forgotten(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    for n in [1, 2] {
        stored(store, notification(domain, "alice", n));
    }
    ended(store, [1]);
    let newest = events(store, 0)[0].0;
    ask(store, Sweep { now: T.plus(2000), forget: T.plus(1001), max: 9 });
    assert!(events(store, 0).is_empty(), "with its trace");
    let none = ask(store, Events { after: 0, domain: None, wanted: EventFilter::ALL, max: 9 });
    assert_eq!((none.oldest, none.newest), (0, newest));
    ended(store, [2]);
    assert!(events(store, 0)[0].0 > newest, "no number is given twice");
}

/// Whoever reads while others write misses nothing.
pub(super) fn are_numbered_in_the_order_of_commits(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    for n in 0..400 {
        stored(store, notification(domain, "alice", n));
    }
    let read = std::thread::scope(|scope| {
        for writer in 0..4 {
            scope.spawn(move || (0..100).for_each(|n| ended(store, [writer * 100 + n])));
        }
        let (mut read, mut after) = (Vec::new(), 0);
        while read.len() < 400 {
            let answer = ask(store, Events { after, domain: None, wanted: EventFilter::ALL, max: 99 });
            read.extend(answer.events.iter().filter_map(|(_, event)| event.trace()).map(|trace| trace.id));
            after = answer.examined;
        }
        read
    });
    let mut ids = read.clone();
    ids.sort_unstable();
    assert_eq!(ids, (0..400).map(id).collect::<Vec<_>>());
}

pub(super) fn write_lasting(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    for n in [1, 2] {
        stored(store, notification(domain, "alice", n));
    }
    ended(store, [1]);
}

pub(super) fn check_lasting(store: &dyn Store) {
    let before = events(store, 0);
    assert_eq!(before.iter().map(|(_, id, _)| *id).collect::<Vec<_>>(), [id(1)]);
    ended(store, [2]);
    let after = events(store, before[0].0);
    assert_eq!(after.iter().map(|(_, id, _)| *id).collect::<Vec<_>>(), [id(2)]);
}
