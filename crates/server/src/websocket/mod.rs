//! XMPP over WebSocket (RFC 7395): the HTTP request that opens it.
//!
//! | file | what is in it |
//! |---|---|
//! | `host_meta` | where clients learn of the port |
//! | `request` | one HTTP request head, judged: a WebSocket, the host's metadata, or a refusal |
//! | `response` | what is answered |
//! | `upgrade` | a connection while the head is incomplete |
//!
//! `carillon_wire::frame::websocket` decodes the frames, and `event_loop::read` drives it.

pub mod host_meta;
mod request;
mod response;
#[cfg(test)]
mod tests;
mod upgrade;

pub(crate) use upgrade::{Upgrade, UpgradeStep};

use crate::listen::proxies::TrustedProxies;

/// What a WebSocket listener needs to know to answer requests.
#[derive(Clone, Debug)]
pub(crate) struct WebSocketEndpoint {
    /// The path of the WebSocket.
    pub(crate) path: Box<str>,
    /// Whether the listener speaks TLS itself.
    pub(crate) secure: bool,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub(crate) proxies: TrustedProxies,
    /// Whether players may connect, too.
    pub(crate) takes_players: bool,
}
