//! The event log: what the shards' journals hold becomes lines in files, and no shard ever waits for it.
//!
//! ```text
//!  shard: journal ─► producer ─┐                     ┌─ spill: segments ─┐
//!  shard: journal ─► producer ─┴─► intake (thread) ──┴──── or memory ────┴─► writer (thread) ─► file
//!                                                         put away: rotation (thread), zstd, keep ◄─┘
//! ```
//!
//! A producer hands the journal's buffer over whole, when it is large or a tenth of a second old, and gets an empty one back.
//! What is on its way in memory is bounded by `memory_bytes`. When half of that waits for the writer, the intake writes to
//! segments on disk instead, one a shard, and the writer reads each where it belongs: the order of a shard is kept. When
//! the disk takes neither, the intake waits, the rest of the memory fills, and only then a producer drops: counted, said in
//! the log, and seen as a gap in the numbers of the lines.

mod figures;
mod file;
mod intake;
mod line;
pub mod measure;
mod producer;
mod recover;
mod rotation;
mod spill;
#[cfg(test)]
mod tests;
mod verify;
mod writer;

pub use carillon_core::event::{Kind, Kinds};
pub use figures::EventLogStatus;
pub(crate) use figures::LogFigures;
pub use line::{Format, Head, head, to_json};
pub(crate) use producer::Producer;
pub use rotation::{current, files, open};
pub use verify::{Finding, Verifier};

use crate::clock::unix;
use file::LogFile;
use intake::Intake;
use rotation::Rotation;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use writer::Writer;

/// How the event log is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The folder of its files; made when it is missing.
    pub folder: PathBuf,
    /// How a line is printed.
    pub format: Format,
    /// What is kept.
    pub kinds: Kinds,
    /// A file of so many bytes is put away.
    pub rotate_bytes: u64,
    /// A file so old is put away, milliseconds; 0 for any age.
    pub rotate_ms: u64,
    /// Whether files are compressed when they are put away.
    pub compress: bool,
    /// How many are kept of those put away; 0 for all.
    pub keep_files: u32,
    /// How long they are kept, milliseconds; 0 for ever.
    pub keep_ms: u64,
    /// Bytes on their way in memory.
    pub memory_bytes: usize,
}

/// Why the event log cannot be kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep the event log in {}: {source}; set `event_log.path` to a folder that can be written", folder.display())]
pub struct EventLogError {
    folder: PathBuf,
    source: io::Error,
}

/// Entries of a shard on their way, encoded.
pub(crate) struct Batch {
    shard: u16,
    bytes: Vec<u8>,
}

impl Batch {
    /// The bytes of memory that it is charged for: never fewer than those of a usual batch, so that the bound on bytes bounds
    /// the number of batches, too.
    fn charge(&self) -> usize {
        self.bytes.capacity().max(BATCH_BYTES)
    }
}

/// The threads of the event log. Dropping it waits until all that was handed over is written.
pub(crate) struct EventLog {
    figures: Arc<LogFigures>,
    threads: Vec<JoinHandle<()>>,
}

/// Ways for emptied buffers back to the producers.
#[derive(Clone)]
pub(crate) struct BufferReturns(Arc<[SyncSender<Vec<u8>>]>);

impl EventLog {
    /// Recovers what a crash left, opens the file, starts the threads; a producer for each shard.
    pub(crate) fn start(options: &Options, shards: u16) -> Result<(EventLog, Vec<Producer>), EventLogError> {
        let error = |source| EventLogError { folder: options.folder.clone(), source };
        start(options, shards).map_err(error)
    }

    /// What it did so far.
    pub(crate) fn figures(&self) -> Arc<LogFigures> {
        Arc::clone(&self.figures)
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        // The producers are gone by now, with their shards, and each thread ends when those before it have.
        self.figures.close();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the event log had panicked");
            }
        }
    }
}

fn start(options: &Options, shards: u16) -> io::Result<(EventLog, Vec<Producer>)> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&options.folder)?;
    let figures = Arc::new(LogFigures::default());
    let left = recover::find_left_segments(&options.folder)?;
    let file = LogFile::open(&options.folder, options.format)?;
    let rotation = Rotation::new(options, Arc::clone(&figures));
    // As many as the memory has room for: a batch is charged for `BATCH_BYTES` at least.
    let batches_max = options.memory_bytes / BATCH_BYTES;
    let (batches, intake_inbox) = sync_channel(batches_max.max(1));
    let (writer_inputs, writer_inbox) = sync_channel(batches_max + SEGMENTS_QUEUED_MAX);
    // Another word while one waits says nothing new.
    let (rotated, rotation_inbox) = sync_channel(1);
    let (producers, returns) = producers(options, shards, &batches, &figures);
    let intake = Intake::new(options, shards, unix(), writer_inputs, returns.clone(), Arc::clone(&figures));
    let writer = Writer::new(options, file, rotated, returns, Arc::clone(&figures));
    let threads = vec![
        Builder::new().name("events-intake".to_owned()).spawn(move || intake.run(&intake_inbox))?,
        Builder::new().name("events-writer".to_owned()).spawn(move || writer.run(left, &writer_inbox))?,
        Builder::new().name("events-rotation".to_owned()).spawn(move || rotation.run(&rotation_inbox))?,
    ];
    Ok((EventLog { figures, threads }, producers))
}

fn producers(
    options: &Options,
    shards: u16,
    batches: &SyncSender<Batch>,
    figures: &Arc<LogFigures>,
) -> (Vec<Producer>, BufferReturns) {
    let (backs, empties): (Vec<_>, Vec<Receiver<_>>) =
        (0..shards).map(|_| sync_channel(BUFFERS_KEPT)).unzip();
    let producer =
        |(shard, empty)| Producer::new(shard, options, batches.clone(), empty, Arc::clone(figures));
    (
        empties.into_iter().enumerate().map(|(n, empty)| (n as u16, empty)).map(producer).collect(),
        BufferReturns(backs.into()),
    )
}

impl BufferReturns {
    /// Gives an emptied buffer back, unless a burst made it large or the producer has enough.
    pub(crate) fn give(&self, mut batch: Batch) {
        if batch.bytes.capacity() <= BUFFER_BYTES_MAX
            && let Some(producer) = self.0.get(usize::from(batch.shard))
        {
            batch.bytes.clear();
            // Full, or the shard is gone: the buffer goes, too.
            let _ = producer.try_send(batch.bytes);
        }
    }
}

/// A file's folder made durable: after a rename.
fn sync_folder(folder: &Path) -> io::Result<()> {
    std::fs::File::open(folder)?.sync_all()
}

/// What is handed over at once, about: enough that a hand-over costs nothing per entry.
const BATCH_BYTES: usize = 64 * 1024;
/// Complete segments that wait for the writer; while there are so many, the last of each shard grows.
const SEGMENTS_QUEUED_MAX: usize = 256;
/// Empty buffers that wait for a producer.
const BUFFERS_KEPT: usize = 4;
/// The largest buffer that is used again.
const BUFFER_BYTES_MAX: usize = 1 << 20;
