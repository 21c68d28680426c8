//! Files that clients upload, the slots for them, and what is to be removed of them.

use super::Noun;
use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::store::uploads::{Upload as FindUpload, *};
use carillon_core::ports::{Ask, Store};

pub(super) const NOUN: Noun = Noun {
    writes: |domain| {
        // The later ones are about a slot that is not there, and say so.
        let id = UploadId(77);
        vec![
            Ask::from(slot(domain, "alice", 7, 10)),
            Ask::from(start(domain, 77, 1, 1)),
            Ask::from(finish(domain, 77, 1, 2)),
            Ask::from(DeleteUpload { domain, id }),
            Ask::from(ExpireUploads { now: T, max: 10 }),
            Ask::from(ForgetUploads { removed: vec![(id, UploadAttempt(1))] }),
        ]
    },
    state: |store, domain| format!("{:?} {:?}", find(store, domain, 7), removable(store, u64::MAX - T.0)),
    write_lasting: |store, domain| {
        made(store, domain, 1);
        uploaded(store, domain, 2);
        made(store, domain, 3);
        assert_eq!(ask(store, start(domain, 3, u64::MAX, 1)), StartUploadAnswer::Started);
    },
    check_lasting: |store, domain| {
        let attempts = [1, 2, 3].map(|id| find(store, domain, id).expect("it is there").attempt);
        assert_eq!(attempts, [None, Some(UploadAttempt(9)), None]);
        assert_eq!(removable(store, 1000), [(3, u64::MAX)]);
    },
};

/// So many of these are the bytes of a slot. Against one, what files cost beside their bytes does not count.
const UNIT: u64 = 1_000_000;

/// Within bounds of 100 units for an account and 150 for a domain, for 50 milliseconds.
fn slot(domain: DomainId, local: &str, id: u128, units: u64) -> CreateSlot {
    let room = 20 * FILE_COST;
    CreateSlot {
        domain,
        local: local.into(),
        id: UploadId(id),
        name: "été.png".into(),
        media_type: "image/png".into(),
        bytes: units.saturating_mul(UNIT),
        expires: T.plus(50),
        bounds: UploadBounds { account_bytes: 100 * UNIT + room, domain_bytes: 150 * UNIT + room },
    }
}

/// At so many milliseconds after [`T`]; it may take 100.
fn start(domain: DomainId, id: u128, attempt: u64, at: u64) -> StartUpload {
    let (id, attempt) = (UploadId(id), UploadAttempt(attempt));
    StartUpload { domain, id, attempt, now: T.plus(at), remove_at: T.plus(at + 100) }
}

/// At so many milliseconds after [`T`]; it is kept until 1000.
fn finish(domain: DomainId, id: u128, attempt: u64, at: u64) -> FinishUpload {
    let (id, attempt) = (UploadId(id), UploadAttempt(attempt));
    FinishUpload { domain, id, attempt, now: T.plus(at), expires: T.plus(1000) }
}

fn find(store: &dyn Store, domain: DomainId, id: u128) -> Option<UploadedFile> {
    ask(store, FindUpload { domain, id: UploadId(id) }).map(|file| *file)
}

/// What is to be removed so many milliseconds after [`T`].
fn removable(store: &dyn Store, at: u64) -> Vec<(u128, u64)> {
    let found = ask(store, RemovableUploads { until: T.plus(at), max: 100 });
    let mut found: Vec<_> = found.into_iter().map(|(id, attempt)| (id.0, attempt.0)).collect();
    found.sort_unstable();
    found
}

/// A slot of ten units.
fn made(store: &dyn Store, domain: DomainId, id: u128) {
    assert_eq!(ask(store, slot(domain, "alice", id, 10)), CreateSlotAnswer::Created);
}

/// A file of ten units, by attempt 9.
fn uploaded(store: &dyn Store, domain: DomainId, id: u128) {
    made(store, domain, id);
    assert_eq!(ask(store, start(domain, id, 9, 1)), StartUploadAnswer::Started);
    assert_eq!(ask(store, finish(domain, id, 9, 2)), FinishUploadAnswer::Finished);
}

fn ground(store: &dyn Store) -> DomainId {
    let domain = domain(store);
    account(store, domain, "alice");
    account(store, domain, "bob");
    domain
}

pub(super) fn are_slots_first(store: &dyn Store) {
    let domain = ground(store);
    assert_eq!(find(store, domain, 1), None);
    assert_eq!(ask(store, slot(domain, "nobody", 1, 10)), CreateSlotAnswer::NoAccount);
    made(store, domain, 1);
    let expected = UploadedFile {
        name: "été.png".into(),
        media_type: "image/png".into(),
        bytes: 10 * UNIT,
        expires: T.plus(50),
        attempt: None,
    };
    assert_eq!(find(store, domain, 1), Some(expected.clone()));
    assert_eq!(find(store, DomainId(domain.0 + 1), 1), None);
    uploaded(store, domain, 2);
    let file = UploadedFile { expires: T.plus(1000), attempt: Some(UploadAttempt(9)), ..expected };
    assert_eq!(find(store, domain, 2), Some(file));
    assert_eq!(removable(store, 1_000_000), []);
}

