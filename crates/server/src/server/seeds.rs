//! The seeds of the shards' random generators, and of the core's hash tables.

use carillon_core::model::{ShardId, seed_maps};
use std::io;

/// The seed of the random generators of all shards.
pub(super) struct Seeds([u8; 32]);

impl Seeds {
    /// Takes them from the system. Hash tables that are made from now on have a seed, too.
    pub(super) fn new() -> io::Result<Seeds> {
        seed_maps(getrandom::u64().map_err(io::Error::other)?);
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(io::Error::other)?;
        Ok(Seeds(seed))
    }

    /// A seed for one shard, from which no other can be computed.
    pub(super) fn of(&self, id: ShardId) -> [u8; 32] {
        let mut context = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA256);
        context.update(&self.0);
        context.update(&id.0.to_be_bytes());
        context.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_core::model::maps_are_seeded;

    /// Before its first shard, which is made of these seeds: a stranger who knew how tables hash could fill one with names that
    /// collide.
    #[test]
    fn hash_tables_have_a_seed_of_the_node() {
        let seeds = Seeds::new().expect("the system has randomness");
        assert!(maps_are_seeded());
        assert_ne!(seeds.of(ShardId(0)), seeds.of(ShardId(1)));
    }
}
