//! Sockets, TLS and shards.

pub mod metrics;
pub mod node;
pub mod tls;
