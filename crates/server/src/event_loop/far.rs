//! What comes from other nodes: for sessions here whose connections are there, and for connections here whose sessions are there.

use super::EventLoop;
use super::inbox::EFFECTS_BYTES;
use crate::cell::{Edge, EdgeInput};
use crate::channels::inbox::InboxItem;
use crate::machine::Machine;
use carillon_core::Input;
use carillon_core::connection::CarriedClaim;
use carillon_core::model::ConnId;

impl<M: Machine> EventLoop<M> {
    /// Handles an item from another node.
    pub(super) fn far(&mut self, item: InboxItem) {
        match item {
            InboxItem::Claim { edge, claim } => self.claimed(edge, claim),
            InboxItem::FromClient { edge, input } => match self.io.cell.carried.at(&edge) {
                Some(conn) => self.client_did(conn, input),
                // What came before was lost: its client is to begin anew.
                None if matches!(input, EdgeInput::Bytes(_)) => self.io.close_edge(edge),
                None => {}
            },
            InboxItem::ToClient { conn, output } => {
                self.io.do_for_session(conn, output, &mut self.effects);
                if self.effects.bytes.len() > EFFECTS_BYTES {
                    self.run_effects();
                }
            }
            InboxItem::Lost { node, is_gone } => {
                self.run_effects();
                for conn in self.io.cell.carried.of(node) {
                    // If the node lives, its client is not to wait for answers.
                    self.io.cell.carried.edge_of(conn).into_iter().for_each(|edge| self.io.close_edge(edge));
                    self.client_did(conn, EdgeInput::Closed(u64::MAX));
                }
                self.io.close_relays_to(node);
                self.run_effects();
                self.handle(Input::RecordsLost);
                for message in self.io.cell.unsettled.lose(self.io.place.shard, node, is_gone) {
                    self.handle(Input::Message(message));
                }
            }
            InboxItem::ShardMessage(_)
            | InboxItem::Answer { .. }
            | InboxItem::Derived { .. }
            | InboxItem::Arrival(_)
            | InboxItem::Quic(_)
            | InboxItem::Log(_)
            | InboxItem::Control(_) => {}
        }
    }

    fn claimed(&mut self, edge: Edge, claim: Box<CarriedClaim>) {
        let conn = self.io.carry(edge);
        self.handle(Input::Carried { conn, via: edge.place.node, claim });
    }

    fn client_did(&mut self, conn: ConnId, input: EdgeInput) {
        let input = match input {
            EdgeInput::Bytes(bytes) => {
                if let Some(bytes) = self.io.cell.carried.received(conn, bytes, self.frozen) {
                    self.give_bytes(conn, &bytes);
                }
                return;
            }
            EdgeInput::Closed(unacked) => {
                self.handle(Input::Closed { conn, unacked });
                return self.io.uncarry(conn);
            }
            EdgeInput::Flushed => Input::Flushed { conn },
            EdgeInput::Unacked(bytes, sent) => Input::Unacked { conn, bytes, sent },
            EdgeInput::Overflowed(bound) => Input::Overflowed { conn, bound },
        };
        self.handle(input);
    }

    fn give_bytes(&mut self, conn: ConnId, bytes: &[u8]) {
        self.machine.handle(self.now, Input::Bytes { conn, bytes }, &mut self.effects);
        self.io.handled_of(conn, bytes.len());
        // Whether the core takes the next bytes is among the effects.
        self.run_effects();
    }

    /// Goes on with what came while the core took no input.
    pub(super) fn read_carried(&mut self) {
        while !self.is_late()
            && let Some((conn, bytes)) = self.io.cell.carried.next_kept()
        {
            self.give_bytes(conn, &bytes);
        }
    }
}
