//! Which shards, of any node, are behind with which topics. Publications to such a topic are refused until all have caught up.

use crate::message::Pace;
use crate::model::{Map, Place, TopicId};

/// The topics whose items come faster than some shard can give them to their followers.
#[derive(Debug, Default)]
pub struct Behind {
    topics: Map<TopicId, Vec<Place>>,
}

impl Behind {
    /// A shard said how it keeps up with a topic.
    pub fn note(&mut self, topic: TopicId, place: Place, pace: Pace) {
        match pace {
            Pace::Behind => {
                let shards = self.topics.entry(topic).or_default();
                if !shards.contains(&place) {
                    shards.push(place);
                }
            }
            Pace::CaughtUp => {
                let Some(shards) = self.topics.get_mut(&topic) else { return };
                shards.retain(|s| *s != place);
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
    use crate::model::{NodeId, ShardId};

    #[test]
    fn a_topic_waits_for_the_last_shard() {
        let mut behind = Behind::default();
        let (topic, other) = (TopicId(1), TopicId(2));
        let [one, two] = [0, 1].map(|shard| Place { node: NodeId(0), shard: ShardId(shard) });
        behind.note(topic, one, Pace::Behind);
        behind.note(topic, two, Pace::Behind);
        behind.note(topic, two, Pace::Behind);
        behind.note(topic, two, Pace::CaughtUp);
        assert!(behind.is_behind(topic) && !behind.is_behind(other));
        behind.note(topic, one, Pace::CaughtUp);
        behind.note(topic, one, Pace::CaughtUp);
        assert!(!behind.is_behind(topic));
    }
}
