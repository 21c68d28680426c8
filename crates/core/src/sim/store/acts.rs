//! Administrative acts.

use super::{Committed, answers};
use crate::model::{Act, ActId};
use crate::ports::store::acts::{FORGOTTEN_MAX, ListActs, NoteAct};
use std::collections::BTreeMap;

answers! {
    ListActs => list;
    NoteAct => note;
}

/// The acts, by their numbers.
pub(super) type Table = BTreeMap<ActId, Act>;

fn list(store: &Committed, asked: &ListActs) -> Vec<(ActId, Act)> {
    let before = store.own.acts.range(..asked.before).rev();
    let wanted = before.filter(|(_, act)| {
        asked.domain.is_none_or(|domain| act.domain == Some(domain))
            && asked.key.is_none_or(|key| act.key == key)
    });
    wanted.take(asked.limit.into()).map(|(id, act)| (*id, act.clone())).collect()
}

fn note(store: &mut Committed, asked: &NoteAct) {
    for _ in 0..FORGOTTEN_MAX {
        let Some(oldest) = store.own.acts.first_entry().filter(|old| old.get().at < asked.keep_since) else {
            break;
        };
        oldest.remove();
    }
    let id = ActId(store.number().into());
    store.own.acts.insert(id, asked.act.clone());
}
