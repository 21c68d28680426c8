//! Leases.

use super::{Committed, answers};
use crate::ports::store::leases::{Held, LEASES_MAX, Lease, Refused, ReleaseLease, TakeLease};

answers! {
    Lease => find;
    TakeLease => take;
    ReleaseLease => release;
}

fn find(store: &Committed, asked: &Lease) -> Option<Held> {
    store.leases.get(&asked.name).filter(|held| held.until > asked.now).cloned()
}

fn take(store: &mut Committed, asked: &TakeLease) -> Result<(), Refused> {
    store.leases.retain(|_, held| held.until > asked.now);
    match store.leases.get(&asked.name) {
        Some(held) if held.holder != asked.holder => return Err(Refused::Held(held.clone())),
        None if store.leases.len() >= LEASES_MAX as usize => return Err(Refused::TooMany),
        _ => {}
    }
    let held = Held { holder: asked.holder.clone(), until: asked.until };
    store.leases.insert(asked.name.clone(), held);
    Ok(())
}

fn release(store: &mut Committed, asked: &ReleaseLease) {
    store.leases.retain(|name, held| *name != asked.name || held.holder != asked.holder);
}
