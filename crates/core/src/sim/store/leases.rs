//! Leases.

use super::{Committed, answers};
use crate::ports::store::leases::{Held, LEASES_MAX, Lease, ListLeases, Refused, ReleaseLease, TakeLease};

answers! {
    Lease => find;
    ListLeases => list;
    TakeLease => take;
    ReleaseLease => release;
}

fn find(store: &Committed, asked: &Lease) -> Option<Held> {
    store.leases.get(&asked.name).filter(|held| held.until > asked.now).cloned()
}

fn list(store: &Committed, asked: &ListLeases) -> Vec<(Box<str>, Held)> {
    let is_behind = |name: &str| asked.after.as_deref().is_none_or(|after| name > after);
    let held = store.leases.iter().filter(|(name, held)| held.until > asked.now && is_behind(name));
    let leases = held.take(asked.limit.into());
    leases.map(|(name, held)| (name.clone(), held.clone())).collect()
}

fn take(store: &mut Committed, asked: &TakeLease) -> Result<(), Refused> {
    store.leases.retain(|_, held| held.until > asked.now);
    match store.leases.get(&asked.name) {
        Some(held) if held.holder != asked.holder => return Err(Refused::Held(held.clone())),
        None if store.leases.len() >= LEASES_MAX as usize => return Err(Refused::TooMany),
        _ => {}
    }
    let before = store.leases.remove(&asked.name).and_then(|held| held.state);
    let state = asked.state.clone().or(before);
    let held = Held { holder: asked.holder.clone(), until: asked.until, state };
    store.leases.insert(asked.name.clone(), held);
    Ok(())
}

fn release(store: &mut Committed, asked: &ReleaseLease) {
    store.leases.retain(|name, held| *name != asked.name || held.holder != asked.holder);
}
