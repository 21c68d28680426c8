//! Which shards are behind with which topics. Publications to such a topic are refused until all have caught up.

use crate::message::Pace;
use crate::model::{Map, ShardId, TopicId};

/// The topics whose items come faster than some shard can give them to their followers.
#[derive(Debug, Default)]
pub struct Behind {
    topics: Map<TopicId, Vec<ShardId>>,
}

impl Behind {
    /// A shard said how it keeps up with a topic.
    pub fn note(&mut self, topic: TopicId, shard: ShardId, pace: Pace) {
        match pace {
            Pace::Behind => {
                let shards = self.topics.entry(topic).or_default();
                if !shards.contains(&shard) {
                    shards.push(shard);
                }
            }
            Pace::CaughtUp => {
                let Some(shards) = self.topics.get_mut(&topic) else { return };
                shards.retain(|s| *s != shard);
                if shards.is_empty() {
                    self.topics.remove(&topic);
                }
            }
        }
    }

    /// Whether any shard is behind with a topic.
    pub fn is_behind(&self, topic: TopicId) -> bool {
        self.topics.contains_key(&topic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_waits_for_the_last_shard() {
        let mut behind = Behind::default();
        let (topic, other) = (TopicId(1), TopicId(2));
        behind.note(topic, ShardId(0), Pace::Behind);
        behind.note(topic, ShardId(1), Pace::Behind);
        behind.note(topic, ShardId(1), Pace::Behind);
        behind.note(topic, ShardId(1), Pace::CaughtUp);
        assert!(behind.is_behind(topic) && !behind.is_behind(other));
        behind.note(topic, ShardId(0), Pace::CaughtUp);
        behind.note(topic, ShardId(0), Pace::CaughtUp);
        assert!(!behind.is_behind(topic));
    }
}
