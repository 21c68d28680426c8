//! What is missing is found.

use super::*;

fn findings(lines: &[&str]) -> Vec<String> {
    let mut verifier = Verifier::default();
    let found = lines.iter().filter_map(|line| verifier.line(line.as_bytes()));
    found.map(|finding| finding.to_string()).collect()
}

#[test]
fn a_whole_log() {
    let lines = ["start\t1\t0\t0", "start\t1\t1\t0", "stop\t2\t0\t1", "stop\t2\t1\t1", "start\t3\t0\t0"];
    assert_eq!(findings(&lines), Vec::<String>::new());
    // Older files may be gone.
    assert_eq!(findings(&["publish\t1\t0\t7\ta\tb\tc", "stop\t2\t0\t8"]), Vec::<String>::new());
}

#[test]
fn what_is_missing() {
    let lines = ["start\t1\t0\t0", "stop\t1000\t0\t5", "start\t3000\t0\t0", "start\t4000\t0\t0", "half"];
    assert_eq!(
        findings(&lines),
        [
            "4 missing before line 5 of shard 0 (stop, 1970-01-01T00:00:01.000Z)",
            "no stop, so a crash, before line 0 of shard 0 (start, 1970-01-01T00:00:04.000Z)",
            "not a line of an event log",
        ]
    );
}

#[test]
fn what_is_there_twice() {
    let lines = ["start\t1\t0\t0", "publish\t1\t0\t1\ta\tb\tc", "publish\t1\t0\t1\ta\tb\tc", "stop\t1\t0\t2"];
    assert_eq!(findings(&lines), ["a second line 1 of shard 0 (publish, 1970-01-01T00:00:00.001Z)"]);
}
