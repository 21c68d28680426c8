//! What is to be known of what a client was sent.

use crate::model::ConnId;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What is to be known of something written to the client.
#[derive(Clone, Debug)]
pub enum Track {
    /// Nothing: it may be lost with the connection (presence, IQ, headlines).
    Nothing,
    /// A chat message: it goes on when the connection ends before it was acknowledged. The sessions that were given it, when
    /// they are several.
    Chat(Option<Arc<Recipients>>),
    /// Something of a feature's, which is told when the client acknowledges it.
    Of(Tracked, u128),
}

/// A kind of what a feature tracks, by a name of four letters that no other has; each has numbers of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracked(pub [u8; 4]);

/// The sessions that were given one message.
#[derive(Debug)]
pub struct Recipients {
    /// Their connections.
    pub conns: Box<[ConnId]>,
    /// Whether it went on already, because none of them acknowledged it.
    pub has_gone_on: AtomicBool,
}
