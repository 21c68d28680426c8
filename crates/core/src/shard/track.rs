//! What is tracked of a stanza until the client acknowledges it.

use crate::model::{SessionId, Settlement};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What is tracked of something written to the client.
#[derive(Clone, Debug)]
pub enum Track {
    /// Nothing: it may be lost with the connection (presence, IQ, headline).
    Nothing,
    /// A chat message: it is routed again when the connection ends before it was acknowledged.
    Chat(Chat),
    /// A kind and a number of a feature, which is told when the client acknowledges it.
    Of(Tracked, u128),
}

/// What is known of a chat message that a session is given.
#[derive(Clone, Debug, Default)]
pub struct Chat {
    /// The sessions that are given it, where there are several.
    pub recipients: Option<Arc<Recipients>>,
    /// Its sender, which waits until it is acknowledged.
    pub settlement: Option<Settlement>,
}

/// A kind of thing that a feature tracks: a unique name of four letters. Numbers are unique per kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracked(pub [u8; 4]);

/// The sessions that were given the same message.
#[derive(Debug)]
pub struct Recipients {
    /// Their names.
    pub sessions: Box<[SessionId]>,
    /// Whether the message was routed again already, because none of them acknowledged it.
    pub has_gone_on: AtomicBool,
}
