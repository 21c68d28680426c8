//! Administrative acts.

use super::Noun;
use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::store::acts::*;
use carillon_core::ports::{Ask, Store};

pub(super) const NOUN: Noun = Noun {
    writes: |_| vec![Ask::from(note(1, 0))],
    state: |store, _| format!("{:?}", list(store, None, None)),
    write_lasting: |store, _| ask(store, note(1, 0)),
    check_lasting: |store, _| assert_eq!(numbers(&list(store, None, None)), [0]),
};

/// An act by the key of this number, so many milliseconds after [`T`].
fn note(key: u32, ms: u64) -> NoteAct {
    let act = Act {
        at: T.plus(ms),
        key: KeyId(key),
        key_name: format!("key {key}").into(),
        domain: (key > 1).then_some(DomainId(key)),
        address: (key > 1).then(|| "192.0.2.1".into()),
        what: "DELETE /v1/admin/domains/example.org".into(),
        reason: (key == 1).then(|| "they left".into()),
        outcome: "409 in-progress".into(),
        request: "0123".into(),
    };
    NoteAct { act, keep_since: T }
}

fn list(store: &dyn Store, domain: Option<u32>, key: Option<u32>) -> Vec<(ActId, Act)> {
    let (domain, key) = (domain.map(DomainId), key.map(KeyId));
    ask(store, ListActs { domain, key, before: ActId(u64::MAX), limit: 100 })
}

/// The milliseconds after [`T`] of acts.
fn numbers(acts: &[(ActId, Act)]) -> Vec<u64> {
    acts.iter().map(|(_, act)| act.at.0 - T.0).collect()
}

pub(super) fn are_listed_newest_first(store: &dyn Store) {
    for (key, ms) in [(1, 0), (2, 1), (3, 2), (2, 3)] {
        ask(store, note(key, ms));
    }
    let all = list(store, None, None);
    assert_eq!(numbers(&all), [3, 2, 1, 0]);
    let acts: Vec<_> = all.iter().map(|(_, act)| act.clone()).collect();
    assert_eq!(acts, [note(2, 3).act, note(3, 2).act, note(2, 1).act, note(1, 0).act]);
    assert_eq!(numbers(&list(store, Some(2), None)), [3, 1]);
    assert_eq!(numbers(&list(store, None, Some(3))), [2]);
    assert_eq!(numbers(&list(store, Some(2), Some(2))), [3, 1]);
    assert!(list(store, Some(2), Some(3)).is_empty(), "of another domain");
    let mut before = ActId(u64::MAX);
    let mut paged = Vec::new();
    loop {
        let page = ask(store, ListActs { domain: None, key: None, before, limit: 3 });
        let Some((last, _)) = page.last() else { break };
        before = *last;
        paged.extend(page);
    }
    assert_eq!(paged, all);
}

pub(super) fn are_forgotten_in_their_time(store: &dyn Store) {
    (0..5).for_each(|ms| ask(store, note(1, ms)));
    let later = |since: u64| NoteAct { keep_since: T.plus(since), ..note(1, 100) };
    ask(store, later(1));
    assert_eq!(numbers(&list(store, None, None)), [100, 4, 3, 2, 1]);
    ask(store, later(4));
    assert_eq!(numbers(&list(store, None, None)), [100, 100, 4, 3], "no more than so many at once");
    ask(store, later(4));
    assert_eq!(numbers(&list(store, None, None)), [100, 100, 100, 4]);
}
