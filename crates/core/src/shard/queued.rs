//! What clients were sent and have not acknowledged, in all sessions of a shard together: one sum, and the queues by their size.

use crate::connection::BySize;
use crate::model::{Map, SessionId};
use std::sync::Arc;

/// What is kept for a session until its client has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SessionQueue {
    /// Stanzas that stream management counts.
    Managed(SessionId),
    /// Chat messages to a client without stream management, until its TCP has acknowledged them.
    Unmanaged(SessionId),
}

/// The unacknowledged stanzas of a shard.
#[derive(Debug, Default)]
pub struct Queued {
    /// Bytes of all queues. What several of them share counts once.
    bytes: usize,
    queues: BySize<SessionQueue>,
    /// What several queues share, by its address, and in how many queues it is.
    shared: Map<usize, u32>,
}

impl Queued {
    /// A queue has so many bytes more that are its own.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// They are gone.
    pub(crate) fn remove(&mut self, bytes: usize) {
        self.bytes -= bytes;
    }

    /// A queue has something of so many bytes, which it shares with others.
    pub(crate) fn add_shared<T>(&mut self, shared: &Arc<T>, bytes: usize) {
        let queues = self.shared.entry(Arc::as_ptr(shared).addr()).or_default();
        *queues += 1;
        if *queues == 1 {
            self.bytes += bytes;
        }
    }

    /// A queue has it no longer.
    pub(crate) fn remove_shared<T>(&mut self, shared: &Arc<T>, bytes: usize) {
        let address = Arc::as_ptr(shared).addr();
        let Some(queues) = self.shared.get_mut(&address) else { return };
        *queues -= 1;
        if *queues == 0 {
            self.shared.remove(&address);
            self.bytes -= bytes;
            if self.shared.is_empty() && self.shared.capacity() > KEPT {
                self.shared = Map::default();
            }
        }
    }

    /// A queue went from one size to another, in bytes.
    pub(crate) fn resize(&mut self, queue: SessionQueue, before: usize, after: usize) {
        self.queues.resize(queue, before, after);
    }

    /// A session that has to end so that all queues have at most so many bytes, the larger ones first. It is not named twice for a queue.
    pub(crate) fn too_large(&mut self, bytes_max: usize) -> Option<SessionId> {
        let (SessionQueue::Managed(session) | SessionQueue::Unmanaged(session)) =
            self.queues.too_large(self.bytes, bytes_max)?;
        Some(session)
    }
}

/// Capacity that an empty map keeps.
const KEPT: usize = 1024;
