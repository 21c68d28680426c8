//! Parked sessions between two processes.

use super::{Committed, answers, page};
use crate::ports::Part;
use crate::ports::store::parked::{ForgetParked, ParkedGroup, ParkedGroups, StoreParked, StoreParkedAnswer};
use std::ops::Bound;

answers! {
    ParkedGroups => list;
    StoreParked => store;
    ForgetParked => forget;
}

fn list(store: &Committed, asked: &ParkedGroups) -> Part<ParkedGroup> {
    let from = asked.after.map_or(Bound::Unbounded, Bound::Excluded);
    let groups = store.parked.range((from, Bound::Unbounded));
    page::first(groups.map(|(_, group)| (group.bytes.len(), group.clone())), asked.page)
}

fn store(store: &mut Committed, asked: &StoreParked) -> StoreParkedAnswer {
    let StoreParked { group, bytes_max } = asked;
    let others = store.parked.values().filter(|other| other.number != group.number);
    let bytes: usize = others.map(|other| other.bytes.len()).sum();
    if (bytes + group.bytes.len()) as u64 > *bytes_max {
        return StoreParkedAnswer::Full;
    }
    store.parked.insert(group.number, group.clone());
    StoreParkedAnswer::Stored
}

fn forget(store: &mut Committed, _: &ForgetParked) {
    store.parked.clear();
}
