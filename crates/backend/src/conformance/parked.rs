//! Sessions between two processes.

use super::ground::*;
use carillon_core::ports::Store;

pub(super) fn group(number: u32, bytes: usize) -> ParkedGroup {
    ParkedGroup {
        number,
        shard: number as u16 % 3,
        shards: 3,
        sessions: number % 7 + 1,
        written: T.plus(u64::from(number)),
        bytes: vec![number as u8; bytes].into(),
    }
}

pub(super) fn keep(group: &ParkedGroup) -> StoreParked {
    StoreParked { group: group.clone(), bytes_max: 1000 }
}

fn keep_all(store: &dyn Store, groups: &[ParkedGroup]) {
    for group in groups {
        assert_eq!(ask(store, keep(group)), StoreParkedAnswer::Stored);
    }
}

pub(super) fn kept(store: &dyn Store) -> Vec<ParkedGroup> {
    let (groups, more) = both(ask(store, ParkedGroups { after: None, page: page(99) }));
    assert!(!more);
    groups
}

pub(super) fn groups_are_kept_by_their_numbers(store: &dyn Store) {
    assert!(kept(store).is_empty());
    let [first, second] = [group(0, 10), group(u32::MAX, 20)];
    keep_all(store, &[second.clone(), first.clone()]);
    assert_eq!(kept(store), [first.clone(), second]);
    let other = group(u32::MAX, 5);
    keep_all(store, std::slice::from_ref(&other));
    assert_eq!(kept(store), [first, other]);
}

pub(super) fn groups_come_in_pages(store: &dyn Store) {
    let groups: Vec<_> = (0..4).map(|number| group(number, 100)).collect();
    keep_all(store, &groups);
    let part =
        |after, entries, bytes| both(ask(store, ParkedGroups { after, page: Page { entries, bytes } }));
    assert_eq!(part(None, 9, 250), (groups[..2].to_vec(), true));
    assert_eq!(part(Some(1), 1, 250), (groups[2..3].to_vec(), true));
    // One comes, whatever its size.
    assert_eq!(part(Some(2), 9, 10), (groups[3..].to_vec(), false));
    assert_eq!(part(Some(3), 9, 10), (Vec::new(), false));
}

pub(super) fn groups_are_bounded_by_bytes(store: &dyn Store) {
    keep_all(store, &[group(0, 400), group(1, 600)]);
    let too_much = group(2, 1);
    assert_eq!(ask(store, keep(&too_much)), StoreParkedAnswer::Full);
    // The one that is replaced does not count.
    assert_eq!(ask(store, keep(&group(1, 601))), StoreParkedAnswer::Full);
    assert_eq!(kept(store), [group(0, 400), group(1, 600)]);
    keep_all(store, &[group(1, 599), too_much]);
}

pub(super) fn groups_are_forgotten(store: &dyn Store) {
    keep_all(store, &[group(0, 10), group(1, 10)]);
    done(store, ForgetParked);
    assert!(kept(store).is_empty());
    done(store, ForgetParked);
    keep_all(store, &[group(1, 1000)]);
}

pub(super) fn write_lasting(store: &dyn Store) {
    keep_all(store, &[group(9, 10)]);
    done(store, ForgetParked);
    keep_all(store, &[group(0, 10), group(1, 500)]);
}

pub(super) fn check_lasting(store: &dyn Store) {
    assert_eq!(kept(store), [group(0, 10), group(1, 500)]);
}
