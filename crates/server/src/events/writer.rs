//! The writer: prints entries as lines, in the order in which they come, and rotates files that are large or old.
//!
//! Lines go to the kernel a page at a time, and to the disk (`fdatasync`) when a file is rotated and when the node ends.
//! A crash of the process loses what was in memory; a power cut also loses what the kernel had not written.

use super::batch::{Batch, BufferReturns};
use super::figures::{LogFigures, add};
use super::file::LogFile;
use super::intake::{LogLimiter, WriterInput};
use super::line::Printer;
use super::options::Options;
use super::recover::Recovery;
use super::spill::SealedSegment;
use carillon_core::event::records;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::time::{Duration, SystemTime};

/// The writer.
pub(super) struct Writer {
    file: LogFile,
    printer: Printer,
    page: Vec<u8>,
    /// Lines in the page.
    lines: u64,
    page_bytes: usize,
    rotate_bytes: u64,
    rotate_ms: u64,
    rotated: SyncSender<()>,
    returns: BufferReturns,
    figures: Arc<LogFigures>,
    log_limiter: LogLimiter,
    health: Health,
    /// How many writes may still fail while the node ends.
    last_tries: u32,
}

/// Whether writes succeed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Health {
    Sound,
    /// The last write failed.
    Failing,
}

/// This many lines were given up, as the node ends and the disk takes nothing.
#[derive(Clone, Copy)]
struct LinesLost(u64);

impl Writer {
    pub(super) fn new(
        options: &Options,
        file: LogFile,
        rotated: SyncSender<()>,
        returns: BufferReturns,
        figures: Arc<LogFigures>,
    ) -> Writer {
        Writer {
            file,
            printer: Printer::new(options.format),
            page: Vec::new(),
            lines: 0,
            // A file is rotated between two pages.
            page_bytes: PAGE_BYTES.min(options.rotate_bytes as usize),
            rotate_bytes: options.rotate_bytes,
            rotate_ms: options.rotate_ms,
            rotated,
            returns,
            figures,
            log_limiter: LogLimiter::default(),
            health: Health::Sound,
            last_tries: LAST_TRIES,
        }
    }

    /// Runs until the intake is gone. What a crash left comes first.
    pub(super) fn run(mut self, mut left: Recovery, inbox: &Receiver<WriterInput>) {
        for segment in std::mem::take(&mut left.segments) {
            self.segment(segment, Some(&left));
        }
        loop {
            let input = match inbox.try_recv() {
                Ok(input) => input,
                Err(TryRecvError::Empty) => {
                    self.flush();
                    self.rotate_if_old();
                    match inbox.recv_timeout(IDLE) {
                        Ok(input) => input,
                        Err(RecvTimeoutError::Timeout) => continue,
                        Err(RecvTimeoutError::Disconnected) => break,
                    }
                }
                Err(TryRecvError::Disconnected) => break,
            };
            match input {
                WriterInput::Batch(batch) => self.batch(batch),
                WriterInput::Segment(segment) => {
                    self.segment(segment, None);
                    self.figures.unqueue(0);
                }
            }
        }
        self.flush();
        if let Err(error) = self.file.sync() {
            tracing::error!(%error, "the event log was not made durable");
        }
    }

    fn batch(&mut self, batch: Batch) {
        let printed = self.print(batch.shard, &batch.bytes, None);
        self.count_lost(printed.err());
        let bytes = batch.charge();
        self.figures.unqueue(bytes);
        self.figures.release(bytes);
        self.returns.give(batch);
    }

    /// Writes the lines of batches. There is no other copy of them.
    fn flush(&mut self) {
        let written = self.write_page();
        self.count_lost(written.err());
    }

    fn count_lost(&self, lost: Option<LinesLost>) {
        if let Some(LinesLost(lines)) = lost {
            add(&self.figures.dropped, lines);
        }
    }

    /// Reads a segment back and writes its lines. If it cannot be read or written, it stays for the next start.
    fn segment(&mut self, segment: SealedSegment, left: Option<&Recovery>) {
        self.flush();
        match self.read(&segment, left) {
            Ok((torn, written)) => {
                if written.and_then(|()| self.write_page()).is_err() {
                    // The next start continues here.
                    self.page.clear();
                    self.lines = 0;
                    return;
                }
                if torn > 0 {
                    tracing::warn!(segment = %segment.path.display(), bytes = torn, "the end of a segment is torn");
                }
                if let Err(error) = segment.remove() {
                    tracing::error!(%error, "a segment of the event log cannot be removed; its lines will come twice");
                }
            }
            Err(error) => tracing::error!(
                %error, segment = %segment.path.display(),
                "a segment of the event log cannot be read; the next start tries again"
            ),
        }
    }

