//! Accounts whose right to log in was altered lately: another password, another state, or removal.
//!
//! A login takes time, from reading what proves the account to binding the session. A change in between must not be missed,
//! although the store was asked before it. The account's home takes part in every login and hears of every change, so it
//! notes their order. It keeps two generations of hashes, swapped no more often than the longest login lasts; a false mark
//! costs a client one more attempt.

use crate::model::{Map, Moment, Mono};
use std::hash::BuildHasher;

/// Accounts whose right to log in was altered lately.
#[derive(Debug, Default)]
pub struct Altered {
    young: Map<u64, Moment>,
    old: Map<u64, Moment>,
    last: Moment,
    swap_at: Mono,
}

impl Altered {
    /// The present point: a login that begins now knows of all changes up to here.
    pub fn now(&self) -> Moment {
        self.last
    }

    /// Notes an alteration of an account.
    pub fn note(&mut self, account: &str) {
        self.last = self.last.next();
        let hash = self.young.hasher().hash_one(account);
        self.young.insert(hash, self.last);
    }

    /// Whether an account was altered after a moment.
    pub fn is_after(&self, account: &str, moment: Moment) -> bool {
        if self.last <= moment {
            return false;
        }
        [&self.young, &self.old].into_iter().any(|notes| {
            notes.get(&notes.hasher().hash_one(account)).is_some_and(|altered| *altered > moment)
        })
    }

    /// Begins a new generation when the present one is `generation_ms` old, and forgets the one before it.
    pub fn tidy(&mut self, now: Mono, generation_ms: u64) {
        if now >= self.swap_at {
            self.old = std::mem::take(&mut self.young);
            self.swap_at = now.plus(generation_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_altered_after_a_login_began_is_known_for_as_long_as_one_lasts() {
        let mut altered = Altered::default();
        altered.note("alice");
        let began = altered.now();
        assert!(!altered.is_after("alice", began));
        altered.note("bob");
        assert!(!altered.is_after("alice", began));
        altered.note("alice");
        assert!(altered.is_after("alice", began) && altered.is_after("bob", began));
        altered.tidy(Mono(0), 1000);
        assert!(altered.is_after("alice", began), "the generation before");
        altered.tidy(Mono(999), 1000);
        assert!(altered.is_after("alice", began));
        altered.tidy(Mono(1000), 1000);
        assert!(!altered.is_after("alice", began));
        assert!(!altered.is_after("bob", altered.now()));
    }
}
