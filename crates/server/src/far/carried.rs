//! Connections of other nodes whose sessions are on this shard. For the core each is a connection like any other.

use super::WINDOW;
use crate::cell::{Edge, EdgeOutput, Far, Flow, Record};
use crate::shard_io::ShardIo;
use carillon_core::Effect;
use carillon_core::model::ConnId;
use std::iter::Peekable;
use std::ops::Range;
use std::vec::Drain;

impl ShardIo {
    /// A client of another node claims an account of this shard: its name here.
    pub(crate) fn carry(&mut self, edge: Edge) -> ConnId {
        let id = self.conns.reserve();
        self.cell.carried.add(id, edge);
        id
    }

    /// The same, as the process before left it.
    pub(crate) fn carry_on(&mut self, far: Far) -> ConnId {
        let id = self.conns.reserve();
        self.cell.carried.put(id, far);
        id
    }

    /// A connection of another node is gone.
    pub(crate) fn uncarry(&mut self, id: ConnId) {
        if self.cell.carried.remove(id) {
            self.conns.release(id);
        }
    }

    /// The core was given so many bytes of a connection of another node.
    pub(crate) fn handled_of(&mut self, id: ConnId, bytes: usize) {
        if let Some(credit) = self.cell.carried.handled(id, bytes, WINDOW / 4) {
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
            | Effect::CountUnacked { conn, .. }
            | Effect::Close { conn }
            | Effect::Move { conn, .. } => *conn,
            _ => return Some(effect),
        };
        if !self.cell.carried.has(id) {
            return Some(effect);
        }
        match effect {
            Effect::Send { range, .. } => self.send_far(id, range, bytes, list),
            Effect::Pause { .. } => self.cell.carried.set_flow(id, Flow::Paused),
            Effect::Resume { .. } => self.cell.carried.set_flow(id, Flow::Open),
            Effect::WatchFlush { .. } => self.tell_edge(id, EdgeOutput::WatchFlush),
            Effect::CountUnacked { sent, .. } => self.tell_edge(id, EdgeOutput::CountUnacked(sent)),
            Effect::Close { .. } => {
                self.tell_edge(id, EdgeOutput::Close);
                self.cell.carried.set_flow(id, Flow::Closing);
            }
            // It came with its TLS, and to its account's home: should the home have moved on meanwhile, its client tries again.
            Effect::Move { .. } | Effect::Secure { .. } => {
                self.tell_edge(id, EdgeOutput::Close);
                self.cell.carried.set_flow(id, Flow::Closing);
            }
            other => return Some(other),
        }
        None
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

    /// Has a connection of another node closed.
    pub(crate) fn close_edge(&self, edge: Edge) {
        let Edge { place, conn } = edge;
        let output = EdgeOutput::Close;
        self.post_far(place.node, &Record::ToClient { shard: place.shard, conn, output });
    }

    fn tell_edge(&self, id: ConnId, output: EdgeOutput) {
        let Some(Edge { place, conn }) = self.cell.carried.edge_of(id) else { return };
        self.post_far(place.node, &Record::ToClient { shard: place.shard, conn, output });
    }
}

/// Bytes after which a record takes no further element.
const SEND_BYTES_MAX: usize = 64 * 1024;
