//! The counters of the event log, shared by its threads and its readers.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The figures of the event log. Counters count since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventLogStatus {
    /// Lines written.
    pub lines: u64,
    /// Bytes of these lines.
    pub bytes: u64,
    /// Bytes that were spilled to disk because the writer was behind.
    pub spilled_bytes: u64,
    /// Bytes of memory in use for events that are not written yet.
    pub held_bytes: u64,
    /// Events lost because the memory was full and the disk took nothing.
    pub dropped: u64,
    /// Writes that failed and were tried again.
    pub failures: u64,
}

/// The same, as atomic counters.
#[derive(Default)]
pub(crate) struct LogFigures {
    pub(super) lines: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) spilled: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) failures: AtomicU64,
    /// Bytes of memory charged for batches between the producers and the file.
    held: AtomicUsize,
    /// Those of them that are queued for the writer.
    queued: AtomicUsize,
    /// Batches and segments that wait for the writer.
    inputs: AtomicUsize,
    closing: AtomicBool,
}

impl LogFigures {
    /// A snapshot.
    pub(crate) fn status(&self) -> EventLogStatus {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        EventLogStatus {
            lines: count(&self.lines),
            bytes: count(&self.bytes),
            spilled_bytes: count(&self.spilled),
            held_bytes: self.held.load(Ordering::Relaxed) as u64,
            dropped: count(&self.dropped),
            failures: count(&self.failures),
        }
    }

    /// Charges so many bytes, if the total stays within `max`. Whether it does.
    pub(super) fn hold(&self, bytes: usize, max: usize) -> bool {
        let fits = |held: usize| (held + bytes <= max).then_some(held + bytes);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    /// Releases bytes that were charged.
    pub(super) fn release(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// A batch of so many bytes, or a segment of none in memory, waits for the writer from now on.
    pub(super) fn queue(&self, bytes: usize) {
        self.queued.fetch_add(bytes, Ordering::Relaxed);
        self.inputs.fetch_add(1, Ordering::Relaxed);
    }

    /// The writer is done with it.
    pub(super) fn unqueue(&self, bytes: usize) {
        self.queued.fetch_sub(bytes, Ordering::Relaxed);
        self.inputs.fetch_sub(1, Ordering::Relaxed);
    }

    /// Batches and segments that wait for the writer.
    pub(super) fn inputs(&self) -> usize {
        self.inputs.load(Ordering::Relaxed)
    }

    /// Bytes that wait for the writer.
    pub(super) fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// Marks the end of the node: failed writes are no longer retried for ever.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    /// Whether the node is shutting down.
    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }
}

/// Adds to a counter.
pub(super) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}
