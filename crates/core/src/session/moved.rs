//! A session between two processes: with what the shard keeps for it beside the others.

use super::BoundSession;
use crate::model::{Mono, PubsubEvent};
use crate::shard::Wake;
use std::sync::Arc;

/// A session on its way to another process.
#[derive(Debug)]
pub(crate) struct Moved {
    pub(crate) session: Box<BoundSession>,
    /// Its timers, in their order.
    pub(crate) timers: Vec<(Mono, Wake)>,
    /// The last items of the topics it follows: it may still have to be given one of them. All who follow a topic share it.
    pub(crate) last_items: Vec<Arc<PubsubEvent>>,
}

crate::form! { struct Moved { session, timers, last_items } }
