//! What every state of a connection has.

use super::Reader;
use crate::model::{ConnId, NodeId, Transport};
use carillon_wire::Framing;
use std::net::IpAddr;

/// What every state of a connection has.
#[derive(Debug)]
pub struct Io {
    /// The connection.
    pub conn: ConnId,
    /// The client's address.
    pub address: IpAddr,
    /// How stanzas are framed.
    pub framing: Framing,
    /// Whether this node encrypts it; none if the release that accepted it did not say.
    pub tls: Option<bool>,
    /// The node that its socket is on, where that is another.
    pub via: Option<NodeId>,
    /// What was read and not yet handled.
    pub reader: Reader,
    /// What the event log was told of the connection.
    pub noted: Noted,
}

// The connection has another name in another process, which says it. No connection that is on another node outlives its process.
crate::form! {
    struct Io {
        conn: omitted(ConnId { slot: u32::MAX, generation: 0 }), address, framing, reader, noted, tls: since(3),
        via: omitted(None),
    }
}

impl Io {
    /// What carries its stanzas.
    pub fn transport(&self) -> Transport {
        Transport { framing: self.framing, tls: self.tls }
    }
}

/// What the event log was told of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// That it began.
    Begun,
    /// That it ended, with its session.
    Ended,
}

crate::form! { enum Noted { 0 = Begun, 1 = Ended } }
