//! Leases.

use super::ground::*;
use carillon_core::model::UnixMs;
use carillon_core::ports::Store;
use carillon_core::ports::store::leases::{Held, LEASES_MAX, Lease, Refused, ReleaseLease, TakeLease};

fn take_at(store: &dyn Store, name: &str, holder: &str, now: UnixMs) -> Result<(), Refused> {
    ask(store, TakeLease { name: name.into(), holder: holder.into(), now, until: now.plus(10) })
}

fn held(holder: &str, until: UnixMs) -> Held {
    Held { holder: holder.into(), until }
}

fn who(store: &dyn Store, now: UnixMs) -> Option<Held> {
    ask(store, Lease { name: "scale".into(), now })
}

pub(super) fn are_one_holders_until_they_end(store: &dyn Store) {
    assert_eq!(who(store, T), None);
    assert_eq!(take_at(store, "scale", "a", T), Ok(()));
    let refused = Err(Refused::Held(held("a", T.plus(10))));
    assert_eq!(take_at(store, "scale", "b", T.plus(9)), refused);
    assert_eq!(who(store, T.plus(9)), Some(held("a", T.plus(10))));
    assert_eq!(who(store, T.plus(10)), None);
    assert_eq!(take_at(store, "other", "b", T.plus(9)), Ok(()));
    assert_eq!(take_at(store, "scale", "b", T.plus(10)), Ok(()));
    assert_eq!(who(store, T.plus(10)), Some(held("b", T.plus(20))));
}

pub(super) fn are_taken_anew_and_given_up_by_their_holder(store: &dyn Store) {
    let release = |holder: &str| ask(store, ReleaseLease { name: "scale".into(), holder: holder.into() });
    assert_eq!(take_at(store, "scale", "a", T), Ok(()));
    assert_eq!(take_at(store, "scale", "a", T.plus(5)), Ok(()));
    assert_eq!(who(store, T), Some(held("a", T.plus(15))));
    release("b");
    assert_eq!(who(store, T), Some(held("a", T.plus(15))), "it is another's");
    release("a");
    assert_eq!(who(store, T), None);
    release("a");
    assert_eq!(take_at(store, "scale", "b", T), Ok(()));
}

pub(super) fn are_bounded(store: &dyn Store) {
    for number in 0..LEASES_MAX {
        assert_eq!(take_at(store, &number.to_string(), "a", T), Ok(()));
    }
    assert_eq!(take_at(store, "scale", "a", T), Err(Refused::TooMany));
    assert_eq!(take_at(store, "0", "a", T), Ok(()), "it is there already");
    assert_eq!(take_at(store, "scale", "a", T.plus(10)), Ok(()), "those that have ended do not count");
}

pub(super) fn write_lasting(store: &dyn Store) {
    assert_eq!(take_at(store, "scale", "a", T), Ok(()));
}

pub(super) fn check_lasting(store: &dyn Store) {
    assert_eq!(who(store, T), Some(held("a", T.plus(10))));
}
