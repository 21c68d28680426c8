//! The event log: entries of the shards' journals become lines in files, and no shard ever waits for it.
//!
//! ```text
//!  shard: journal ─► producer ─┐                     ┌─ spill: segments ─┐
//!  shard: journal ─► producer ─┴─► intake (thread) ──┴──── or memory ────┴─► writer (thread) ─► file
//!                                                         put away: rotation (thread), zstd, keep ◄─┘
//! ```
//!
//! A producer hands the journal's buffer over as a batch, when it is large or a tenth of a second old, and gets an empty
//! one back. `memory_bytes` bounds the memory of all batches. When half of it waits for the writer, the intake appends to
//! segments on disk instead, one per shard, and the writer reads them in their turn: the order of each shard is kept.
//! When the disk does not take them either, the intake waits, the rest of the memory fills, and only then producers drop
//! entries: these are counted and logged, and leave a gap in the numbers of the lines.

mod batch;
mod figures;
mod file;
mod intake;
mod line;
pub mod measure;
mod options;
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
pub use options::{EventLogError, Options};
pub(crate) use producer::Producer;
pub use rotation::{current, files, open};
pub use verify::{Finding, Verifier};

use crate::clock::unix;
use batch::{BATCH_BYTES, Batch, BufferReturns, SEGMENTS_QUEUED_MAX};
use file::LogFile;
use intake::Intake;
use rotation::Rotation;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use writer::Writer;

/// The threads of the event log. Dropping it waits until all that was handed over is written.
pub(crate) struct EventLog {
    figures: Arc<LogFigures>,
    threads: Vec<JoinHandle<()>>,
}

impl EventLog {
    /// Recovers what a crash left, opens the file and starts the threads. Returns a producer for each shard.
    pub(crate) fn start(options: &Options, shards: u16) -> Result<(EventLog, Vec<Producer>), EventLogError> {
        let error = |source| EventLogError { folder: options.folder.clone(), source };
        start(options, shards).map_err(error)
    }

    /// Its counters.
    pub(crate) fn figures(&self) -> Arc<LogFigures> {
        Arc::clone(&self.figures)
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        // The producers are gone by now, with their shards, and each thread ends after the one before it.
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
    // A second message while one waits would say nothing new.
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

/// Empty buffers that are kept for a producer.
const BUFFERS_KEPT: usize = 4;
