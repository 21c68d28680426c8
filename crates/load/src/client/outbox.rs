//! What a call to a client yields, and the buffers it works in.

use super::event::ClientEvent;

/// Where a client leaves what it has to say. One serves any number of clients in turn: the owner sends [`bytes`] on
/// the client's connection and takes its [`events`] before the next client has its turn.
///
/// [`bytes`]: Self::bytes
/// [`events`]: Self::events
#[derive(Debug, Default)]
pub struct Outbox {
    /// Bytes for the network.
    pub bytes: Vec<u8>,
    /// What happened, in order.
    pub events: Vec<ClientEvent>,
    /// Text that TLS has yet to protect; empty between calls.
    pub(super) text: Vec<u8>,
    /// Room for text that arrives; its content means nothing between calls.
    pub(super) inbound: Vec<u8>,
}
