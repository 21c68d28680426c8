//! Listeners: one of each kind a shard, so that the kernel spreads the connections and nobody hands them out.

mod accept;
mod admission;
mod bind;
mod descriptors;
mod refused;
#[cfg(test)]
mod tests;

pub use admission::Bounds;
pub use bind::{BindError, Ports};

pub(crate) use accept::{Accepted, Listener, SpareDescriptor};
pub(crate) use admission::{Admission, Permit, Refusal};
pub(crate) use bind::bind;
pub(crate) use descriptors::DescriptorLimit;
pub(crate) use refused::RefusedConns;

use std::net::IpAddr;

/// What is spoken on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// XMPP, secured by STARTTLS.
    StartTls,
    /// XMPP inside TLS (XEP-0368).
    DirectTls,
    /// XMPP over WebSocket (RFC 7395), in the clear: a proxy ends TLS.
    WebSocket,
    /// XMPP over WebSocket over TLS.
    WebSocketTls,
    /// The light protocol, in the clear.
    Light,
    /// The light protocol inside TLS.
    LightTls,
}

/// How ports are bound.
#[derive(Clone, Debug)]
pub(crate) struct ListenConfig<'a> {
    pub(crate) addresses: &'a [IpAddr],
    pub(crate) services: Vec<(Service, u16)>,
    pub(crate) shards: usize,
    pub(crate) backlog: i32,
    pub(crate) reuse_port: bool,
    pub(crate) nodelay: bool,
}
