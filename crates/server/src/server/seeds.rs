//! The seeds of the shards' random generators.

use carillon_core::model::ShardId;
use std::io;

/// The seed of the random generators of all shards.
pub(super) struct Seeds([u8; 32]);

impl Seeds {
    pub(super) fn new() -> io::Result<Seeds> {
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
