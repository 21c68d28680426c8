//! How QUIC is spoken here: keys that all shards share, and the bounds of a connection.

use super::cid::ShardCids;
use crate::tls::Settings;
use aws_lc_rs::{hkdf, hmac};
use carillon_core::model::ShardId;
use carillon_wire::frame::game;
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{EndpointConfig, IdleTimeout, ServerConfig, TransportConfig, VarInt};
use std::sync::Arc;
use std::time::Duration;

/// Random keys of a process: what one shard gave, another takes.
pub(crate) struct QuicKeys {
    /// Of what proves that a client has the address that it sends from (RFC 9000 §8.1).
    tokens: Arc<hkdf::Prk>,
    /// Of stateless resets (RFC 9000 §10.3).
    resets: Arc<hmac::Key>,
}

impl QuicKeys {
    /// New keys; none if the system has no randomness.
    pub(crate) fn new() -> Option<QuicKeys> {
        let (mut tokens, mut resets) = ([0; 32], [0; 32]);
        getrandom::fill(&mut tokens).and_then(|()| getrandom::fill(&mut resets)).ok()?;
        let tokens = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(&tokens);
        let resets = hmac::Key::new(hmac::HMAC_SHA256, &resets);
        Some(QuicKeys { tokens: Arc::new(tokens), resets: Arc::new(resets) })
    }

    /// How a shard's end of all connections behaves.
    pub(super) fn endpoint(&self, shard: ShardId) -> Arc<EndpointConfig> {
        let mut config = EndpointConfig::new(Arc::clone(&self.resets) as _);
        config.cid_generator(move || Box::new(ShardCids(shard)));
        Arc::new(config)
    }

    /// How connections are accepted, with these certificates.
    pub(crate) fn server(&self, tls: &Settings) -> Option<Arc<ServerConfig>> {
        let tls = match tls.quic(&[game::ALPN]) {
            Ok(tls) => QuicServerConfig::try_from(tls).ok()?,
            Err(error) => {
                tracing::error!(%error, "QUIC cannot use the certificate");
                return None;
            }
        };
        let mut config = ServerConfig::new(Arc::new(tls), Arc::clone(&self.tokens) as _);
        config.transport_config(Arc::new(transport()));
        // Packets that come before a connection is accepted, which is done, or not, at once.
        config.max_incoming(64).incoming_buffer_size(4096).incoming_buffer_size_total(64 * 4096);
        Some(Arc::new(config))
    }
}

/// The bounds of a connection, in bytes: what a client may send before it is read, and what waits for a client.
fn transport() -> TransportConfig {
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .stream_receive_window(VarInt::from_u32(STREAM_BYTES))
        .receive_window(VarInt::from_u32(STREAM_BYTES))
        .send_window(SEND_BYTES)
        .datagram_receive_buffer_size(Some(DATAGRAMS_BYTES))
        .datagram_send_buffer_size(DATAGRAMS_BYTES)
        .crypto_buffer_size(CRYPTO_BYTES)
        .max_idle_timeout(IdleTimeout::try_from(IDLE).ok())
        // Frames are short: no path needs to be searched for what longer packets it takes.
        .mtu_discovery_config(None);
    config
}

/// Of the stream, and so of the frames that it has: one of a client has 2 KiB at most.
const STREAM_BYTES: u32 = 16 * 1024;
/// Of the stream towards the client, sent and not acknowledged.
const SEND_BYTES: u64 = 64 * 1024;
/// Bytes of datagrams that wait, in each direction. The oldest are dropped.
const DATAGRAMS_BYTES: usize = 8 * 1024;
/// Bytes of the handshake that are held because earlier ones are missing. Little is needed: a client shows no certificate.
const CRYPTO_BYTES: usize = 8 * 1024;
/// A client of a match says something more often, or the match ends its connection.
const IDLE: Duration = Duration::from_secs(30);
