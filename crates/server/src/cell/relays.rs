//! Which connections of a shard have their sessions on other nodes.

use carillon_core::model::{ConnId, NodeId, Place};
use std::collections::BTreeMap;

/// The connections whose sessions are elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Relays(BTreeMap<ConnId, Relay>);

/// A connection whose session is elsewhere.
#[derive(Debug)]
pub(crate) struct Relay {
    /// Where its session is.
    pub(crate) home: Place,
    /// Bytes that were sent there and of which it is not known that they were handled.
    pub(crate) on_the_way: u64,
}

carillon_core::form! { struct Relay { home, on_the_way } }

impl Relays {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the session of a connection is elsewhere.
    pub(crate) fn has(&self, id: ConnId) -> bool {
        !self.0.is_empty() && self.0.contains_key(&id)
    }

    /// The session of a connection is elsewhere from now on.
    pub(crate) fn add(&mut self, id: ConnId, home: Place) {
        self.put(id, Relay { home, on_the_way: 0 });
    }

    /// The same, as it was left.
    pub(crate) fn put(&mut self, id: ConnId, relay: Relay) {
        self.0.insert(id, relay);
    }

    /// Takes all out.
    pub(crate) fn take_all(&mut self) -> Vec<(ConnId, Relay)> {
        std::mem::take(&mut self.0).into_iter().collect()
    }

    /// What is known of such a connection.
    pub(crate) fn get_mut(&mut self, id: ConnId) -> Option<&mut Relay> {
        self.0.get_mut(&id)
    }

    /// The connection is gone.
    pub(crate) fn remove(&mut self, id: ConnId) {
        self.0.remove(&id);
    }

    /// Those whose sessions are on a node.
    pub(crate) fn to(&self, node: NodeId) -> Vec<ConnId> {
        self.0.iter().filter(|(_, relay)| relay.home.node == node).map(|(id, _)| *id).collect()
    }
}
