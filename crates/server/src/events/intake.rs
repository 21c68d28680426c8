//! The intake: decides for each batch whether it goes to the writer through memory or through a segment on disk, and
//! keeps the order of each shard's batches.

use super::batch::{BATCH_BYTES, Batch, BufferReturns, SEGMENTS_QUEUED_MAX};
use super::figures::{LogFigures, add};
use super::options::Options;
use super::spill::{SealedSegment, Segment};
use carillon_core::model::UnixMs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

/// An input of the writer.
pub(super) enum WriterInput {
    /// A batch in memory.
    Batch(Batch),
    /// A segment on disk.
    Segment(SealedSegment),
}

/// The intake.
pub(super) struct Intake {
    folder: PathBuf,
    run: u64,
    /// How many segments were made.
    made: u64,
    /// The incomplete segment of each shard.
    segments: Vec<Option<Segment>>,
    /// How many bytes may wait for the writer before segments are used.
    queue_bytes: usize,
    /// Batches and segments that the channel to the writer holds.
    inputs_max: usize,
    writer_inputs: SyncSender<WriterInput>,
    returns: BufferReturns,
    figures: Arc<LogFigures>,
    log_limiter: LogLimiter,
    loss_report: LossReport,
}

/// Logs how many events were lost, when they have become more.
#[derive(Default)]
struct LossReport {
    told: u64,
    log_limiter: LogLimiter,
}

/// Limits how often the same trouble is logged.
#[derive(Default)]
pub(super) struct LogLimiter(Option<Instant>);

impl LogLimiter {
    /// Whether it is time to log it again.
    pub(super) fn is_due(&mut self) -> bool {
        let due = self.0.is_none_or(|last| last.elapsed() >= LOG_INTERVAL);
        if due {
            self.0 = Some(Instant::now());
        }
        due
    }
}

impl LossReport {
    fn tell(&mut self, dropped: u64) {
        if dropped > self.told && self.log_limiter.is_due() {
            self.told = dropped;
            tracing::error!(
                dropped,
                "the event log loses events: its memory is full and the disk takes nothing; make room in its folder"
            );
        }
    }
}

impl Intake {
    pub(super) fn new(
        options: &Options,
        shards: u16,
        run: UnixMs,
        writer_inputs: SyncSender<WriterInput>,
        returns: BufferReturns,
        figures: Arc<LogFigures>,
    ) -> Intake {
        Intake {
            folder: options.folder.clone(),
            run: run.0,
            made: 0,
            segments: (0..shards).map(|_| None).collect(),
            queue_bytes: options.memory_bytes / 2,
            inputs_max: options.memory_bytes / BATCH_BYTES + SEGMENTS_QUEUED_MAX,
            writer_inputs,
            returns,
            figures,
            log_limiter: LogLimiter::default(),
            loss_report: LossReport::default(),
        }
    }

    /// Runs until the producers are gone.
    pub(super) fn run(mut self, inbox: &Receiver<Batch>) {
        loop {
            let next = match self.is_spilling() {
                true => inbox.recv_timeout(RETRY_INTERVAL),
                false => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match next {
                Ok(batch) => self.take_with_retries(batch),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.resume_memory_path();
            self.loss_report.tell(self.figures.status().dropped);
        }
        // The writer gets whatever is left.
        for shard in 0..self.segments.len() {
            self.seal(shard);
        }
    }

    /// Takes a batch, and retries for as long as it takes.
    fn take_with_retries(&mut self, mut batch: Batch) {
        while let Err((back, error)) = self.take(batch) {
            add(&self.figures.failures, 1);
            if self.figures.is_closing() {
                // No more batches come, so the bound on memory does not matter.
                self.seal(usize::from(back.shard));
                return self.forward(back);
            }
            if self.log_limiter.is_due() {
                let folder = self.folder.display();
                tracing::error!(%error, %folder, "the event log cannot spill; it tries again");
            }
            self.loss_report.tell(self.figures.status().dropped);
            batch = back;
            std::thread::sleep(RETRY_INTERVAL);
            self.resume_memory_path();
        }
    }

    /// Takes a batch: queues it for the writer, or appends it to a segment if too much waits for the writer or its shard
    /// has a segment already. Returns it if the disk does not take it.
    pub(super) fn take(&mut self, batch: Batch) -> Result<(), (Batch, io::Error)> {
        let shard = usize::from(batch.shard);
        let fits = self.has_room() && self.figures.queued() + batch.charge() <= self.queue_bytes;
        if self.segments[shard].is_some() || !fits {
            if let Err(error) = self.spill(&batch) {
                return Err((batch, error));
            }
            self.figures.release(batch.charge());
            self.returns.give(batch);
        } else {
            self.forward(batch);
        }
        Ok(())
    }

    fn forward(&self, batch: Batch) {
        self.send(batch.charge(), WriterInput::Batch(batch));
    }

    fn spill(&mut self, batch: &Batch) -> io::Result<()> {
        let shard = usize::from(batch.shard);
        let segment = match &mut self.segments[shard] {
            Some(segment) => segment,
            none => {
                self.made += 1;
                none.insert(Segment::create(&self.folder, batch.shard, self.run, self.made)?)
            }
        };
        segment.append(&batch.bytes)?;
        add(&self.figures.spilled, batch.bytes.len() as u64);
        if segment.len() >= SEGMENT_BYTES && self.has_room() {
            self.seal(shard);
        }
        Ok(())
    }

    /// Once the writer has caught up, queues the segments for it; the next batches go through memory again.
    pub(super) fn resume_memory_path(&mut self) {
        if self.is_spilling() && self.figures.queued() <= self.queue_bytes / 2 {
            for shard in 0..self.segments.len() {
                if self.has_room() {
                    self.seal(shard);
                }
            }
        }
    }

    /// Whether there are segments that the writer does not know of.
    fn is_spilling(&self) -> bool {
        self.segments.iter().any(Option::is_some)
    }

    /// Whether the writer can be sent something without a wait. Nobody else sends it anything.
    fn has_room(&self) -> bool {
        self.figures.inputs() < self.inputs_max
    }

    fn seal(&mut self, shard: usize) {
        if let Some(segment) = self.segments[shard].take() {
            self.send(0, WriterInput::Segment(segment.seal()));
        }
    }

    /// Sends the writer something that takes so many bytes of memory; waits if there is no room, which matters at the end only.
    fn send(&self, bytes: usize, input: WriterInput) {
        self.figures.queue(bytes);
        if self.writer_inputs.send(input).is_err() && !self.figures.is_closing() {
            tracing::error!("the writer of the event log has died of a fault; nothing is logged any more");
        }
    }
}

/// How long the intake waits before it checks again whether the writer has caught up or the disk has room.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// The least time between two log lines about the same trouble.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// A segment of this size is complete, if the writer has room for it.
const SEGMENT_BYTES: u64 = 64 << 20;
