//! The intake: decides for each batch whether it goes to the writer by memory or by disk, so that each shard's batches
//! come in order whichever way they went.

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

/// Something for the writer.
pub(super) enum WriterInput {
    /// By memory.
    Batch(Batch),
    /// By disk.
    Segment(SealedSegment),
}

/// The intake.
pub(super) struct Intake {
    folder: PathBuf,
    run: u64,
    /// Segments made.
    made: u64,
    /// The segment of each shard that is being written.
    segments: Vec<Option<Segment>>,
    /// Bytes that wait for the writer before the disk is used.
    queue_bytes: usize,
    /// Batches and segments that the channel to the writer holds.
    inputs_max: usize,
    writer_inputs: SyncSender<WriterInput>,
    returns: BufferReturns,
    figures: Arc<LogFigures>,
    log_limiter: LogLimiter,
    loss_report: LossReport,
}

/// Says how many events were lost, when they have become more.
#[derive(Default)]
struct LossReport {
    told: u64,
    log_limiter: LogLimiter,
}

/// Says what is wrong, not too often.
#[derive(Default)]
pub(super) struct LogLimiter(Option<Instant>);

impl LogLimiter {
    /// Whether it is time to say it (again).
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

    /// Works until the producers are gone.
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
        // Whatever waits, the writer is to have it.
        for shard in 0..self.segments.len() {
            self.seal(shard);
        }
    }

    /// Takes a batch, however long that takes.
    fn take_with_retries(&mut self, mut batch: Batch) {
        while let Err((back, error)) = self.take(batch) {
            add(&self.figures.failures, 1);
            if self.figures.is_closing() {
                // Nothing more comes, and the memory that is there may be used.
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

    /// Takes a batch: hands it to the writer, or to the disk when too much waits for the writer or something of its
    /// shard is on disk already. Gives it back when the disk does not take it.
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

    /// When the writer has caught up, it gets what is on disk, and the next batches go by memory again.
    pub(super) fn resume_memory_path(&mut self) {
        if self.is_spilling() && self.figures.queued() <= self.queue_bytes / 2 {
            for shard in 0..self.segments.len() {
                if self.has_room() {
                    self.seal(shard);
                }
            }
        }
    }

    /// Whether anything lies on disk that the writer does not know of.
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

/// How long the intake waits before it looks again whether the writer has caught up, or the disk has room.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// How often the same trouble is told.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// A segment of this size is complete.
const SEGMENT_BYTES: u64 = 64 << 20;
