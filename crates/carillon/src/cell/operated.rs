//! What operators see of the cell and do with it, between the node and the thread that watches the others.

use super::told::{Told, node_of};
use carillon_core::cell::Watch;
use carillon_core::model::{Mono, NodeId};
use carillon_core::ports::Reply;
use carillon_server::{CellHands, CellView, MemberView, Standing};
use std::collections::BTreeSet;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

/// Tells the thread what is wanted.
pub(super) struct Hands(pub(super) SyncSender<Told>);

impl CellHands for Hands {
    fn yield_homes(&self, gives: bool) {
        self.tell(Told::Yield(gives));
    }

    fn bury(&self, node: NodeId, reason: &str, reply: Reply<bool>) {
        self.tell(Told::Bury { node, reason: reason.to_owned(), reply });
    }
}

impl Hands {
    fn tell(&self, told: Told) {
        if self.0.try_send(told).is_err() {
            tracing::error!("what an operator wants is not done: the thread of the cell is behind");
        }
    }
}

/// What is known of the cell. `left` are the nodes that gave their homes away; the clock began at `began`.
pub(super) fn view(watch: &Watch, own: NodeId, left: &BTreeSet<NodeId>, began: Instant) -> CellView {
    let at = |mono: Mono| began + Duration::from_millis(mono.0);
    let members = watch.membership().members.iter().filter_map(|member| {
        let node = node_of(member.epoch)?;
        let standing = match (member.is_dead, left.contains(&node)) {
            (true, _) => Standing::Dead,
            (_, true) => Standing::Leaves,
            _ => Standing::Lives,
        };
        let heard = watch.heard(member.epoch).map(at);
        Some(MemberView { node, name: member.name.clone(), standing, heard })
    });
    CellView { own, fence: watch.fence(), read: at(watch.read_at()), members: members.collect() }
}
