//! When accounts were available for the last time.

use super::Noun;
use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::store::activity::*;
use carillon_core::ports::{Ask, Store};

pub(super) const NOUN: Noun = Noun {
    writes: |domain| vec![Ask::from(note(domain, &[("alice", 5)]))],
    state: |store, domain| format!("{:?}", last(store, domain, "alice")),
    write_lasting: |store, domain| ask(store, note(domain, &[("alice", 7)])),
    check_lasting: |store, domain| assert_eq!(last(store, domain, "alice"), Some(7)),
};

/// Accounts, each with the milliseconds after [`T`].
fn note(domain: DomainId, of: &[(&str, u64)]) -> NoteAvailable {
    let of = of.iter().map(|(local, ms)| Available { domain, local: (*local).into(), at: T.plus(*ms) });
    NoteAvailable { of: of.collect() }
}

/// In milliseconds after [`T`].
fn last(store: &dyn Store, domain: DomainId, local: &str) -> Option<u64> {
    ask(store, LastAvailable { domain, local: local.into() }).map(|at| at.0 - T.0)
}

pub(super) fn is_the_latest_that_was_noted(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    account(store, domain, "bob");
    assert_eq!(last(store, domain, "alice"), None);
    ask(store, note(domain, &[("alice", 5), ("nobody", 6), ("bob", 7)]));
    let found = ["alice", "nobody", "bob"].map(|local| last(store, domain, local));
    assert_eq!(found, [Some(5), None, Some(7)]);
    ask(store, note(domain, &[("bob", 3), ("alice", 9)]));
    assert_eq!([last(store, domain, "alice"), last(store, domain, "bob")], [Some(9), Some(7)]);
    ask(store, note(domain, &[]));
}

pub(super) fn goes_with_its_account(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    ask(store, note(domain, &[("alice", 5)]));
    done(store, DeleteAccount { domain, local: "alice".into(), now: T, held_until: T, rows_max: u32::MAX });
    account(store, domain, "alice");
    assert_eq!(last(store, domain, "alice"), None);
}
