//! What a node knows of its cell, for those who look: the thread that watches the others writes it, HTTP and metrics read it.

use carillon_core::cell::Fence;
use carillon_core::model::{NodeId, Partition};
use carillon_core::ports::Directory;
use carillon_core::ports::Reply;
use std::time::{Duration, Instant};

/// A cell as one of its nodes sees it.
#[derive(Clone, Debug)]
pub struct CellView {
    /// The node that sees it.
    pub own: NodeId,
    /// Why that node does not act, if it does not.
    pub fence: Option<Fence>,
    /// When the last reading of the nodes that succeeded began.
    pub read: Instant,
    /// Its nodes, the dead ones of the last day among them.
    pub members: Vec<MemberView>,
}

impl CellView {
    /// The node with this name, or else with this number.
    pub fn named(&self, name: &str) -> Option<&MemberView> {
        let number = name.parse::<u32>().ok().map(NodeId);
        let by_name = self.members.iter().find(|member| *member.name == *name);
        by_name.or_else(|| self.members.iter().find(|member| Some(member.node) == number))
    }
}

/// A node, as another one sees it.
#[derive(Clone, Debug)]
pub struct MemberView {
    /// Its number: that of its process.
    pub node: NodeId,
    /// Its name, which outlives its processes.
    pub name: Box<str>,
    /// What the store and the node itself say of it.
    pub standing: Standing,
    /// When a beat of it was heard last.
    pub heard: Option<Instant>,
}

/// What the store and a node itself say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is a member.
    Lives,
    /// It is a member, and has given its homes to the others.
    Leaves,
    /// It was buried.
    Dead,
}

/// How a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemberState {
    /// It is heard.
    Alive,
    /// It is heard, and has given its homes to the others.
    Leaving,
    /// Nothing was heard of it for three seconds. After nine it may be buried.
    Silent,
    /// It was buried: nothing of it is committed.
    Dead,
}

impl MemberState {
    /// Every state.
    pub const ALL: [MemberState; 4] =
        [MemberState::Alive, MemberState::Leaving, MemberState::Silent, MemberState::Dead];

    /// Its word, in the API and as a label of metrics.
    pub fn word(self) -> &'static str {
        match self {
            MemberState::Alive => "alive",
            MemberState::Leaving => "leaving",
            MemberState::Silent => "silent",
            MemberState::Dead => "dead",
        }
    }
}

/// A node without a beat for so long is silent: three of its beats did not come.
const SILENT: Duration = Duration::from_secs(3);

impl MemberView {
    /// How long ago it was heard.
    pub fn age(&self, now: Instant) -> Option<Duration> {
        self.heard.map(|heard| now.saturating_duration_since(heard))
    }

    /// How it is.
    pub fn state(&self, now: Instant) -> MemberState {
        let is_silent = self.age(now).is_none_or(|age| age > SILENT);
        match self.standing {
            Standing::Dead => MemberState::Dead,
            _ if is_silent => MemberState::Silent,
            Standing::Leaves => MemberState::Leaving,
            Standing::Lives => MemberState::Alive,
        }
    }
}

/// Does what an operator wants done with a cell: the thread that watches its nodes. Nothing of it blocks.
pub trait CellHands: Send + Sync {
    /// The node gives its homes to the others; or takes its share of them again.
    fn yield_homes(&self, gives: bool);

    /// Buries a node. Whether this was done now: not if it was dead, or is no member. Nobody is told if the store cannot be reached.
    fn bury(&self, node: NodeId, reason: &str, reply: Reply<bool>);
}

/// The node of each partition of the names.
pub(crate) fn owners(directory: &dyn Directory) -> Vec<NodeId> {
    Partition::all().map(|partition| directory.keeper(partition)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_core::ports::Computed;

    #[test]
    fn a_node_is_silent_when_three_beats_are_missing() {
        let now = Instant::now() + Duration::from_secs(60);
        let state = |standing, ago: Option<u64>| {
            let heard = ago.map(|ms| now - Duration::from_millis(ms));
            MemberView { node: NodeId(1), name: "a".into(), standing, heard }.state(now)
        };
        assert_eq!(state(Standing::Lives, Some(3000)), MemberState::Alive);
        assert_eq!(state(Standing::Lives, Some(3001)), MemberState::Silent);
        assert_eq!(state(Standing::Lives, None), MemberState::Silent);
        assert_eq!(state(Standing::Leaves, Some(0)), MemberState::Leaving);
        assert_eq!(state(Standing::Leaves, Some(9000)), MemberState::Silent);
        assert_eq!(state(Standing::Dead, Some(0)), MemberState::Dead);
    }

    #[test]
    fn every_partition_has_its_owner() {
        let nodes = [NodeId(3), NodeId(7)];
        let directory = Computed::among(&nodes, NodeId(3), 2);
        let owners = owners(&directory);
        assert_eq!(owners.len(), Partition::COUNT);
        for n in 0..2000 {
            let name = format!("u{n}@localhost");
            let partition = carillon_core::model::bucket(&name) >> 8;
            assert_eq!(directory.home(&name).node, owners[usize::from(partition)]);
        }
    }
}
