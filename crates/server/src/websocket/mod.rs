//! XMPP over WebSocket (RFC 7395): the HTTP request that asks for it, and its frames.
//!
//! | file | what is in it |
//! |---|---|
//! | `request` | one HTTP request head, judged: a WebSocket, the host's metadata, or a refusal |
//! | `response` | what is answered |
//! | `upgrade` | a connection while the head is incomplete |
//!
//! The frames themselves are `carillon_wire::frame::websocket`'s; the shard reads them (`event_loop::read`).

mod request;
mod response;
#[cfg(test)]
mod tests;
mod upgrade;

pub(crate) use upgrade::{Upgrade, UpgradeStep};

use crate::network::Network;
use std::net::IpAddr;

/// What a WebSocket listener answers for.
#[derive(Clone, Debug)]
pub(crate) struct WebSocketEndpoint {
    /// The path of the WebSocket.
    pub(crate) path: Box<str>,
    /// Whether the listener speaks TLS itself.
    pub(crate) secure: bool,
    /// Proxies whose word on the client's address is taken.
    pub(crate) proxies: Box<[Network]>,
}

impl WebSocketEndpoint {
    /// Whether this is a proxy whose word is taken.
    fn trusts(&self, address: IpAddr) -> bool {
        self.proxies.iter().any(|network| network.contains(address))
    }
}