pub(super) fn are_listed_by_account(store: &dyn Store) {
    let domain = ground(store);
    let list = |local: &str, after: Option<(UnixMs, UploadId)>, max: u16| {
        ask(store, UploadsOf { domain, local: local.into(), after, max })
    };
    assert_eq!(list("alice", None, 9), []);
    made(store, domain, 3);
    uploaded(store, domain, 1);
    made(store, domain, 2);
    let all = list("alice", None, 9);
    let mut ids: Vec<_> = all.iter().map(|(id, _)| id.0).collect();
    assert!(all.is_sorted_by_key(|(id, file)| (file.expires, *id)), "{all:?}");
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3]);
    for (id, file) in &all {
        assert_eq!(Some(file), find(store, domain, id.0).as_ref());
    }
    let first = &list("alice", None, 1)[0];
    assert_eq!(list("alice", Some((first.1.expires, first.0)), 9), all[1..]);
    assert_eq!((list("bob", None, 9), list("nobody", None, 9)), (vec![], vec![]));
}

pub(super) fn are_uploaded_once(store: &dyn Store) {
    let domain = ground(store);
    made(store, domain, 1);
    assert_eq!(ask(store, finish(domain, 1, 5, 2)), FinishUploadAnswer::Missing, "it did not start");
    assert_eq!(ask(store, start(domain, 1, 5, 1)), StartUploadAnswer::Started);
    assert_eq!(ask(store, start(domain, 1, 6, 1)), StartUploadAnswer::Started);
    assert_eq!(ask(store, finish(domain, 1, 6, 2)), FinishUploadAnswer::Finished);
    assert_eq!(ask(store, finish(domain, 1, 6, 2)), FinishUploadAnswer::Finished, "asked again");
    assert_eq!(ask(store, finish(domain, 1, 5, 2)), FinishUploadAnswer::Taken);
    assert_eq!(ask(store, start(domain, 1, 7, 2)), StartUploadAnswer::Taken);
    assert_eq!(find(store, domain, 1).expect("a file").attempt, Some(UploadAttempt(6)));
    // Of the other attempt nothing is left, once its time has come.
    assert_eq!((removable(store, 100), removable(store, 101)), (vec![], vec![(1, 5)]));
    let removed = vec![(UploadId(1), UploadAttempt(5))];
    ask(store, ForgetUploads { removed });
    assert_eq!(removable(store, 1_000_000), []);
    // Who knows the id does not get at it from another domain.
    made(store, domain, 2);
    let elsewhere = DomainId(domain.0 + 1);
    assert_eq!(ask(store, start(elsewhere, 2, 1, 1)), StartUploadAnswer::Missing);
    assert_eq!(ask(store, start(domain, 2, 1, 1)), StartUploadAnswer::Started);
    assert_eq!(ask(store, finish(elsewhere, 2, 1, 1)), FinishUploadAnswer::Missing);
}

pub(super) fn that_take_too_long_do_not_count(store: &dyn Store) {
    let domain = ground(store);
    made(store, domain, 1);
    assert_eq!(ask(store, start(domain, 1, 5, 49)), StartUploadAnswer::Started);
    // The slot stays for whoever began in time.
    assert!(!ask(store, ExpireUploads { now: T.plus(148), max: 10 }));
    assert_eq!(ask(store, finish(domain, 1, 5, 149)), FinishUploadAnswer::Missing);
    assert_eq!(ask(store, start(domain, 1, 6, 149)), StartUploadAnswer::Missing, "the slot has expired");
    assert_eq!(removable(store, 149), [(1, 5)]);
    made(store, domain, 2);
    assert_eq!(ask(store, start(domain, 2, 5, 49)), StartUploadAnswer::Started);
    assert_eq!(ask(store, finish(domain, 2, 5, 148)), FinishUploadAnswer::Finished);
    // What has expired is gone, and what is written into it then counts for nothing.
    made(store, domain, 3);
    assert_eq!(ask(store, start(domain, 3, 5, 49)), StartUploadAnswer::Started);
    assert!(!ask(store, ExpireUploads { now: T.plus(149), max: 10 }));
    assert_eq!(ask(store, finish(domain, 3, 5, 140)), FinishUploadAnswer::Missing);
    assert_eq!(removable(store, 1000), [(1, 5), (3, 5)]);
}

