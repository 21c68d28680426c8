//! Where homes are.

use crate::model::{NodeId, NotificationId, Partition, Place, ShardId, bucket};
use std::fmt::Debug;

/// Says where the home of a name is. While nothing moves, everyone who asks is told the same place, and it is the only one.
///
/// The home of a topic or a room is where its name says. The home of an account is the node that claimed it, or, as long as none has, that
/// which keeps the partition of its name ([`Claims`](crate::shard::Claims)): on each node the one shard that its name says knows which.
pub trait Directory: Debug + Send + Sync {
    /// The home of this topic or room, by its address.
    fn home(&self, name: &str) -> Place;

    /// The shard of this node that knows where the home of this account is.
    fn account(&self, name: &str) -> Place;

    /// The shard that knows where the home of the account is that this notification is for.
    fn home_of_notification(&self, id: NotificationId) -> Place;

    /// The node that keeps a partition.
    fn keeper(&self, partition: Partition) -> NodeId;

    /// The other nodes, which have shards that are told what every shard is told.
    fn other_nodes(&self) -> &[NodeId];
}

/// Computes homes from names and the nodes that live, by rendezvous: where a node comes or goes, only the homes move that it gets or had. A name
/// has the same partition and bucket in every version.
#[derive(Debug)]
pub struct Computed {
    own: NodeId,
    /// How many shards this node has.
    shards: u16,
    nodes: Vec<NodeId>,
    others: Vec<NodeId>,
    /// The index of its node, for each partition.
    owners: Box<[u16]>,
}

impl Computed {
    /// For a node that runs alone, with so many shards.
    pub fn alone(shards: u16) -> Computed {
        Computed::among(&[NodeId::default()], NodeId::default(), shards)
    }

    /// For the node `own` of `nodes`, which has so many shards. There is at least one node.
    pub fn among(nodes: &[NodeId], own: NodeId, shards: u16) -> Computed {
        Computed::with_leaving(nodes, &[], own, shards)
    }

    /// The same beside nodes that leave: they keep no partition, and still have homes of accounts.
    pub fn with_leaving(nodes: &[NodeId], leaving: &[NodeId], own: NodeId, shards: u16) -> Computed {
        let others = nodes.iter().chain(leaving).copied().filter(|node| *node != own).collect();
        let owners = Partition::all().map(|partition| owner(nodes, u64::from(partition.0))).collect();
        Computed { own, shards: shards.max(1), nodes: nodes.to_vec(), others, owners }
    }

    fn of_bucket(&self, bucket: u16) -> Place {
        let node = self.keeper(Partition::of_bucket(bucket));
        match node == self.own {
            true => Place { node, shard: ShardId(bucket % self.shards) },
            false => Place { node, shard: ShardId(bucket) },
        }
    }
}

/// The index of the node that a partition belongs to: the one with the highest weight for it.
fn owner(nodes: &[NodeId], partition: u64) -> u16 {
    let weight = |node: &NodeId| mixed(u64::from(node.0) << 16 | partition);
    let best = nodes.iter().enumerate().max_by_key(|(_, node)| (weight(node), **node));
    best.map_or(0, |(index, _)| index as u16)
}

/// Spreads a number over all numbers (the finalizer of SplitMix64): the same in every version.
fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

impl Directory for Computed {
    fn home(&self, name: &str) -> Place {
        self.of_bucket(bucket(name))
    }

    fn account(&self, name: &str) -> Place {
        Place { node: self.own, shard: ShardId(bucket(name) % self.shards) }
    }

    fn home_of_notification(&self, id: NotificationId) -> Place {
        self.of_bucket(id.bucket())
    }

    fn keeper(&self, partition: Partition) -> NodeId {
        let owner = self.owners.get(usize::from(partition.0)).copied().unwrap_or_default();
        self.nodes.get(usize::from(owner)).copied().unwrap_or(self.own)
    }

    fn other_nodes(&self) -> &[NodeId] {
        &self.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn names() -> impl Iterator<Item = String> {
        (0..8000).map(|n| format!("u{n}@localhost"))
    }

    /// Where a node with two shards takes it to be.
    fn there(place: Place) -> Place {
        Place { shard: ShardId(place.shard.0 % 2), ..place }
    }

    #[test]
    fn every_node_computes_the_same_home_and_all_places_are_used() {
        let nodes = [NodeId(3), NodeId(7), NodeId(8)];
        let [one, other, _] = nodes.map(|own| Computed::among(&nodes, own, 2));
        let mut places = BTreeMap::new();
        for name in names() {
            let home = there(one.home(&name));
            assert_eq!(home, there(other.home(&name)));
            let id = NotificationId::new(crate::model::UnixMs(1), bucket(&name), 1);
            assert_eq!(one.home_of_notification(id), one.home(&name));
            *places.entry(home).or_insert(0) += 1;
        }
        assert_eq!(places.len(), 6);
        assert!(places.values().all(|count| (800..2000).contains(count)), "{places:?}");
        assert_eq!((one.other_nodes(), other.other_nodes()), (&nodes[1..], &[NodeId(3), NodeId(8)][..]));
        assert_eq!(Computed::alone(4).other_nodes(), &[]);
    }

    #[test]
    fn a_node_that_goes_moves_only_its_own_homes() {
        let nodes = [NodeId(3), NodeId(7), NodeId(8), NodeId(11)];
        let [before, after] = [&nodes[..], &nodes[..3]].map(|nodes| Computed::among(nodes, NodeId(3), 2));
        for name in names() {
            let (was, is) = (before.home(&name), after.home(&name));
            assert!(was == is || was.node == NodeId(11), "{name} moved from {was:?} to {is:?}");
        }
    }
}
