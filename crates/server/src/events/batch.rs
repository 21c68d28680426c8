//! What travels through the event log: batches of encoded entries, and their empty buffers back.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// Encoded entries of one shard.
pub(super) struct Batch {
    pub(super) shard: u16,
    pub(super) bytes: Vec<u8>,
}

impl Batch {
    /// The bytes of memory that it is charged for: never fewer than those of a usual batch, so that the bound on bytes bounds
    /// the number of batches, too.
    pub(super) fn charge(&self) -> usize {
        self.bytes.capacity().max(BATCH_BYTES)
    }
}

/// Channels that return empty buffers to the producers.
#[derive(Clone)]
pub(super) struct BufferReturns(pub(super) Arc<[SyncSender<Vec<u8>>]>);

impl BufferReturns {
    /// Returns an empty buffer to its producer, unless a burst made it large or the producer has enough.
    pub(super) fn give(&self, mut batch: Batch) {
        if batch.bytes.capacity() <= BUFFER_BYTES_MAX
            && let Some(producer) = self.0.get(usize::from(batch.shard))
        {
            batch.bytes.clear();
            // If the channel is full or the shard is gone, the buffer is freed.
            let _ = producer.try_send(batch.bytes);
        }
    }
}

/// What is handed over at once, about: enough that a hand-over costs nothing per entry.
pub(super) const BATCH_BYTES: usize = 64 * 1024;
/// Complete segments that wait for the writer; while there are so many, the last of each shard grows.
pub(super) const SEGMENTS_QUEUED_MAX: usize = 256;
/// The largest buffer that is reused, in bytes.
const BUFFER_BYTES_MAX: usize = 1 << 20;
