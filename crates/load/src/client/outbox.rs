//! The output of a client, and its buffers.

use super::event::ClientEvent;

/// The output of a client. One outbox serves any number of clients in turn: the owner sends [`bytes`] on
/// the client's connection and takes its [`events`] before it calls the next client.
///
/// [`bytes`]: Self::bytes
/// [`events`]: Self::events
#[derive(Debug, Default)]
pub struct Outbox {
    /// Bytes for the network.
    pub bytes: Vec<u8>,
    /// What happened, in order.
    pub events: Vec<ClientEvent>,
    /// Text to be encrypted; empty between calls.
    pub(super) text: Vec<u8>,
    /// A buffer for received text; its content is meaningless between calls.
    pub(super) inbound: Vec<u8>,
}
