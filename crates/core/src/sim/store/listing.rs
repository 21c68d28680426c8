//! Lists of notifications: those that wait and those that have ended, newest first.

use super::{Committed, answers};
use crate::model::Trace;
use crate::ports::store::notifications::{Listing, NotificationQuery};
use std::cmp::Reverse;

answers! {
    NotificationQuery => list;
}

fn list(store: &Committed, query: &NotificationQuery) -> Listing {
    let wanted = usize::from(query.limit) + 1;
    let waiting = store.waiting.range(query.from..query.before).rev();
    let waiting = waiting.map(|(_, waiting)| (waiting.notification.domain, waiting.trace()));
    let waiting = waiting.filter(|(domain, trace)| query.matches(trace, *domain)).take(wanted);
    let ended = store.ended.range(query.from..query.before).rev().map(|(_, ended)| ended);
    let ended = ended.filter(|(domain, trace)| query.matches(trace, *domain)).take(wanted).cloned();
    let mut traces: Vec<Trace> = waiting.chain(ended).map(|(_, trace)| trace).collect();
    traces.sort_unstable_by_key(|trace| Reverse(trace.id));
    let more = traces.len() >= wanted;
    traces.truncate(query.limit.into());
    let next = traces.last().filter(|_| more).map(|last| last.id);
    Listing { traces, next }
}