pub(super) fn cost_something_however_small_they_are(store: &dyn Store) {
    let domain = ground(store);
    let small = |id| CreateSlot { bytes: 1, ..slot(domain, "alice", id, 0) };
    let bounds = UploadBounds { account_bytes: 2 * (FILE_COST + 1), domain_bytes: u64::MAX };
    let answers = [1, 2, 3].map(|id| ask(store, CreateSlot { bounds, ..small(id) }));
    let full = CreateSlotAnswer::Full(Some(T.plus(50)));
    assert_eq!(answers, [CreateSlotAnswer::Created, CreateSlotAnswer::Created, full]);
}

pub(super) fn are_bounded_for_account_and_domain(store: &dyn Store) {
    let domain = ground(store);
    assert_eq!(ask(store, slot(domain, "alice", 1, 101)), CreateSlotAnswer::Full(None));
    assert_eq!(ask(store, slot(domain, "alice", 1, u64::MAX)), CreateSlotAnswer::Full(None));
    assert_eq!(ask(store, slot(domain, "alice", 1, 60)), CreateSlotAnswer::Created);
    assert_eq!(ask(store, slot(domain, "alice", 1, 60)), CreateSlotAnswer::Created, "asked again");
    assert_eq!(ask(store, slot(domain, "alice", 2, 41)), CreateSlotAnswer::Full(Some(T.plus(50))));
    assert_eq!(ask(store, slot(domain, "alice", 2, 40)), CreateSlotAnswer::Created);
    assert_eq!(ask(store, slot(domain, "bob", 3, 51)), CreateSlotAnswer::Full(None));
    assert_eq!(ask(store, slot(domain, "bob", 3, 50)), CreateSlotAnswer::Created);
    // What is gone gives its room back.
    ask(store, DeleteUpload { domain, id: UploadId(1) });
    assert_eq!(ask(store, slot(domain, "alice", 4, 60)), CreateSlotAnswer::Created);
    assert!(!ask(store, ExpireUploads { now: T.plus(50), max: 10 }));
    assert_eq!(ask(store, slot(domain, "bob", 5, 100)), CreateSlotAnswer::Created);
    assert_eq!(ask(store, slot(domain, "alice", 6, 50)), CreateSlotAnswer::Created);
}

pub(super) fn expire(store: &dyn Store) {
    let domain = ground(store);
    uploaded(store, domain, 1);
    made(store, domain, 2);
    made(store, domain, 3);
    assert!(!ask(store, ExpireUploads { now: T.plus(49), max: 10 }));
    assert!([1, 2, 3].iter().all(|id| find(store, domain, *id).is_some()));
    assert!(ask(store, ExpireUploads { now: T.plus(50), max: 1 }), "there is another one");
    assert!(!ask(store, ExpireUploads { now: T.plus(50), max: 1 }));
    assert_eq!((find(store, domain, 2), find(store, domain, 3), removable(store, 0)), (None, None, vec![]));
    assert!(!ask(store, ExpireUploads { now: T.plus(999), max: 10 }));
    assert!(find(store, domain, 1).is_some());
    assert!(!ask(store, ExpireUploads { now: T.plus(1000), max: 10 }));
    assert_eq!((find(store, domain, 1), removable(store, 0)), (None, vec![(1, 9)]));
}

pub(super) fn are_deleted(store: &dyn Store) {
    let domain = ground(store);
    uploaded(store, domain, 1);
    ask(store, DeleteUpload { domain: DomainId(domain.0 + 1), id: UploadId(1) });
    assert!(find(store, domain, 1).is_some());
    ask(store, DeleteUpload { domain, id: UploadId(1) });
    assert_eq!((find(store, domain, 1), removable(store, 0)), (None, vec![(1, 9)]));
}

pub(super) fn go_with_their_account(store: &dyn Store) {
    let domain = ground(store);
    uploaded(store, domain, 1);
    made(store, domain, 2);
    assert_eq!(ask(store, start(domain, 2, 4, 1)), StartUploadAnswer::Started);
    assert_eq!(ask(store, slot(domain, "bob", 3, 10)), CreateSlotAnswer::Created);
    done(store, DeleteAccount { domain, local: "alice".into(), now: T, held_until: T, rows_max: u32::MAX });
    let found = [1, 2, 3].map(|id| find(store, domain, id).is_some());
    assert_eq!((found, removable(store, 0)), ([false, false, true], vec![(1, 9)]));
    assert_eq!(ask(store, finish(domain, 2, 4, 2)), FinishUploadAnswer::Missing);
    // The next of that name has none of it, and the room that it took is there again.
    account(store, domain, "alice");
    assert_eq!(ask(store, slot(domain, "alice", 4, 100)), CreateSlotAnswer::Created);
    assert_eq!(ask(store, slot(domain, "bob", 5, 40)), CreateSlotAnswer::Created);
}

pub(super) fn go_with_their_domain(store: &dyn Store) {
    let domain = ground(store);
    uploaded(store, domain, 1);
    while answer!(ask(store, delete_domain(domain)), Ok(part) => part.more) {}
    assert_eq!((find(store, domain, 1), removable(store, 0)), (None, vec![(1, 9)]));
}
