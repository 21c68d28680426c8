//! What a crash leaves.

use super::super::spill::Segment;
use super::*;

/// Entries of a run, numbered from 0.
fn entries(count: u64) -> Vec<u8> {
    let mut journal = Journal::default();
    (0..count)
        .for_each(|n| journal.push(UnixMs(1000 + n), &Entry::Publish { domain: "d", topic: "t", item: "i" }));
    journal.take(Vec::new())
}

/// A node that started and ran for a moment.
fn run(rig: &Rig) -> (Vec<String>, Vec<Finding>) {
    let (log, shards) = rig.start(1);
    shards.into_iter().for_each(TestShard::stop);
    drop(log);
    rig.read()
}

#[test]
fn half_a_line_is_cut_off() {
    let rig = Rig::new();
    let whole = "{\"at\":\"2026-11-20T09:30:00.125Z\",\"shard\":0,\"seq\":7,\"kind\":\"stop\"}\n";
    std::fs::write(rig.folder.path().join("events.jsonl"), format!("{whole}{{\"at\":\"2026")).unwrap();
    let (lines, findings) = run(&rig);
    assert_eq!((lines.len(), findings), (3, vec![]));
    assert_eq!(lines[0], whole.trim_end());
}

#[test]
fn a_file_of_nothing_but_half_a_line_is_emptied() {
    let rig = Rig::new();
    std::fs::write(rig.folder.path().join("events.jsonl"), vec![b'x'; 200_000]).unwrap();
    assert_eq!(run(&rig).0.len(), 2);
}

#[test]
fn segments_are_read_up_to_the_torn_entry() {
    let rig = Rig::new();
    let bytes = entries(5);
    let mut segment = Segment::create(rig.folder.path(), 0, 1, 1).unwrap();
    segment.append(&bytes[..bytes.len() - 3]).unwrap();
    std::fs::write(rig.folder.path().join("spill-000000000000001-000000002"), b"CE").unwrap();
    let (lines, findings) = run(&rig);
    // Four of the segment, then this run's start, without a stop of the other, and stop.
    assert_eq!((lines.len(), rig.spills()), (6, 0));
    assert!(matches!(findings[..], [Finding::NoStop { .. }]), "{findings:?}");
}

#[test]
fn what_was_written_of_a_segment_is_not_written_again() {
    let rig = Rig::new();
    let bytes = entries(500);
    Segment::create(rig.folder.path(), 0, 1, 1).unwrap().append(&bytes).unwrap();
    run(&rig);
    let path = rig.folder.path().join("events.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let cut: usize = text.lines().take(200).map(|line| line.len() + 1).sum();
    // As if the crash had come in the middle of line 201.
    std::fs::write(&path, &text[..cut + 10]).unwrap();
    Segment::create(rig.folder.path(), 0, 1, 1).unwrap().append(&bytes).unwrap();
    let (lines, findings) = run(&rig);
    assert_eq!(lines.len(), 502);
    assert!(matches!(findings[..], [Finding::NoStop { .. }]), "{findings:?}");
}
