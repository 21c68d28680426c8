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
pub(crate) struct Far {
    pub(crate) edge: Edge,
    flow: Flow,
    /// What came while the core took no input: as much as the other node sends without a credit.
    kept: VecDeque<Vec<u8>>,
    /// Bytes that were handled since the last credit.
    handled: u64,
}

carillon_core::form! { struct Far { edge, flow, kept, handled } }

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

carillon_core::form! { enum Flow { 0 = Open, 1 = Paused, 2 = Closing } }

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
        self.put(id, Far { edge, flow: Flow::Open, kept: VecDeque::new(), handled: 0 });
    }

    /// The same, as it was left.
    pub(crate) fn put(&mut self, id: ConnId, far: Far) {
        let edge = far.edge;
        if far.flow == Flow::Open && !far.kept.is_empty() {
            self.resumed.push_back(id);
        }
        self.conns.insert(id, far);
        // A name that its node has given again was that of a connection which is gone.
        self.by_edge.insert(edge, id);
    }

    /// A connection is gone. Whether it was there.
    pub(crate) fn remove(&mut self, id: ConnId) -> bool {
        self.take(id).is_some()
    }

    /// The same; what is known of it.
    pub(crate) fn take(&mut self, id: ConnId) -> Option<Far> {
        let far = self.conns.remove(&id)?;
        if self.by_edge.get(&far.edge) == Some(&id) {
            self.by_edge.remove(&far.edge);
        }
        Some(far)
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
        far.handled += bytes as u64;
        (far.handled >= worth as u64).then(|| std::mem::take(&mut far.handled) as u32)
    }

    /// Bytes came: they come back if the core takes them now. While the shard is `frozen` they are kept.
    pub(crate) fn received(&mut self, id: ConnId, bytes: Vec<u8>, frozen: bool) -> Option<Vec<u8>> {
        let far = self.conns.get_mut(&id)?;
        match far.flow {
            Flow::Open if far.kept.is_empty() && !frozen => Some(bytes),
            Flow::Open if frozen => {
                far.kept.push_back(bytes);
                self.resumed.push_back(id);
                None
            }
            Flow::Open | Flow::Paused => {
                far.kept.push_back(bytes);
                None
            }
            Flow::Closing => None,
        }
    }
}
