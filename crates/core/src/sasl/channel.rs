//! What protects a stream, and what a login can be bound to (RFC 5929, RFC 9266).

use std::sync::Arc;

/// What protects the stream.
#[derive(Debug)]
pub enum Protection {
    /// Nothing yet: STARTTLS must come first.
    None,
    /// TLS, and what it offers for channel binding.
    Tls(ChannelBinding),
    /// A proxy in front of this server, by configuration.
    Trusted,
}

crate::form! { enum Protection { 0 = None, 1 = Tls(binding), 2 = Trusted } }

impl Protection {
    /// The data for channel binding, if there are any.
    pub fn binding(&self) -> &ChannelBinding {
        const NONE: &ChannelBinding = &ChannelBinding { exporter: None, end_point: None };
        match self {
            Protection::Tls(binding) => binding,
            Protection::None | Protection::Trusted => NONE,
        }
    }
}

/// What a TLS handshake yields that SASL channel binding needs (RFC 5929, RFC 9266).
#[derive(Clone, Debug, Default)]
pub struct ChannelBinding {
    /// `tls-exporter`: TLS 1.3 only.
    pub exporter: Option<[u8; 32]>,
    /// `tls-server-end-point`: the certificate's hash, shared by all connections.
    pub end_point: Option<Arc<[u8]>>,
}

crate::form! { struct ChannelBinding { exporter, end_point } }
