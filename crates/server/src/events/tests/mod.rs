//! The event log from the journal to the file, with disks that are slow, full or broken.

mod recovery;
mod rotation;
mod server;
mod spilling;
mod verifying;

use super::*;
use carillon_core::event::{Entry, Journal};
use carillon_core::model::{Mono, UnixMs};
use std::io::BufRead;
use std::path::Path;

/// A log in a folder of its own.
struct Rig {
    folder: tempfile::TempDir,
    options: Options,
}

/// A shard without anything but its journal.
struct TestShard {
    producer: Producer,
    journal: Journal,
    logged: u64,
}

impl Rig {
    fn new() -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let options = quiet(folder.path());
        Rig { folder, options }
    }

    fn start(&self, shards: u16) -> (EventLog, Vec<TestShard>) {
        let (log, producers) = EventLog::start(&self.options, shards).unwrap();
        (log, producers.into_iter().map(TestShard::new).collect())
    }

    /// All lines, and what a verifier finds.
    fn read(&self) -> (Vec<String>, Vec<Finding>) {
        let mut verifier = Verifier::default();
        let mut lines = Vec::new();
        for path in files(self.folder.path()).unwrap() {
            lines.extend(open(&path).unwrap().lines().map(Result::unwrap));
        }
        let findings = lines.iter().filter_map(|line| verifier.line(line.as_bytes())).collect();
        (lines, findings)
    }

    fn spills(&self) -> usize {
        spill::segments(self.folder.path()).unwrap().len()
    }
}

impl TestShard {
    fn new(producer: Producer) -> TestShard {
        let mut journal = Journal::default();
        producer.begin(&mut journal, UnixMs(0));
        TestShard { producer, journal, logged: 0 }
    }

    /// Logs so many events. It waits for room, which a shard would not, as it is faster than a shard.
    fn log_events(&mut self, events: u64, figures: &LogFigures) {
        for _ in 0..events {
            self.logged += 1;
            let (topic, item) = ("news", "one");
            self.journal.push(UnixMs(self.logged), &Entry::Publish { domain: "localhost", topic, item });
            wait_for_room(figures);
            self.producer.turn_ended(&mut self.journal, Mono(0));
        }
    }

    fn stop(mut self) {
        self.producer.end(&mut self.journal, UnixMs(self.logged));
    }
}

/// Options of a log that never rotates a file.
fn quiet(folder: &Path) -> Options {
    Options {
        enabled: true,
        folder: folder.to_owned(),
        format: Format::Json,
        kinds: Kinds::all(),
        rotate_bytes: 1 << 30,
        rotate_ms: 0,
        compress: false,
        keep_files: 0,
        keep_ms: 0,
        memory_bytes: 1 << 20,
    }
}

impl EventLog {
    /// The log of one shard, for the tests of other modules.
    pub(crate) fn of_one(folder: &Path) -> (EventLog, Producer, Arc<LogFigures>) {
        let options = Options { memory_bytes: 8 << 20, ..quiet(folder) };
        let (log, mut producers) = EventLog::start(&options, 1).unwrap();
        let figures = log.figures();
        (log, producers.remove(0), figures)
    }
}

/// Waits until the memory has room for the largest batch, whatever the disk is busy with.
fn wait_for_room(figures: &LogFigures) {
    while figures.status().held_bytes as usize > ROOM {
        std::thread::yield_now();
    }
}

/// How much of the memory a test uses.
const ROOM: usize = 700 << 10;

#[test]
fn every_event_is_a_line() {
    let rig = Rig::new();
    let (log, mut shards) = rig.start(3);
    let figures = log.figures();
    for _ in 0..20 {
        shards.iter_mut().for_each(|shard| shard.log_events(500, &figures));
    }
    for shard in shards {
        wait_for_room(&figures);
        shard.stop();
    }
    drop(log);
    let (lines, findings) = rig.read();
    assert_eq!((lines.len(), findings), (3 * 10_002, vec![]));
    let status = figures.status();
    assert_eq!((status.lines, status.dropped, status.held_bytes), (30_006, 0, 0));
    let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
    assert_eq!(status.bytes, bytes as u64);
}

#[test]
fn a_shard_that_does_nothing_still_hands_over_in_time() {
    let rig = Rig::new();
    let (log, mut shards) = rig.start(1);
    let shard = &mut shards[0];
    shard.producer.turn_ended(&mut shard.journal, Mono(5));
    let due = shard.producer.due().unwrap();
    assert!(due > Mono(5));
    shard.producer.turn_ended(&mut shard.journal, due);
    assert_eq!((shard.producer.due(), shard.journal.bytes().len()), (None, 0));
    drop(shards);
    drop(log);
    assert_eq!(rig.read().0.len(), 1);
}

#[test]
fn the_compact_form_is_whole_too() {
    let mut rig = Rig::new();
    rig.options.format = Format::Compact;
    let (log, mut shards) = rig.start(1);
    shards[0].log_events(3, &log.figures());
    shards.into_iter().for_each(TestShard::stop);
    drop(log);
    let (lines, findings) = rig.read();
    assert_eq!((&lines[1][..], findings), ("publish\t1\t0\t1\tlocalhost\tnews\tone", vec![]));
    assert!(lines.iter().all(|line| to_json(line.as_bytes()).is_some()));
}
