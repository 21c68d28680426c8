//! What is known of a session.

use super::queue::{Entry, Queue};
use crate::shard::{Recipients, Tracked};
use carillon_wire::stanza::Stanza;
use std::sync::Arc;

/// The counts of a session whose client enabled stream management, and what it has not acknowledged.
#[derive(Debug, Default)]
pub struct State {
    /// Stanzas received since it was enabled, modulo 2^32.
    pub(super) received: u32,
    /// What was sent since and is not acknowledged.
    pub(super) queue: Queue<Sent>,
}

/// A stanza sent and not yet acknowledged.
#[derive(Debug)]
pub(super) enum Sent {
    /// It may be lost.
    Anything,
    /// It is routed again when the connection ends, unless another session of the account has it.
    Chat(Box<Stanza>, Option<Arc<Recipients>>),
    /// A feature is told when it is acknowledged.
    Tracked(Tracked, u128),
}

impl Entry for Sent {
    fn bytes(&self) -> usize {
        match self {
            Sent::Chat(stanza, _) => stanza.payload.bytes().len(),
            Sent::Anything | Sent::Tracked(..) => 0,
        }
    }

    fn is_awaited(&self) -> bool {
        !matches!(self, Sent::Anything)
    }
}
