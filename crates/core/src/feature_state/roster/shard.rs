//! How often accounts change what is between them and others, per pair: each change is work for both, and told to both.

use crate::feature_state::Shared;
use crate::model::{Map, Mono};
use carillon_wire::jid::BareJid;
use std::hash::BuildHasher;

/// The pairs that changed something lately.
#[derive(Debug, Default)]
pub struct Paces {
    /// By the hash of both addresses: when what it has used up will be there again.
    pairs: Map<u64, Mono>,
}

/// Changes of one pair at once.
const BURST: u64 = 20;
/// After how long there may be one more, in milliseconds.
const EACH_MS: u64 = 3000;
/// Pairs that are remembered: some hundred KiB per shard.
const PAIRS_MAX: usize = 16 * 1024;

impl Shared for Paces {}

impl Paces {
    /// Whether an account may change what is between it and another now; this is counted.
    pub(crate) fn admits(&mut self, account: &BareJid, other: &BareJid, now: Mono) -> bool {
        if self.pairs.len() >= PAIRS_MAX {
            self.pairs.retain(|_, until| *until > now);
            // Who wants another pair to be forgotten has to make as many changes as there are pairs.
            if self.pairs.len() >= PAIRS_MAX {
                self.pairs = Map::default();
            }
        }
        let pair = self.pairs.hasher().hash_one((account.as_str(), other.as_str()));
        let until = self.pairs.entry(pair).or_insert(now);
        let after = (*until).max(now).plus(EACH_MS);
        let is_admitted = after <= now.plus(BURST * EACH_MS);
        if is_admitted {
            *until = after;
        }
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jid(n: usize) -> BareJid {
        BareJid::new(&format!("u{n}@example.org")).expect("an address")
    }

    #[test]
    fn a_pair_changes_something_so_often_and_no_other_pair_notices() {
        let mut paces = Paces::default();
        let mut admitted = |one, other, now| paces.admits(&jid(one), &jid(other), Mono(now));
        assert_eq!((0..100).filter(|_| admitted(1, 2, 5000)).count() as u64, BURST);
        assert!(admitted(2, 1, 5000) && admitted(1, 3, 5000));
        assert!(!admitted(1, 2, 5000 + EACH_MS - 1));
        assert!(admitted(1, 2, 5000 + EACH_MS) && !admitted(1, 2, 5000 + EACH_MS));
        let later = 5000 + 2 * BURST * EACH_MS;
        assert_eq!((0..100).filter(|_| admitted(1, 2, later)).count() as u64, BURST);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut paces = Paces::default();
        (0..PAIRS_MAX + 10).for_each(|n| assert!(paces.admits(&jid(0), &jid(n), Mono(1))));
        assert!(paces.pairs.len() <= PAIRS_MAX, "{}", paces.pairs.len());
    }
}
