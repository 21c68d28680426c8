//! What a shard counts per topic. A walk adds once per slice, not per follower.

use crate::command::TopicFigures;
use crate::model::{Map, TopicId};

/// Topics that are counted singly; others only for the node as a whole. This bounds the memory to about 600 KiB.
const TOPICS_MAX: usize = 10_000;

/// Counts of topics since the start.
#[derive(Debug, Default)]
pub struct CountedTopics(Map<TopicId, TopicFigures>);

impl CountedTopics {
    /// An item was published on a topic whose home is here.
    pub fn published(&mut self, topic: TopicId) {
        self.count(topic, |figures| figures.published += 1);
    }

    /// An item was given to this many followers here.
    pub fn delivered(&mut self, topic: TopicId, count: u64) {
        if count > 0 {
            self.count(topic, |figures| figures.delivered += count);
        }
    }

    /// The counts of a topic.
    pub fn of(&self, topic: TopicId) -> TopicFigures {
        self.0.get(&topic).copied().unwrap_or_default()
    }

    /// A topic was deleted. Its number is never used again.
    pub fn forget(&mut self, topic: TopicId) {
        self.0.remove(&topic);
    }

    fn count(&mut self, topic: TopicId, add: impl FnOnce(&mut TopicFigures)) {
        if let Some(figures) = self.0.get_mut(&topic) {
            add(figures);
        } else if self.0.len() < TOPICS_MAX {
            add(self.0.entry(topic).or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_topics_are_counted_and_no_more() {
        let mut counted = CountedTopics::default();
        for n in 0..=TOPICS_MAX as u32 {
            counted.published(TopicId(n));
            counted.delivered(TopicId(n), 3);
        }
        let figures = TopicFigures { sessions: 0, published: 1, delivered: 3 };
        assert_eq!(counted.of(TopicId(9999)), figures);
        assert_eq!(counted.of(TopicId(10_000)), TopicFigures::default());
        counted.forget(TopicId(5));
        counted.delivered(TopicId(10_000), 0);
        assert_eq!(counted.of(TopicId(10_000)), TopicFigures::default(), "nothing is no reason for a place");
        counted.published(TopicId(10_000));
        assert_eq!(counted.of(TopicId(10_000)).published, 1);
    }
}
