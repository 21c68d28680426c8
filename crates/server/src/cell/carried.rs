//! Connections of other nodes whose sessions are on this shard. For the core each is a connection like any other.

use super::record::{Edge, EdgeOutput, Record};
use super::relay::WINDOW;
use crate::shard_io::ShardIo;
use carillon_core::Effect;
use carillon_core::model::{ConnId, NodeId};
use std::collections::{BTreeMap, VecDeque};
use std::iter::Peekable;
use std::ops::Range;
use std::vec::Drain;

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
    /// What came while the core took no input: at most [`WINDOW`] bytes and one message.
    kept: VecDeque<Vec<u8>>,
    /// Bytes that were handled since the last credit.
    handled: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
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

    /// Whether a connection is of another node.
    pub(crate) fn has(&self, id: ConnId) -> bool {
        !self.conns.is_empty() && self.conns.contains_key(&id)
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

impl ShardIo {
    /// A client of another node claims an account of this shard: its name here.
    pub(crate) fn carry(&mut self, edge: Edge) -> ConnId {
        let id = self.conns.reserve();
        let far = Far { edge, flow: Flow::Open, kept: VecDeque::new(), handled: 0 };
        self.cell.carried.conns.insert(id, far);
        // A name that its node has given again was that of a connection which is gone.
        self.cell.carried.by_edge.insert(edge, id);
        id
    }

    /// A connection of another node is gone.
    pub(crate) fn uncarry(&mut self, id: ConnId) {
        if let Some(far) = self.cell.carried.conns.remove(&id) {
            if self.cell.carried.by_edge.get(&far.edge) == Some(&id) {
                self.cell.carried.by_edge.remove(&far.edge);
            }
            self.conns.release(id);
        }
    }

    /// The core was given so many bytes of a connection of another node.
    pub(crate) fn handled_of(&mut self, id: ConnId, bytes: usize) {
        let Some(far) = self.cell.carried.conns.get_mut(&id) else { return };
        far.handled += bytes;
        if far.handled >= WINDOW / 4 {
            let credit = std::mem::take(&mut far.handled) as u32;
            self.tell_edge(id, EdgeOutput::Credit(credit));
        }
    }

    /// Carries out an effect on a connection of another node; gives it back if it is one on another.
    pub(crate) fn carry_out_far(
        &mut self,
        effect: Effect,
        bytes: &[u8],
        list: &mut Peekable<Drain<'_, Effect>>,
    ) -> Option<Effect> {
        let id = match &effect {
            Effect::Send { conn, .. }
            | Effect::Secure { conn }
            | Effect::Pause { conn }
            | Effect::Resume { conn }
            | Effect::WatchFlush { conn }
            | Effect::CountUnacked { conn }
            | Effect::Close { conn }
            | Effect::Move { conn, .. } => *conn,
            _ => return Some(effect),
        };
        if !self.cell.carried.has(id) {
            return Some(effect);
        }
        match effect {
            Effect::Send { range, .. } => self.send_far(id, range, bytes, list),
            Effect::Pause { .. } => self.set_far_flow(id, Flow::Paused),
            Effect::Resume { .. } => {
                self.set_far_flow(id, Flow::Open);
                self.cell.carried.resumed.push_back(id);
            }
            Effect::WatchFlush { .. } => self.tell_edge(id, EdgeOutput::WatchFlush),
            Effect::CountUnacked { .. } => self.tell_edge(id, EdgeOutput::CountUnacked),
            Effect::Close { .. } => {
                self.tell_edge(id, EdgeOutput::Close);
                self.set_far_flow(id, Flow::Closing);
            }
            // It came with its TLS, and to its account's home: should the home have moved on meanwhile, its client tries again.
            Effect::Move { .. } | Effect::Secure { .. } => {
                self.tell_edge(id, EdgeOutput::Close);
                self.set_far_flow(id, Flow::Closing);
            }
            other => return Some(other),
        }
        None
    }

    fn set_far_flow(&mut self, id: ConnId, flow: Flow) {
        if let Some(far) = self.cell.carried.conns.get_mut(&id)
            && far.flow != Flow::Closing
        {
            far.flow = flow;
        }
    }

    /// Sends an element, and with it those that follow for the same connection.
    fn send_far(
        &mut self,
        id: ConnId,
        first: Range<usize>,
        bytes: &[u8],
        list: &mut Peekable<Drain<'_, Effect>>,
    ) {
        let start = first.start;
        let mut end = first.end;
        let mut ends = vec![(end - start) as u32];
        let follows = |effect: &Effect, end: usize| match effect {
            Effect::Send { conn, range } => {
                *conn == id && range.start == end && end - start <= SEND_BYTES_MAX
            }
            _ => false,
        };
        while let Some(Effect::Send { range, .. }) = list.next_if(|effect| follows(effect, end)) {
            end = range.end;
            ends.push((end - start) as u32);
        }
        self.counters.bytes_out += (end - start) as u64;
        self.tell_edge(id, EdgeOutput::Send { bytes: bytes[start..end].to_vec(), ends });
    }

    fn tell_edge(&self, id: ConnId, output: EdgeOutput) {
        let Some(far) = self.cell.carried.conns.get(&id) else { return };
        let Edge { place, conn } = far.edge;
        self.post_far(place.node, &Record::ToClient { shard: place.shard, conn, output });
    }

    /// The connections of a node.
    pub(crate) fn carried_from(&self, node: NodeId) -> Vec<ConnId> {
        let of = |(id, far): (&ConnId, &Far)| (far.edge.place.node == node).then_some(*id);
        self.cell.carried.conns.iter().filter_map(of).collect()
    }
}

/// Bytes after which a record takes no further element.
const SEND_BYTES_MAX: usize = 64 * 1024;
