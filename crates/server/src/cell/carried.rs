//! Which connections of other nodes have their sessions on a shard.

use super::record::Edge;
use carillon_core::model::{ConnId, NodeId};
use std::collections::{BTreeMap, VecDeque};

/// The connections of other nodes.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    conns: BTreeMap<ConnId, Far>,
    by_edge: BTreeMap<Edge, ConnId>,
    /// Those that go on reading.
    resumed: VecDeque<ConnId>,
}

/// A connection of another node.
#[derive(Debug)]
struct Far {
    edge: Edge,
    flow: Flow,
    /// What came while the core took no input: as much as the other node sends without a credit.
    kept: VecDeque<Vec<u8>>,
    /// Bytes that were handled since the last credit.
    handled: usize,
}

/// Whether the core takes input of such a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// It does.
    Open,
    /// The core takes no input.
    Paused,
    /// The core has closed it, and waits to hear that it is gone.
    Closing,
}

impl Carried {
    /// The connection with this name at another node.
    pub(crate) fn at(&self, edge: &Edge) -> Option<ConnId> {
        self.by_edge.get(edge).copied()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.conns.len()
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.conns.is_empty()
    }

    /// Whether a connection is of another node.
    pub(crate) fn has(&self, id: ConnId) -> bool {
        self.conns.contains_key(&id)
    }

    /// Whether any has input that the core can be given.
    pub(crate) fn is_ready(&self) -> bool {
        !self.resumed.is_empty()
    }

    /// The next that goes on reading, and what it goes on with.
    pub(crate) fn next_kept(&mut self) -> Option<(ConnId, Vec<u8>)> {
        while let Some(&id) = self.resumed.front() {
            let far = self.conns.get_mut(&id).filter(|far| far.flow == Flow::Open);
            if let Some(bytes) = far.and_then(|far| far.kept.pop_front()) {
                return Some((id, bytes));
            }
            self.resumed.pop_front();
        }
        None
    }

    /// A connection has this name here from now on.
    pub(crate) fn add(&mut self, id: ConnId, edge: Edge) {
        self.conns.insert(id, Far { edge, flow: Flow::Open, kept: VecDeque::new(), handled: 0 });
        // A name that its node has given again was that of a connection which is gone.
        self.by_edge.insert(edge, id);
    }

    /// A connection is gone. Whether it was there.
    pub(crate) fn remove(&mut self, id: ConnId) -> bool {
        let Some(far) = self.conns.remove(&id) else { return false };
        if self.by_edge.get(&far.edge) == Some(&id) {
            self.by_edge.remove(&far.edge);
        }
        true
    }

    /// The name of a connection where its socket is.
    pub(crate) fn edge_of(&self, id: ConnId) -> Option<Edge> {
        self.conns.get(&id).map(|far| far.edge)
    }

    /// The connections of a node.
    pub(crate) fn of(&self, node: NodeId) -> Vec<ConnId> {
        let of = |(id, far): (&ConnId, &Far)| (far.edge.place.node == node).then_some(*id);
        self.conns.iter().filter_map(of).collect()
    }

    /// Whether the core takes input from now on. One that is closed stays closed.
    pub(crate) fn set_flow(&mut self, id: ConnId, flow: Flow) {
        let Some(far) = self.conns.get_mut(&id).filter(|far| far.flow != Flow::Closing) else { return };
        far.flow = flow;
        if flow == Flow::Open {
            self.resumed.push_back(id);
        }
    }

    /// The core was given so many bytes: how many more may come, once that is worth telling.
    pub(crate) fn handled(&mut self, id: ConnId, bytes: usize, worth: usize) -> Option<u32> {
        let far = self.conns.get_mut(&id)?;
        far.handled += bytes;
        (far.handled >= worth).then(|| std::mem::take(&mut far.handled) as u32)
    }

    /// Bytes came: they come back if the core takes them now.
    pub(crate) fn received(&mut self, id: ConnId, bytes: Vec<u8>) -> Option<Vec<u8>> {
        let far = self.conns.get_mut(&id)?;
        match far.flow {
            Flow::Open if far.kept.is_empty() => Some(bytes),
            Flow::Open | Flow::Paused => {
                far.kept.push_back(bytes);
                None
            }
            Flow::Closing => None,
        }
    }
}
