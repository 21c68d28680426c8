//! A shard's producer of the event log. It never waits, and does nothing per entry.

use super::batch::{BATCH_BYTES, Batch};
use super::figures::{LogFigures, add};
use super::options::Options;
use carillon_core::event::{Entry, Journal, Kinds, records};
use carillon_core::model::{Mono, UnixMs};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};

/// A shard's producer of the event log.
pub(crate) struct Producer {
    shard: u16,
    kinds: Kinds,
    memory_bytes: usize,
    batches: SyncSender<Batch>,
    empty: Receiver<Vec<u8>>,
    figures: Arc<LogFigures>,
    /// When the journal is handed over at the latest.
    due: Option<Mono>,
}

impl Producer {
    pub(super) fn new(
        shard: u16,
        options: &Options,
        batches: SyncSender<Batch>,
        empty: Receiver<Vec<u8>>,
        figures: Arc<LogFigures>,
    ) -> Producer {
        let Options { kinds, memory_bytes, .. } = *options;
        Producer { shard, kinds, memory_bytes, batches, empty, figures, due: None }
    }

    /// Notes the start of the shard, and which kinds are kept.
    pub(crate) fn begin(&self, journal: &mut Journal, at: UnixMs) {
        journal.keep(self.kinds);
        journal.push(at, &Entry::Start);
    }

    /// Hands the journal over at the end of a turn, if it is large or old enough.
    pub(crate) fn turn_ended(&mut self, journal: &mut Journal, now: Mono) {
        let len = journal.bytes().len();
        if len == 0 {
            return;
        }
        let due = *self.due.get_or_insert(now.plus(AGE_MS));
        if len >= BATCH_BYTES || due <= now {
            self.hand_over(journal);
        }
    }

    /// When a turn is needed even if nothing happens.
    pub(crate) fn due(&self) -> Option<Mono> {
        self.due
    }

    /// Notes the end of the shard, and hands the journal over.
    pub(crate) fn end(mut self, journal: &mut Journal, at: UnixMs) {
        journal.push(at, &Entry::Stop);
        self.hand_over(journal);
    }

    fn hand_over(&mut self, journal: &mut Journal) {
        self.due = None;
        let full = journal.take(self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BUFFER_BYTES)));
        let batch = Batch { shard: self.shard, bytes: full };
        let charge = batch.charge();
        if !self.figures.hold(charge, self.memory_bytes) {
            return self.lose(journal, batch.bytes);
        }
        // Whatever the memory has room for, the channel has; and the intake dies of a fault only, which was logged.
        if let Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) =
            self.batches.try_send(batch)
        {
            self.figures.release(charge);
            self.lose(journal, batch.bytes);
        }
    }

    /// Drops entries, when the disk takes nothing and the memory is full. Their numbers are missing in the log.
    fn lose(&self, journal: &mut Journal, mut full: Vec<u8>) {
        add(&self.figures.dropped, records(&full).count() as u64);
        full.clear();
        journal.take(full);
    }
}

/// The capacity of a buffer: a usual batch, and what a turn may add to it.
const BUFFER_BYTES: usize = BATCH_BYTES + BATCH_BYTES / 8;
/// How old an entry may be when it is handed over, in milliseconds.
const AGE_MS: u64 = 100;
