//! A writer that is behind, a disk that is full, and no disk at all.

use super::super::intake::WriterInput;
use super::*;
use std::fs::OpenOptions;
use std::io::BufReader;
use std::os::unix::fs::symlink;

#[test]
fn a_writer_that_is_blocked_loses_nothing() {
    let rig = Rig::new();
    // A pipe that nobody reads yet. Held open in both directions, so that opening it does not wait.
    let pipe = rig.folder.path().join("events.jsonl");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let reader = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    let (log, mut shards) = rig.start(2);
    let figures = log.figures();
    for _ in 0..50 {
        shards.iter_mut().for_each(|shard| shard.log_events(1000, &figures));
    }
    shards.into_iter().for_each(TestShard::stop);
    let status = figures.status();
    assert!(status.spilled_bytes > 1 << 20 && status.dropped == 0, "{status:?}");
    assert!(status.held_bytes <= rig.options.memory_bytes as u64);
    // Now somebody reads.
    let mut verifier = Verifier::default();
    let mut stops = 0;
    for line in BufReader::new(reader).lines() {
        let line = line.unwrap();
        assert_eq!(verifier.line(line.as_bytes()), None, "{line}");
        stops += u32::from(head(line.as_bytes()).unwrap().kind == Kind::Stop);
        if stops == 2 {
            break;
        }
    }
    assert_eq!(verifier.lines(), 2 * 50_002);
    drop(log);
    assert_eq!((rig.spills(), figures.status().held_bytes), (0, 0));
}

#[test]
fn a_full_disk_holds_back_and_the_next_start_goes_on() {
    let mut rig = Rig::new();
    symlink("/dev/full", rig.folder.path().join("events.jsonl")).unwrap();
    rig.options.memory_bytes = 1 << 20;
    let (log, mut shards) = rig.start(1);
    let figures = log.figures();
    shards[0].log_events(50_000, &figures);
    drop(shards);
    while figures.status().failures == 0 {
        std::thread::yield_now();
    }
    drop(log);
    let status = figures.status();
    // What was in memory at the end is lost, and counted; what was on disk waits.
    assert!(status.dropped > 0 && status.lines == 0 && rig.spills() > 0, "{status:?}");
    std::fs::remove_file(rig.folder.path().join("events.jsonl")).unwrap();
    let (log, shards) = rig.start(1);
    shards.into_iter().for_each(TestShard::stop);
    drop(log);
    let (lines, findings) = rig.read();
    // The second run has two lines. What the first run noted after its last hand-over was dropped with its shard.
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(matches!(findings[0], Finding::NoStop { .. }));
    let on_disk = lines.len() as u64 - 2;
    let last = head(lines[lines.len() - 3].as_bytes()).unwrap().seq;
    let first = head(lines[0].as_bytes()).unwrap().seq;
    assert_eq!((first, last), (status.dropped, status.dropped + on_disk - 1));
    assert_eq!(rig.spills(), 0);
}

#[test]
fn where_the_disk_takes_nothing_a_parcel_waits() {
    let rig = Rig::new();
    let options = Options {
        folder: rig.folder.path().join("none"),
        memory_bytes: 2 * BATCH_BYTES,
        ..rig.options.clone()
    };
    let (writer_inputs, inbox) = sync_channel(8);
    let (_, returns) = producers(&options, 1, &sync_channel(1).0, &Arc::default());
    let figures = Arc::new(LogFigures::default());
    let mut intake = Intake::new(&options, 1, UnixMs(1), writer_inputs, returns, Arc::clone(&figures));
    let batch = || {
        let mut journal = Journal::default();
        journal.push(UnixMs(1), &Entry::Start);
        let batch = Batch { shard: 0, bytes: journal.take(Vec::new()) };
        assert!(figures.hold(batch.charge(), usize::MAX));
        batch
    };
    // The first fits into the memory, the second does not.
    assert!(intake.take(batch()).is_ok());
    let (back, _) = intake.take(batch()).unwrap_err();
    assert_eq!(inbox.try_iter().count(), 1);
    std::fs::create_dir(&options.folder).unwrap();
    assert!(intake.take(back).is_ok());
    // It waits on disk until the writer has caught up; the next batch goes through memory again.
    intake.resume_memory_path();
    assert_eq!(inbox.try_iter().count(), 0);
    figures.unqueue(figures.queued());
    intake.resume_memory_path();
    assert!(intake.take(batch()).is_ok());
    let writer_inputs: Vec<WriterInput> = inbox.try_iter().collect();
    assert!(matches!(writer_inputs[..], [WriterInput::Segment(_), WriterInput::Batch(_)]));
}

#[test]
fn the_last_resort_is_counted_and_seen() {
    let rig = Rig::new();
    let options = Options { memory_bytes: 0, ..rig.options.clone() };
    let figures = Arc::new(LogFigures::default());
    let (batches, inbox) = sync_channel(1);
    let (mut producers, _) = producers(&options, 1, &batches, &figures);
    let mut shard = TestShard::new(producers.remove(0));
    shard.producer.turn_ended(&mut shard.journal, Mono(0));
    shard.producer.turn_ended(&mut shard.journal, Mono(1000));
    assert_eq!((figures.status().dropped, shard.journal.bytes().len()), (1, 0));
    // The next one has its number all the same.
    shard.journal.push(UnixMs(1), &Entry::Stop);
    assert_eq!(carillon_core::event::records(shard.journal.bytes()).next().unwrap().seq, 1);
    assert_eq!(inbox.try_iter().count(), 0);
}

#[test]
fn a_writer_that_is_behind_is_queued_so_much_and_the_rest_stays_on_disk() {
    let rig = Rig::new();
    // Everything goes by disk, and a segment is complete at every chance.
    let options = Options { memory_bytes: 0, ..rig.options.clone() };
    let (writer_inputs, inbox) = sync_channel(SEGMENTS_QUEUED_MAX);
    let (_, returns) = producers(&options, 1, &sync_channel(1).0, &Arc::default());
    let figures = Arc::new(LogFigures::default());
    let mut intake = Intake::new(&options, 1, UnixMs(1), writer_inputs, returns, Arc::clone(&figures));
    let mut journal = Journal::default();
    let take = |intake: &mut Intake, journal: &mut Journal| {
        journal.push(UnixMs(1), &Entry::Start);
        let batch = Batch { shard: 0, bytes: journal.take(Vec::new()) };
        assert!(figures.hold(batch.charge(), usize::MAX) && intake.take(batch).is_ok());
        intake.resume_memory_path();
    };
    (0..SEGMENTS_QUEUED_MAX + 10).for_each(|_| take(&mut intake, &mut journal));
    let segments = || {
        inbox.try_iter().map(|input| match input {
            WriterInput::Segment(segment) => segment,
            WriterInput::Batch(_) => panic!("there is no memory"),
        })
    };
    let first: Vec<_> = segments().inspect(|_| figures.unqueue(0)).collect();
    assert_eq!((first.len(), rig.spills()), (SEGMENTS_QUEUED_MAX, SEGMENTS_QUEUED_MAX + 1));
    // The writer has caught up: the last segment has all that came meanwhile, in order.
    intake.resume_memory_path();
    let last: Vec<_> = segments().collect();
    let mut reading = last[0].open().unwrap().unwrap();
    assert!(reading.fill().unwrap());
    let numbers: Vec<u64> = carillon_core::event::records(reading.bytes()).map(|record| record.seq).collect();
    let expected: Vec<u64> = (0..10).map(|n| (SEGMENTS_QUEUED_MAX + n) as u64).collect();
    assert_eq!((last.len(), numbers, figures.status().held_bytes), (1, expected, 0));
}
