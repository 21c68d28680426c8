//! A node among others. The core names shards of any node; what it sends to one of another node becomes a record on the bus, and comes
//! out there as an item of a shard's inbox.
//!
//! ```text
//!  core ──Effect::Post──► Record ──bus──► intake ──► inbox ──Input::Message──► core
//!  client ──► conn ─Effect::Move─► relay ═══bus═══ carried ──Input::Bytes──► its session on the other node
//! ```
//!
//! A client may connect to any node. Where its account's home is another, the connection stays, with its TLS, and its session is made at
//! the home: `relays` are the one end of that, `carried` the other. What is done with them is in `far`.
//!
//! For operators: `view` is what a node knows of the others, `request` what one asks of another.

mod carried;
mod record;
mod relays;
mod request;
mod unsettled;
mod view;

pub(crate) use carried::{Carried, Far, Flow};
pub(crate) use record::{Edge, EdgeInput, EdgeOutput, Record};
pub(crate) use relays::{Relay, Relays};
pub(crate) use request::Questions;
pub use request::{DrainReport, NodeReport, NodeRequest};
pub(crate) use unsettled::{LeftUnsettled, Unsettled};
pub(crate) use view::owners;
pub use view::{CellHands, CellView, MemberState, MemberView, Standing};

use crate::metrics::IoCounters;
use carillon_core::form::encode;
use carillon_core::model::{Epoch, Mono, NodeId, ShardId};
use carillon_core::ports::bus::Hears;
use carillon_core::ports::{Bus, LogHears, SessionLog, Subject};
use std::sync::Arc;

/// The cell that a node joins.
pub struct Cell {
    /// The node's own number: that of its epoch.
    pub node: NodeId,
    /// Its name, which outlives its processes.
    pub name: Box<str>,
    /// The other nodes that have homes.
    pub others: Vec<NodeId>,
    /// Those that leave: they keep no partition, and still have homes of accounts.
    pub leaving: Vec<NodeId>,
    /// Whether the others have the homes of this node: the process before it gave them away, for as long as it handed the node over.
    pub yields: bool,
    /// Is told what other nodes say of themselves.
    pub told: Tells,
    /// Opens the bus.
    pub bus: OpenBus,
    /// Opens the log of sessions, if there is one.
    pub log: Option<OpenLog>,
}

/// What a node says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// It leaves: homes are no longer there.
    Leaves,
    /// It knows that this node has homes.
    Knows,
    /// It has homes again.
    Returns,
    /// Its sessions are written down, or not.
    Logs(bool),
}

/// Who is told what a node says of itself. It must not block.
pub type Tells = Box<dyn Fn(NodeId, Said) + Send + Sync>;

/// Opens the bus of a cell, which gives what it hears to this.
pub type OpenBus = Box<dyn FnOnce(Hears) -> Result<Arc<dyn Bus>, String> + Send>;

/// Opens the log of a node's sessions, which tells this what it hears.
pub type OpenLog = Box<dyn FnOnce(LogHears) -> Result<Arc<dyn SessionLog>, String> + Send>;

/// What a shard has for and of other nodes.
pub(crate) struct CellIo {
    pub(crate) bus: Option<Arc<dyn Bus>>,
    pub(crate) relays: Relays,
    pub(crate) carried: Carried,
    pub(crate) unsettled: Arc<Unsettled>,
}

impl CellIo {
    pub(crate) fn new(bus: Option<Arc<dyn Bus>>, unsettled: Arc<Unsettled>) -> CellIo {
        CellIo { bus, relays: Relays::default(), carried: Carried::default(), unsettled }
    }
}

impl CellIo {
    /// Notes what there is now.
    pub(crate) fn count(&self, shard: ShardId, counters: &mut IoCounters) {
        counters.relayed = self.relays.len() as u64;
        counters.carried = self.carried.len() as u64;
        (counters.unsettled, counters.unsettled_bytes) = self.unsettled.count(shard);
    }
}

/// Sends a record to another node.
pub(crate) fn post(bus: &dyn Bus, to: NodeId, record: &Record, now: Mono) {
    bus.post(Subject::Node(Epoch(u64::from(to.0))), encode(record, now.0));
}
