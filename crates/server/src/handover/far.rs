//! What a shard of a node of a cell has for and of other nodes, on its way to the next process of the node. The others know this node's
//! connections, sessions and claims by their names and go on to do so: the names stay.

use super::HandedSocket;
use crate::cell::{LeftUnsettled, Relay};
use carillon_core::form::{Form, Writer};
use carillon_core::model::ConnId;
use carillon_wire::jid::BareJid;
use std::os::fd::{AsFd, BorrowedFd};

/// What goes on but for the connections.
#[derive(Debug, Default)]
pub(crate) struct LeftFar {
    /// The generation of the last name that was given to a connection: others may still know one that is gone by its name.
    pub(crate) generation: u32,
    /// The accounts without a session that the node has claimed.
    pub(crate) held: Vec<BareJid>,
    /// Stanzas that homes on other nodes have yet to settle.
    pub(crate) unsettled: LeftUnsettled,
}

carillon_core::form! { struct LeftFar { generation, held, unsettled } }

/// A connection whose session is on another node.
#[derive(Debug)]
pub(crate) struct LeftRelay {
    pub(crate) id: ConnId,
    pub(crate) relay: Relay,
}

carillon_core::form! { struct LeftRelay { id, relay } }

/// All of it.
pub(crate) struct HandedFar {
    pub(crate) shard: u16,
    pub(crate) left: LeftFar,
    pub(crate) relays: Vec<(LeftRelay, HandedSocket)>,
}

impl HandedFar {
    /// The descriptors of its connections.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.relays.iter().map(|(_, conn)| conn.socket().as_fd()).collect()
    }

    /// Everything but the descriptors.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Writer::new(0);
        let HandedFar { shard, left, relays } = self;
        shard.write(&mut out);
        left.write(&mut out);
        out.number(relays.len() as u64);
        for (relay, HandedSocket { conn, .. }) in relays {
            relay.write(&mut out);
            conn.write_form(&mut out);
        }
        out.finish()
    }
}
