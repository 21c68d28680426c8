//! What listeners there are, and how they are bound.

use std::net::IpAddr;

/// The protocol of a port.
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

impl Service {
    /// Whether an HTTP request comes first, inside TLS if there is any.
    pub(crate) fn begins_with_http(self) -> bool {
        matches!(self, Service::WebSocket | Service::WebSocketTls)
    }
}

/// A port, and what is spoken on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PortConfig {
    pub(crate) service: Service,
    /// 0 lets the system choose.
    pub(crate) port: u16,
    /// Connections from a trusted proxy begin with a PROXY header.
    pub(crate) is_proxied: bool,
}

/// How ports are bound.
#[derive(Clone, Debug)]
pub(crate) struct ListenConfig<'a> {
    pub(crate) addresses: &'a [IpAddr],
    pub(crate) ports: Vec<PortConfig>,
    pub(crate) shards: usize,
    pub(crate) backlog: u32,
    pub(crate) reuse_port: bool,
    pub(crate) nodelay: bool,
}
