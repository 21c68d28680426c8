//! What is tracked of a stanza until the client acknowledges it.

use crate::model::ConnId;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What is tracked of something written to the client.
#[derive(Clone, Debug)]
pub enum Track {
    /// Nothing: it may be lost with the connection (presence, IQ, headline).
    Nothing,
    /// A chat message: it is routed again when the connection ends before it was acknowledged. The recipients are known where
    /// there are several sessions.
    Chat(Option<Arc<Recipients>>),
    /// A kind and a number of a feature, which is told when the client acknowledges it.
    Of(Tracked, u128),
}

/// A kind of thing that a feature tracks: a unique name of four letters. Numbers are unique per kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracked(pub [u8; 4]);

/// The sessions that were given the same message.
#[derive(Debug)]
pub struct Recipients {
    /// Their connections.
    pub conns: Box<[ConnId]>,
    /// Whether the message was routed again already, because none of them acknowledged it.
    pub has_gone_on: AtomicBool,
}
