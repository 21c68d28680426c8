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

/// Computes homes from names and the nodes that live, by rendezvous: where a node comes or goes, only the homes move that it gets or had. A name
/// has the same partition and bucket in every version.
#[derive(Debug)]
pub struct Computed {
    members: Vec<Host>,
    others: Vec<NodeId>,
    /// The index of its node, for each partition.
    owners: Box<[u16]>,
}

/// A node that has homes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// The node.
    pub node: NodeId,
    /// How many shards it has.
    pub shards: u16,
}

/// Into how many partitions names are divided. A partition moves as a whole.
pub const PARTITIONS: usize = 256;

impl Computed {
    /// For a node that runs alone, with so many shards.
    pub fn alone(shards: u16) -> Computed {
        Computed::among(&[Host { node: NodeId::default(), shards }], NodeId::default())
    }

    /// For the node `own` of `members`. There is at least one.
    pub fn among(members: &[Host], own: NodeId) -> Computed {
        let others = members.iter().map(|host| host.node).filter(|node| *node != own).collect();
        let owners = (0..PARTITIONS as u64).map(|partition| owner(members, partition)).collect();
        Computed { members: members.to_vec(), others, owners }
    }

    fn of_bucket(&self, bucket: u16) -> Place {
        let owner = self.owners.get(usize::from(bucket >> 8)).copied().unwrap_or_default();
        let host = self.members.get(usize::from(owner)).copied();
        let Host { node, shards } = host.unwrap_or(Host { node: NodeId::default(), shards: 1 });
        Place { node, shard: ShardId(bucket % shards.max(1)) }
    }
}

/// The index of the node that a partition belongs to: the one with the highest weight for it.
fn owner(members: &[Host], partition: u64) -> u16 {
    let weight = |host: &Host| mixed(u64::from(host.node.0) << 16 | partition);
    let best = members.iter().enumerate().max_by_key(|(_, host)| (weight(host), host.node));
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
    use std::collections::BTreeMap;

    fn host(node: u32) -> Host {
        Host { node: NodeId(node), shards: 2 }
    }

    fn names() -> impl Iterator<Item = String> {
        (0..8000).map(|n| format!("u{n}@localhost"))
    }

    #[test]
    fn every_node_computes_the_same_home_and_all_places_are_used() {
        let hosts = [host(3), host(7), host(8)];
        let [one, other, _] = hosts.map(|own| Computed::among(&hosts, own.node));
        let mut places = BTreeMap::new();
        for name in names() {
            assert_eq!(one.home(&name), other.home(&name));
            let id = NotificationId::new(crate::model::UnixMs(1), bucket(&name), 1);
            assert_eq!(one.home_of_notification(id), one.home(&name));
            *places.entry(one.home(&name)).or_insert(0) += 1;
        }
        assert_eq!(places.len(), 6);
        assert!(places.values().all(|count| (800..2000).contains(count)), "{places:?}");
        assert_eq!(
            (one.other_nodes(), other.other_nodes()),
            (&[NodeId(7), NodeId(8)][..], &[NodeId(3), NodeId(8)][..])
        );
        assert_eq!(Computed::alone(4).other_nodes(), &[]);
    }

    #[test]
    fn a_node_that_goes_moves_only_its_own_homes() {
        let hosts = [host(3), host(7), host(8), host(11)];
        let [before, after] = [&hosts[..], &hosts[..3]].map(|hosts| Computed::among(hosts, NodeId(3)));
        for name in names() {
            let (was, is) = (before.home(&name), after.home(&name));
            assert!(was == is || was.node == NodeId(11), "{name} moved from {was:?} to {is:?}");
        }
    }
}
