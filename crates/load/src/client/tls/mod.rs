//! TLS for the client: whom to trust, and a connection as a layer that bytes go through.

mod exporter;
mod layer;
mod tickets;
mod trust;

pub(crate) use layer::{PeerState, TlsLayer};
pub use trust::{TlsSetupError, Trust, config, quic_config};
