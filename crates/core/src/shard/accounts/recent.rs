//! Accounts for which something was stored lately: what a login read from the store may be out of date.
//!
//! A login's data are read when it begins and used when initial presence comes. An account for which something is stored in
//! between is marked here; its session then asks again instead of trusting what was read. Two generations of hashes, swapped
//! no more often than the longest login lasts; a false mark costs one question.

use crate::model::{Mono, Set};
use std::hash::BuildHasher;

/// Accounts for which something was stored lately.
#[derive(Debug, Default)]
pub struct Recent {
    young: Set<u64>,
    old: Set<u64>,
    swap_at: Mono,
}

impl Recent {
    /// Marks an account.
    pub fn mark(&mut self, account: &str) {
        let hash = self.young.hasher().hash_one(account);
        // Both sets must hash alike, so the old one is only ever a former young one.
        self.young.insert(hash);
    }

    /// Whether an account was marked within the present generation or the one before.
    pub fn is_marked(&self, account: &str) -> bool {
        self.young.contains(&self.young.hasher().hash_one(account))
            || self.old.contains(&self.old.hasher().hash_one(account))
    }

    /// Begins a new generation when the present one is `generation_ms` old, and forgets the one before it.
    pub fn tidy(&mut self, now: Mono, generation_ms: u64) {
        if now >= self.swap_at {
            self.old = std::mem::take(&mut self.young);
            self.swap_at = now.plus(generation_ms);
        }
    }
}
