//! When accounts were available for the last time.

use super::{Committed, answers};
use crate::model::{AccountId, UnixMs};
use crate::ports::store::activity::{LastAvailable, NoteAvailable};
use std::collections::BTreeMap;

answers! {
    LastAvailable => find;
    NoteAvailable => note;
}

/// The times, by account.
pub(super) type Table = BTreeMap<AccountId, UnixMs>;

fn find(store: &Committed, asked: &LastAvailable) -> Option<UnixMs> {
    store.own.activity.get(&store.account_id(asked.domain, &asked.local)?).copied()
}

fn note(store: &mut Committed, asked: &NoteAvailable) {
    for one in &asked.of {
        if let Some(account) = store.account_id(one.domain, &one.local) {
            let at = store.own.activity.entry(account).or_insert(one.at);
            *at = one.at.max(*at);
        }
    }
}
