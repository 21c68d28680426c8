//! The handle to a running node: what HTTP, the command line and the demo speak to.

use crate::metrics::Status;
use carillon_core::command::{Command, Event, Outcome};
use carillon_core::model::{DomainId, Domains};
use carillon_core::ports::{Answer, Ask, Reply};
use std::sync::Arc;

/// A running node. Cheap to clone; every clone is the same node.
#[derive(Clone)]
pub struct Node {
    _inner: Arc<()>,
}

impl Node {
    /// Has a command carried out by the home shard of what it is about (or, for [`Command::Sessions`] and domain-wide
    /// kicks, by every shard, with the outcomes joined). `reply` is called once, from a shard's thread: it must not block.
    pub fn command(&self, _command: Command, _reply: Reply<Outcome>) {
        unimplemented!()
    }

    /// Asks the store directly: for what needs no decision of the core, such as listing accounts.
    pub fn ask(&self, _ask: Ask, _reply: Reply<Answer>) {
        unimplemented!()
    }

    /// The node's domains as they are now.
    pub fn domains(&self) -> Arc<Domains> {
        unimplemented!()
    }

    /// Reads the domains from the store again and gives them to every shard; `reply` when all have them. Sessions of a
    /// domain that is gone are closed with `<host-gone/>`.
    pub fn reload_domains(&self, _reply: Reply<()>) {
        unimplemented!()
    }

    /// The node's figures.
    pub fn status(&self) -> Status {
        unimplemented!()
    }

    /// Calls `sink` for each event of `domain` (or of all) until it returns false. `sink` must not block.
    pub fn watch(&self, _domain: Option<DomainId>, _sink: Box<dyn Fn(&Event) -> bool + Send + Sync>) {
        unimplemented!()
    }

    /// Whether the node takes sessions: false before it is ready and while it drains.
    pub fn is_ready(&self) -> bool {
        unimplemented!()
    }
}
