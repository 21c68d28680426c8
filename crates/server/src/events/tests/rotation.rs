//! Rotated files.

use super::*;
use std::fs::read_dir;

fn names(rig: &Rig) -> Vec<String> {
    let entries = read_dir(rig.folder.path()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn log_events(rig: &Rig, events: u64) {
    let (log, mut shards) = rig.start(1);
    shards[0].log_events(events, &log.figures());
    shards.into_iter().for_each(TestShard::stop);
    drop(log);
}

#[test]
fn a_large_file_is_put_away_compressed_and_read_again() {
    let mut rig = Rig::new();
    (rig.options.rotate_bytes, rig.options.compress) = (100_000, true);
    log_events(&rig, 5000);
    // The rotation may have ended before it handled the last file; the next start does that.
    Rotation::new(&rig.options, Arc::default()).tidy().unwrap();
    let names = names(&rig);
    assert!(names.len() > 3, "{names:?}");
    assert!(names[..names.len() - 1].iter().all(|name| name.ends_with(".jsonl.zst")), "{names:?}");
    let (lines, findings) = rig.read();
    assert_eq!((lines.len(), findings), (5002, vec![]));
}

#[test]
fn only_so_many_are_kept() {
    let mut rig = Rig::new();
    (rig.options.rotate_bytes, rig.options.keep_files) = (100_000, 2);
    log_events(&rig, 5000);
    Rotation::new(&rig.options, Arc::default()).tidy().unwrap();
    let names = names(&rig);
    assert_eq!(names.len(), 3, "{names:?}");
    let (lines, findings) = rig.read();
    assert_eq!((findings, head(lines.last().unwrap().as_bytes()).unwrap().kind), (vec![], Kind::Stop));
}

#[test]
fn only_so_long_they_are_kept() {
    let mut rig = Rig::new();
    (rig.options.rotate_bytes, rig.options.keep_ms) = (100_000, 60_000);
    log_events(&rig, 5000);
    let before = names(&rig);
    let long_ago = std::time::SystemTime::UNIX_EPOCH;
    std::fs::File::options()
        .append(true)
        .open(rig.folder.path().join(&before[0]))
        .unwrap()
        .set_modified(long_ago)
        .unwrap();
    Rotation::new(&rig.options, Arc::default()).tidy().unwrap();
    assert_eq!(names(&rig), before[1..]);
}

#[test]
fn what_a_crash_left_of_a_compression_is_removed() {
    let mut rig = Rig::new();
    rig.options.compress = true;
    let part = "events-20261120T093000.125Z.jsonl.zst.part";
    std::fs::write(rig.folder.path().join(part), b"half").unwrap();
    std::fs::write(rig.folder.path().join("events-20261120T093000.125Z.jsonl"), b"{}\n").unwrap();
    Rotation::new(&rig.options, Arc::default()).tidy().unwrap();
    assert_eq!(names(&rig), ["events-20261120T093000.125Z.jsonl.zst"]);
}

#[test]
fn an_old_file_is_put_away() {
    let mut rig = Rig::new();
    rig.options.rotate_ms = 1;
    log_events(&rig, 1);
    let mut file = LogFile::open(rig.folder.path(), Format::Json).unwrap();
    assert!(file.len() > 0 && file.rotate().unwrap());
    assert_eq!(file.len(), 0);
    log_events(&rig, 1);
    let (lines, findings) = rig.read();
    assert_eq!((lines.len(), findings), (6, vec![]));
}

#[test]
fn files_are_in_order_although_the_clock_is_set_back() {
    let rig = Rig::new();
    let late = rig.folder.path().join("events-29991231T235959.999Z.jsonl.zst");
    std::fs::write(&late, b"").unwrap();
    for _ in 0..3 {
        log_events(&rig, 1);
        assert!(LogFile::open(rig.folder.path(), Format::Json).unwrap().rotate().unwrap());
    }
    let names = names(&rig);
    assert_eq!(names[1], "events-30000101T000000.000Z.jsonl", "{names:?}");
    std::fs::remove_file(late).unwrap();
    let (lines, findings) = rig.read();
    assert_eq!((lines.len(), findings), (9, vec![]), "{names:?}");
}

#[test]
fn another_form_begins_another_file() {
    let mut rig = Rig::new();
    log_events(&rig, 1);
    rig.options.format = Format::Compact;
    log_events(&rig, 1);
    let names = names(&rig);
    assert!(names.len() == 2 && names[0].ends_with("Z.jsonl") && names[1] == "events.tsv", "{names:?}");
    let (lines, findings) = rig.read();
    assert_eq!((lines.len(), findings), (6, vec![]));
}

#[test]
fn nobody_else_may_read_them() {
    use std::os::unix::fs::PermissionsExt;
    let mut rig = Rig::new();
    rig.options.folder = rig.folder.path().join("events");
    (rig.options.rotate_bytes, rig.options.compress) = (100_000, true);
    log_events(&rig, 5000);
    Rotation::new(&rig.options, Arc::default()).tidy().unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&rig.options.folder), 0o700);
    let files: Vec<_> = read_dir(&rig.options.folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() > 3, "{files:?}");
    files.iter().for_each(|file| assert_eq!(mode(file), 0o600, "{}", file.display()));
}
