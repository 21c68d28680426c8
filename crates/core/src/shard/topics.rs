//! What a shard has of topics: who follows them, and what the home of a topic notes of it.

use super::{Behind, CountedTopics, Subscribers, Told};
use crate::model::Mono;

/// What a shard has of topics.
#[derive(Default)]
pub struct Topics {
    /// Which sessions follow which topics.
    pub(crate) subscribers: Subscribers,
    /// When it was last heard that records of another node were lost, or that it died.
    pub(crate) records_lost: Option<Mono>,
    /// Topics with which a shard is behind.
    pub(crate) behind: Behind,
    /// Publications that are done once.
    pub(crate) told: Told,
    /// The counters per topic.
    pub(crate) figures: CountedTopics,
}
