//! Hash tables of the core. What their hashes are made of is one number for the process: a node sets it, from the randomness of
//! its system, before its first shard ([`seed_maps`]), so that no stranger can choose names that collide. Where nobody sets it, in a
//! simulation, it is the same each time, and with it the order in which tables are gone through.

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;
use std::hash::BuildHasher;
use std::sync::OnceLock;

/// A hash map of the core.
pub type Map<K, V> = hashbrown::HashMap<K, V, Hashing>;
/// A hash set of the core.
pub type Set<K> = hashbrown::HashSet<K, Hashing>;

/// How a table hashes: by the seed that was set when it was made.
#[derive(Clone, Copy)]
pub struct Hashing(&'static SharedSeed);

static SEED: OnceLock<SharedSeed> = OnceLock::new();

/// The other half of what a hash is made of. It need not be secret.
const PER_HASHER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Sets what the tables hash by that are made from now on. The first number counts: later ones change nothing.
pub fn seed_maps(seed: u64) {
    SEED.get_or_init(|| SharedSeed::from_u64(seed));
}

/// Whether [`seed_maps`] was called.
pub fn maps_are_seeded() -> bool {
    SEED.get().is_some()
}

impl Default for Hashing {
    fn default() -> Hashing {
        Hashing(SEED.get().unwrap_or(SharedSeed::global_fixed()))
    }
}

impl BuildHasher for Hashing {
    type Hasher = FoldHasher<'static>;

    fn build_hasher(&self) -> FoldHasher<'static> {
        FoldHasher::with_seed(PER_HASHER, self.0)
    }
}

// The seed never reaches a log.
impl std::fmt::Debug for Hashing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hashing")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No test of the core sets a seed. The order is that of every process: it changes only with the hasher or the table.
    #[test]
    fn without_a_seed_a_table_is_gone_through_in_the_same_order() {
        assert!(!maps_are_seeded());
        let table: Set<&str> = ["ann", "bob", "cid", "dan", "eve"].into_iter().collect();
        assert_eq!(table.iter().copied().collect::<String>(), "evebobciddanann");
    }

    #[test]
    fn another_seed_makes_another_hash() {
        let seeds = [1, 2].map(SharedSeed::from_u64);
        let hashes = seeds.map(|seed| {
            let seed: &'static SharedSeed = Box::leak(Box::new(seed));
            Hashing(seed).hash_one("ann")
        });
        assert_ne!(hashes[0], hashes[1]);
        assert_eq!(Hashing::default().hash_one("ann"), Hashing::default().hash_one("ann"));
    }

    /// As small as it was with the hasher of `hashbrown`.
    #[test]
    fn a_table_is_small() {
        assert_eq!(size_of::<Map<u64, u64>>(), 40);
    }
}
