//! Who is told of the steps of followed notifications.

use carillon_core::model::{Hop, Place};
use std::sync::Arc;
use std::time::SystemTime;

/// A step of a followed notification, when and where it happened.
#[derive(Clone, Debug)]
pub struct HopSeen {
    /// The step.
    pub hop: Hop,
    /// When, by the clock of its node.
    pub at: SystemTime,
    /// On which shard of which node.
    pub place: Place,
}

/// Takes the steps of followed notifications. It must not block.
pub type HopSink = Arc<dyn Fn(HopSeen) + Send + Sync>;
