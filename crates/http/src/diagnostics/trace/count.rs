//! How many traces of accounts are under way, and what they told.

use crate::app::App;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Traces that a node has at most: as many as each of its shards.
pub(crate) const TRACES_MAX: usize = carillon_core::tap::TAPS_MAX;

/// The traces under way, and what they told.
pub(crate) struct Traces {
    room: Arc<Semaphore>,
    /// Lines that were told.
    pub(crate) lines: AtomicU64,
    /// Entries that were not told, because there was no room for them.
    pub(crate) missed: AtomicU64,
}

impl App {
    /// Traces of accounts.
    pub(crate) fn traces(&self) -> &Traces {
        self.part()
    }
}

impl Default for Traces {
    fn default() -> Traces {
        let room = Arc::new(Semaphore::new(TRACES_MAX));
        Traces { room, lines: AtomicU64::new(0), missed: AtomicU64::new(0) }
    }
}

impl Traces {
    /// Room for one more, if there is any.
    pub(crate) fn begin(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.room).try_acquire_owned().ok()
    }

    /// How many there are.
    pub(crate) fn open(&self) -> usize {
        TRACES_MAX - self.room.available_permits()
    }
}
