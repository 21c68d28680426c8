//! Where homes are.

use crate::model::{NodeId, NotificationId, Place, ShardId, bucket};
use std::fmt::Debug;

/// Says where the home of a name is. While nothing moves, everyone who asks is told the same place, and it is the only one.
pub trait Directory: Debug + Send + Sync {
    /// The home of this name: a bare JID, or the address of a topic.
    fn home(&self, name: &str) -> Place;

    /// The home of the account that this notification is for.
    fn home_of_notification(&self, id: NotificationId) -> Place;

    /// The other nodes, which have shards that are told what every shard is told.
    fn other_nodes(&self) -> &[NodeId];
}

/// Computes homes from names, for nodes that are known from the start and have equally many shards. What is remembered of a name's home is
/// true in every version: the bucket of a name never changes.
#[derive(Debug)]
pub struct Computed {
    nodes: Vec<NodeId>,
    others: Vec<NodeId>,
    shards: u16,
}

impl Computed {
    /// For a node that runs alone, with so many shards.
    pub fn alone(shards: u16) -> Computed {
        Computed::among(&[NodeId::default()], NodeId::default(), shards)
    }

    /// For the node `own` of `nodes`, each of which has so many shards. There is at least one of both.
    pub fn among(nodes: &[NodeId], own: NodeId, shards: u16) -> Computed {
        let others = nodes.iter().copied().filter(|node| *node != own).collect();
        Computed { nodes: nodes.to_vec(), others, shards: shards.max(1) }
    }

    fn of_bucket(&self, bucket: u16) -> Place {
        let at = usize::from(bucket) % (self.nodes.len() * usize::from(self.shards)).max(1);
        let node = self.nodes.get(at / usize::from(self.shards)).copied().unwrap_or_default();
        Place { node, shard: ShardId((at % usize::from(self.shards)) as u16) }
    }
}

impl Directory for Computed {
    fn home(&self, name: &str) -> Place {
        self.of_bucket(bucket(name))
    }

    fn home_of_notification(&self, id: NotificationId) -> Place {
        self.of_bucket(id.bucket())
    }

    fn other_nodes(&self) -> &[NodeId] {
        &self.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_computes_the_same_home_and_all_places_are_used() {
        let nodes = [NodeId(3), NodeId(7)];
        let [one, other] = nodes.map(|own| Computed::among(&nodes, own, 2));
        let mut places = std::collections::BTreeMap::new();
        for n in 0..4000 {
            let name = format!("u{n}@localhost");
            assert_eq!(one.home(&name), other.home(&name));
            let id = NotificationId::new(crate::model::UnixMs(1), bucket(&name), 1);
            assert_eq!(one.home_of_notification(id), one.home(&name));
            *places.entry(one.home(&name)).or_insert(0) += 1;
        }
        assert_eq!(places.len(), 4);
        assert!(places.values().all(|count| (800..1200).contains(count)), "{places:?}");
        assert_eq!((one.other_nodes(), other.other_nodes()), (&nodes[1..], &nodes[..1]));
        assert_eq!(Computed::alone(4).other_nodes(), &[]);
    }
}
