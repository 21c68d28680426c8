//! The shard: sole owner of its sessions and of what lives at home here.

mod altered;
mod behind;
mod counters;
mod figures;
mod hub;
mod latency;
mod memory;
pub(crate) mod owed;
mod per_domain;
mod recent;
mod sessions;
mod subscribers;
mod then;
mod throttle;
mod traces;
mod walks;
mod wheel;

pub use altered::{Altered, Moment};
pub use behind::Behind;
pub use counters::{Counters, Reasons};
pub use figures::CountedTopics;
pub(crate) use hub::Work;
pub use hub::{Cx, Deferred, Hub};
pub use latency::Latency;
pub use memory::{Known, Memory, Remembered};
pub use owed::{Debt, Forget, Owed};
pub use per_domain::{DomainCounters, PerDomain};
pub use recent::Recent;
pub use sessions::Sessions;
pub use subscribers::Subscribers;
pub use then::Then;
pub use throttle::{Refusal, Throttle};
pub use traces::Traces;
pub use walks::{Backlog, Pace, Slice};
pub use wheel::{Wake, Wheel};

use crate::hook::Track;
use crate::model::{ShardId, bucket};
use carillon_wire::stanza::Stanza;

/// The shard of `shards` that is home to a name: a bare JID, or a topic as `topic@pubsub.domain`.
pub fn home(name: &str, shards: u16) -> ShardId {
    ShardId(bucket(name) % shards.max(1))
}

/// A stanza planned for one session of an account.
#[derive(Debug)]
pub struct Delivery {
    /// The session's slot.
    pub slot: u32,
    /// What it gets: none for the stanza as it is, or another made of it.
    pub instead: Option<Stanza>,
    /// What is to be known of it.
    pub track: Track,
}
