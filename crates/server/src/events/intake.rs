//! The intake: decides for each parcel whether it goes to the writer by memory or by disk, so that each shard's parcels
//! come in order whichever way they went.

use super::figures::{Figures, add};
use super::spill::{Sealed, Segment};
use super::{Options, Parcel, Returns};
use carillon_core::model::UnixMs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Something for the writer.
pub(super) enum Load {
    /// By memory.
    Parcel(Parcel),
    /// By disk.
    Segment(Sealed),
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
    loads: Sender<Load>,
    returns: Returns,
    figures: Arc<Figures>,
    complaint: Complaint,
    losses: Losses,
}

/// Says how many events were lost, when they have become more.
#[derive(Default)]
struct Losses {
    told: u64,
    complaint: Complaint,
}

/// Says what is wrong, not too often.
#[derive(Default)]
pub(super) struct Complaint(Option<Instant>);

impl Complaint {
    /// Whether it is time to say it (again).
    pub(super) fn is_due(&mut self) -> bool {
        let due = self.0.is_none_or(|last| last.elapsed() >= COMPLAINT);
        if due {
            self.0 = Some(Instant::now());
        }
        due
    }
}

impl Losses {
    fn tell(&mut self, dropped: u64) {
        if dropped > self.told && self.complaint.is_due() {
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
        loads: Sender<Load>,
        returns: Returns,
        figures: Arc<Figures>,
    ) -> Intake {
        Intake {
            folder: options.folder.clone(),
            run: run.0,
            made: 0,
            segments: (0..shards).map(|_| None).collect(),
            queue_bytes: options.memory_bytes / 2,
            loads,
            returns,
            figures,
            complaint: Complaint::default(),
            losses: Losses::default(),
        }
    }

    /// Works until the lanes are gone.
    pub(super) fn run(mut self, inbox: &Receiver<Parcel>) {
        loop {
            let next = match self.is_spilling() {
                true => inbox.recv_timeout(PATIENCE),
                false => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match next {
                Ok(parcel) => self.take_patiently(parcel),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.settle();
            self.losses.tell(self.figures.status().dropped);
        }
        // Whatever waits, the writer is to have it.
        for shard in 0..self.segments.len() {
            self.seal(shard);
        }
    }

    /// Takes a parcel, however long that takes.
    fn take_patiently(&mut self, mut parcel: Parcel) {
        while let Err((back, error)) = self.take(parcel) {
            add(&self.figures.failures, 1);
            if self.figures.is_closing() {
                // Nothing more comes, and the memory that is there may be used.
                self.seal(usize::from(back.shard));
                return self.forward(back);
            }
            if self.complaint.is_due() {
                let folder = self.folder.display();
                tracing::error!(%error, %folder, "the event log cannot spill; it tries again");
            }
            self.losses.tell(self.figures.status().dropped);
            parcel = back;
            std::thread::sleep(PATIENCE);
            self.settle();
        }
    }

    /// Takes a parcel: hands it to the writer, or to the disk when too much waits for the writer or something of its
    /// shard is on disk already. Gives it back when the disk does not take it.
    pub(super) fn take(&mut self, parcel: Parcel) -> Result<(), (Parcel, io::Error)> {
        let shard = usize::from(parcel.shard);
        let fits = self.figures.queued() + parcel.bytes.capacity() <= self.queue_bytes;
        if self.segments[shard].is_some() || !fits {
            if let Err(error) = self.spill(&parcel) {
                return Err((parcel, error));
            }
            self.figures.release(parcel.bytes.capacity());
            self.returns.give(parcel);
        } else {
            self.forward(parcel);
        }
        Ok(())
    }

    fn forward(&self, parcel: Parcel) {
        self.figures.queue(parcel.bytes.capacity());
        self.send(Load::Parcel(parcel));
    }

    fn spill(&mut self, parcel: &Parcel) -> io::Result<()> {
        let shard = usize::from(parcel.shard);
        let segment = match &mut self.segments[shard] {
            Some(segment) => segment,
            none => {
                self.made += 1;
                none.insert(Segment::create(&self.folder, parcel.shard, self.run, self.made)?)
            }
        };
        segment.append(&parcel.bytes)?;
        add(&self.figures.spilled, parcel.bytes.len() as u64);
        if segment.len() >= SEGMENT_BYTES {
            self.seal(shard);
        }
        Ok(())
    }

    /// When the writer has caught up, it gets what is on disk, and the next parcels go by memory again.
    pub(super) fn settle(&mut self) {
        if self.is_spilling() && self.figures.queued() <= self.queue_bytes / 2 {
            for shard in 0..self.segments.len() {
                self.seal(shard);
            }
        }
    }

    /// Whether anything lies on disk that the writer does not know of.
    fn is_spilling(&self) -> bool {
        self.segments.iter().any(Option::is_some)
    }

    fn seal(&mut self, shard: usize) {
        if let Some(segment) = self.segments[shard].take() {
            self.send(Load::Segment(segment.seal()));
        }
    }

    fn send(&self, load: Load) {
        if self.loads.send(load).is_err() && !self.figures.is_closing() {
            tracing::error!("the writer of the event log has died of a fault; nothing is logged any more");
        }
    }
}

/// How long the intake waits before it looks again whether the writer has caught up, or the disk has room.
const PATIENCE: Duration = Duration::from_millis(100);
/// How often the same trouble is told.
const COMPLAINT: Duration = Duration::from_secs(10);
/// A segment of this size is complete.
const SEGMENT_BYTES: u64 = 64 << 20;
