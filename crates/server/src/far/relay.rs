//! Connections of this shard whose sessions are on other nodes. The socket, TLS and WebSocket stay here; what the client says goes to
//! its session, what the session sends comes back.

use super::WINDOW;
use crate::cell::{Edge, EdgeInput, EdgeOutput, Record};
use crate::conn::ReadFlow;
use crate::shard_io::{GOING_AWAY, ShardIo, Upcall};
use carillon_core::connection::{CarriedClaim, Claimed};
use carillon_core::model::{ConnId, NodeId, Place};
use carillon_core::{Effect, Effects};

impl ShardIo {
    /// A client of this shard claims an account whose home is on another node: from now on it is connected to its session there.
    pub(crate) fn relay(&mut self, id: ConnId, home: Place, claimed: Claimed) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        conn.flow = ReadFlow::Open;
        self.cell.relays.add(id, home);
        let claim = Box::new(CarriedClaim::from(claimed));
        self.post_far(home.node, &Record::Claim { shard: home.shard, edge: self.edge(id), claim });
        self.release_held(id);
        self.schedule(id);
    }

    /// Bytes of a client for its session on another node.
    pub(crate) fn relay_bytes(&mut self, id: ConnId, bytes: Vec<u8>) {
        let Some(relay) = self.cell.relays.get_mut(id) else { return };
        relay.on_the_way += bytes.len() as u64;
        if relay.on_the_way >= WINDOW as u64
            && let Some(conn) = self.conns.get_mut(id)
        {
            conn.flow = ReadFlow::Paused;
        }
        self.tell_session(id, EdgeInput::Bytes(bytes));
    }

    /// Tells the session on another node what happened to its connection. Whether that is where it is.
    pub(crate) fn relay_upcall(&mut self, upcall: Upcall) -> bool {
        let id = upcall.conn();
        if !self.cell.relays.has(id) {
            return false;
        }
        let input = match upcall {
            Upcall::Closed(_, unacked) => EdgeInput::Closed(unacked),
            Upcall::Flushed(_) => EdgeInput::Flushed,
            Upcall::Unacked(_, bytes, sent) => EdgeInput::Unacked(bytes, sent),
            Upcall::Overflowed(_, bound) => EdgeInput::Overflowed(bound),
        };
        self.tell_session(id, input);
        if matches!(upcall, Upcall::Closed(..)) {
            self.cell.relays.remove(id);
        }
        true
    }

    fn tell_session(&mut self, id: ConnId, input: EdgeInput) {
        if let Some(home) = self.cell.relays.get_mut(id).map(|relay| relay.home) {
            self.tell_home(id, home, input);
        }
    }

    /// The same of a connection that is not among those any more.
    pub(crate) fn tell_home(&self, id: ConnId, home: Place, input: EdgeInput) {
        let record = Record::FromClient { shard: home.shard, edge: self.edge(id), input };
        self.post_far(home.node, &record);
    }

    /// What the session on another node does with a connection of this shard.
    pub(crate) fn do_for_session(&mut self, id: ConnId, output: EdgeOutput, effects: &mut Effects) {
        if !self.cell.relays.has(id) {
            return;
        }
        match output {
            EdgeOutput::Send { bytes, ends } => {
                let mut start = effects.bytes.len();
                let base = start;
                effects.bytes.extend_from_slice(&bytes);
                for end in ends {
                    // What another node says is checked as what a client says.
                    let end = (base + end as usize).min(effects.bytes.len()).max(start);
                    effects.push(Effect::Send { conn: id, range: start..end });
                    start = end;
                }
            }
            EdgeOutput::WatchFlush => effects.push(Effect::WatchFlush { conn: id }),
            EdgeOutput::CountUnacked(sent) => effects.push(Effect::CountUnacked { conn: id, sent }),
            EdgeOutput::Close => effects.push(Effect::Close { conn: id }),
            EdgeOutput::Credit(bytes) => {
                let Some(relay) = self.cell.relays.get_mut(id) else { return };
                relay.on_the_way = relay.on_the_way.saturating_sub(u64::from(bytes));
                if relay.on_the_way < WINDOW as u64 {
                    effects.push(Effect::Resume { conn: id });
                }
            }
        }
    }

    /// A node is gone, or what it sent was lost: the connections whose sessions are there are closed.
    pub(crate) fn close_relays_to(&mut self, node: NodeId) {
        for id in self.cell.relays.to(node) {
            self.close(id, GOING_AWAY);
        }
    }

    fn edge(&self, conn: ConnId) -> Edge {
        Edge { place: self.place, conn }
    }
}