    /// How many bytes of it are not a whole entry, and whether the lines of the others were written.
    fn read(
        &mut self,
        segment: &SealedSegment,
        left: Option<&Recovery>,
    ) -> io::Result<(usize, Result<(), LinesLost>)> {
        let Some(mut reading) = segment.open()? else { return Ok((1, Ok(()))) };
        while reading.fill()? {
            match self.print(reading.shard, reading.bytes(), left) {
                Ok(rest) => reading.keep(rest),
                Err(lost) => return Ok((0, Err(lost))),
            }
        }
        Ok((reading.bytes().len(), Ok(())))
    }

    /// Prints entries; how many bytes at the end are not a whole entry.
    fn print(&mut self, shard: u16, bytes: &[u8], left: Option<&Recovery>) -> Result<usize, LinesLost> {
        let mut result = Ok(());
        let mut records = records(bytes);
        for record in records.by_ref() {
            if left.is_some_and(|left| left.has(shard, &record)) {
                continue;
            }
            self.printer.print(&mut self.page, shard, &record);
            self.lines += 1;
            if self.page.len() >= self.page_bytes {
                result = match (result, self.write_page()) {
                    (Err(LinesLost(a)), Err(LinesLost(b))) => Err(LinesLost(a + b)),
                    (first, then) => first.and(then),
                };
            }
        }
        result.map(|()| records.rest().len())
    }

    /// Writes the page, and retries for as long as it takes, or for a while if the node ends.
    fn write_page(&mut self) -> Result<(), LinesLost> {
        let mut at = 0;
        while at < self.page.len() {
            match self.file.write(&self.page[at..]) {
                Ok(n) if n > 0 => {
                    at += n;
                    self.recovered();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => self.failed(&other.err().unwrap_or_else(|| io::ErrorKind::WriteZero.into()))?,
            }
        }
        add(&self.figures.lines, self.lines);
        add(&self.figures.bytes, self.page.len() as u64);
        self.page.clear();
        self.lines = 0;
        if self.file.len() >= self.rotate_bytes {
            self.rotate();
        }
        Ok(())
    }

    /// Notes that a write succeeded; if the last one had failed, logs that, and how much was lost.
    fn recovered(&mut self) {
        if std::mem::replace(&mut self.health, Health::Sound) == Health::Failing {
            let dropped = self.figures.status().dropped;
            tracing::warn!(
                dropped,
                "the event log is written again; events dropped since the start are missing in its numbers"
            );
        }
    }

    /// Notes that a write failed, and waits; gives the page up if the node ends and has waited long enough.
    fn failed(&mut self, error: &io::Error) -> Result<(), LinesLost> {
        add(&self.figures.failures, 1);
        self.health = Health::Failing;
        if self.log_limiter.is_due() {
            tracing::error!(%error, "the event log cannot be written; it tries again, and events wait on disk");
        }
        if self.figures.is_closing() {
            if self.last_tries == 0 {
                tracing::error!(
                    lines = self.lines,
                    "the node ends, and lines of the event log are not written"
                );
                self.page.clear();
                return Err(LinesLost(std::mem::take(&mut self.lines)));
            }
            self.last_tries -= 1;
        }
        std::thread::sleep(RETRY);
        Ok(())
    }

    fn rotate_if_old(&mut self) {
        let age = SystemTime::now().duration_since(self.file.since()).unwrap_or_default();
        if self.rotate_ms > 0 && self.file.len() > 0 && age >= Duration::from_millis(self.rotate_ms) {
            self.rotate();
        }
    }

    fn rotate(&mut self) {
        match self.file.rotate() {
            // If a message waits already, the rotation will find this file, too.
            Ok(true) => drop(self.rotated.try_send(())),
            Ok(false) => {}
            Err(error) => {
                add(&self.figures.failures, 1);
                if self.log_limiter.is_due() {
                    tracing::error!(%error, "a file of the event log cannot be put away; it goes on growing");
                }
            }
        }
    }
}

/// Bytes per write.
const PAGE_BYTES: usize = 256 * 1024;
/// How often an idle writer checks the age of its file.
const IDLE: Duration = Duration::from_secs(1);
/// How long it waits after a failed write.
const RETRY: Duration = Duration::from_millis(100);
/// How many writes may fail while the node ends.
const LAST_TRIES: u32 = 10;
