//! Leases.

use super::ground::*;
use carillon_core::model::UnixMs;
use carillon_core::ports::Store;
use carillon_core::ports::store::leases::{
    Held, LEASES_MAX, Lease, ListLeases, Refused, ReleaseLease, TakeLease,
};

fn take_at(store: &dyn Store, name: &str, holder: &str, now: UnixMs) -> Result<(), Refused> {
    ask(store, TakeLease { name: name.into(), holder: holder.into(), now, until: now.plus(10), state: None })
}

fn held(holder: &str, until: UnixMs) -> Held {
    Held { holder: holder.into(), until, state: None }
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

pub(super) fn say_what_their_holders_say(store: &dyn Store) {
    let say = |holder: &str, now: UnixMs, state: Option<&str>| {
        let (name, holder) = ("scale".into(), holder.into());
        ask(store, TakeLease { name, holder, now, until: now.plus(10), state: state.map(Into::into) })
    };
    let state = |now: UnixMs| who(store, now).and_then(|held| held.state);
    assert_eq!(say("a", T, Some("3 units")), Ok(()));
    assert_eq!(state(T).as_deref(), Some("3 units"));
    assert_eq!(say("a", T, None), Ok(()));
    assert_eq!(state(T).as_deref(), Some("3 units"), "its holder said nothing new");
    assert!(say("b", T, Some("9 units")).is_err());
    assert_eq!(state(T).as_deref(), Some("3 units"), "it is another's");
    assert_eq!(say("b", T.plus(10), None), Ok(()));
    assert_eq!(state(T.plus(10)), None, "the state was of the holder before");
}

pub(super) fn are_listed_by_their_names(store: &dyn Store) {
    let list = |after: Option<&str>, limit: u16, now: UnixMs| {
        let listed = ask(store, ListLeases { after: after.map(Into::into), limit, now });
        listed.iter().map(|(name, held)| format!("{name} {}", held.holder)).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(list(None, 10, T), "");
    for (name, holder) in [("b", "2"), ("a", "1"), ("ä", "4"), ("c", "3")] {
        assert_eq!(take_at(store, name, holder, T), Ok(()));
    }
    assert_eq!(list(None, 10, T), "a 1, b 2, c 3, ä 4");
    assert_eq!(list(None, 2, T), "a 1, b 2");
    assert_eq!(list(Some("b"), 2, T), "c 3, ä 4");
    assert_eq!(list(None, 10, T.plus(10)), "", "they have ended");
}

pub(super) fn write_lasting(store: &dyn Store) {
    assert_eq!(take_at(store, "scale", "a", T), Ok(()));
}

pub(super) fn check_lasting(store: &dyn Store) {
    assert_eq!(who(store, T), Some(held("a", T.plus(10))));
}
