//! The shard: sole owner of its sessions and of what lives at home here.

mod counters;
mod letter;

pub use counters::{Counters, Latency};
pub use letter::Letter;

use crate::model::{Domains, Mono, Now, ShardId, bucket};
use crate::settings::Settings;
use crate::{Effects, Input};
use std::sync::Arc;

/// The shard of `shards` that is home to a name: a bare JID, or a topic as `topic@pubsub.domain`.
pub fn home(name: &str, shards: u16) -> ShardId {
    ShardId(bucket(name) % shards.max(1))
}

/// One shard of the node.
pub struct Shard {}

impl Shard {
    /// A shard without sessions: number `id` of `shards`. `seed` is 32 bytes of entropy.
    pub fn new(_id: ShardId, _shards: u16, _settings: Arc<Settings>, _domains: Arc<Domains>, _seed: [u8; 32]) -> Shard {
        Shard {}
    }

    /// Handles one input; what is to be done is added to `effects`.
    pub fn handle(&mut self, _now: Now, _input: Input<'_>, _effects: &mut Effects) {}

    /// Goes on with the fan-outs under way, for one slice of deliveries. Whether any is left: then the caller looks at
    /// other work and comes back without sleeping.
    pub fn walk(&mut self, _now: Now, _effects: &mut Effects) -> bool {
        false
    }

    /// When [`Input::Tick`] is due, if ever.
    pub fn next_wake(&self) -> Option<Mono> {
        None
    }

    /// What the shard counts.
    pub fn counters(&self) -> &Counters {
        todo!()
    }

    /// Takes the settings that may change while it runs (limits, timeouts).
    pub fn reload(&mut self, _settings: Arc<Settings>) {}
}
