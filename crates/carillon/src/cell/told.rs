//! What the thread that watches the other nodes is told.

use carillon_core::model::{Epoch, NodeId};
use carillon_core::ports::{Left, LogHeard, Membership, Reply, Unavailable};
use carillon_server::Said;
use std::time::Instant;

/// What the thread is told.
pub(super) enum Told {
    /// A beat was heard.
    Beat { from: Epoch, count: u64, store: bool },
    /// Whether the bus can be reached.
    Bus(bool),
    /// Something about the log of this node's sessions.
    Log(LogHeard),
    /// What a dead node left was read.
    Left(NodeId, Result<Vec<Left>, Unavailable>),
    /// What a node says of itself.
    Said(NodeId, Said),
    /// The store was read; the reading began then.
    Read(Instant, Result<Membership, Unavailable>),
    /// An operator wants the homes of this node to go to the others; or its share of them back.
    Yield(bool),
    /// An operator wants a node buried.
    Bury { node: NodeId, reason: String, reply: Reply<bool> },
    /// The node ends.
    Leave,
    /// Another process goes on with the node: this one watches nobody any more.
    HandOver,
}

/// The number of a node in addresses is that of its epoch.
pub(super) fn node_of(epoch: Epoch) -> Option<NodeId> {
    u32::try_from(epoch.0).ok().map(NodeId)
}
