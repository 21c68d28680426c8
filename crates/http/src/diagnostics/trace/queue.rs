//! What was noted and not told yet: bounded in bytes, and nobody waits for room.

use carillon_core::tap::Entry;
use carillon_server::Tapped;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::sync::mpsc;

/// Bytes that wait for a reader at most.
const QUEUE_BYTES_MAX: usize = 1 << 20;
/// Entries that wait for a reader at most.
const QUEUE_MAX: usize = 4096;

/// What shards give to.
#[derive(Clone)]
pub(super) struct Intake {
    entries: mpsc::Sender<Box<Entry>>,
    counts: Arc<Counts>,
}

/// What a reader takes from.
pub(super) struct Outlet {
    entries: mpsc::Receiver<Box<Entry>>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    bytes: AtomicUsize,
    missed: AtomicU64,
}

/// A queue: where it is filled, and where it is emptied.
pub(super) fn queue() -> (Intake, Outlet) {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    let counts = Arc::new(Counts::default());
    (Intake { entries: sender, counts: Arc::clone(&counts) }, Outlet { entries: receiver, counts })
}

impl Intake {
    /// Adds an entry, or counts it. Whether anybody reads.
    pub(super) fn take(&self, tapped: Tapped) -> bool {
        let entry = match tapped {
            Tapped::Missed(count) => return self.miss(count),
            Tapped::Entry(entry) => entry,
        };
        let bytes = entry.memory_bytes();
        if self.counts.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > QUEUE_BYTES_MAX {
            self.counts.bytes.fetch_sub(bytes, Ordering::Relaxed);
            return self.miss(1);
        }
        if self.entries.try_send(entry).is_err() {
            self.counts.bytes.fetch_sub(bytes, Ordering::Relaxed);
            return self.miss(1);
        }
        true
    }

    fn miss(&self, count: u64) -> bool {
        self.counts.missed.fetch_add(count, Ordering::Relaxed);
        !self.entries.is_closed()
    }
}

impl Outlet {
    /// The next entry; none when nobody adds any more.
    pub(super) async fn next(&mut self) -> Option<Box<Entry>> {
        let entry = self.entries.recv().await?;
        self.counts.bytes.fetch_sub(entry.memory_bytes(), Ordering::Relaxed);
        Some(entry)
    }

    /// How many entries were not added since this was asked last.
    pub(super) fn missed(&self) -> u64 {
        self.counts.missed.swap(0, Ordering::Relaxed)
    }
}
