//! A report to test with.

use std::time::{Duration, Instant};

use super::{PhaseState, Record, Report, ResourceSample, Status};
use crate::control::{Position, Progress};
use crate::measure::Reading;
use crate::measure::TDigest;
use crate::plan::{Scenario, Target, TransportKind};

/// A target that is nowhere; its secrets are easily found in a text.
pub(crate) fn target() -> Target {
    Target {
        address: "127.0.0.1:1".to_owned(),
        transport: TransportKind::Plain,
        websocket_path: "/".to_owned(),
        ca_pem: None,
        domain: "localhost".to_owned(),
        user_prefix: "u".to_owned(),
        user_start: 0,
        password: "SECRET-password".to_owned(),
        mechanisms: Vec::new(),
        pubsub: None,
        rooms: None,
        publisher: "publisher".to_owned(),
        http: Some("http://user:SECRET@127.0.0.1:2".to_owned()),
        key: Some("SECRET-key".to_owned()),
        light: None,
        key_cache: None,
    }
}

/// Logins and a fan-out, done in no time.
pub(crate) fn scenario() -> Scenario {
    let text = "name = \"sample\"\nsummary = \"A <sample>.\"\n[players]\ncount = 10\n\
                [[phases]]\ndo = \"login\"\n[[phases]]\ndo = \"hold\"\nfor = \"1s\"\n";
    Scenario::parse(text).expect("a scenario")
}

/// A record of it, all done.
pub(super) fn record() -> Record {
    let mut record = Record::new("t1".to_owned(), scenario(), target());
    let sample = |cpu_s, memory_bytes| ResourceSample {
        server: Some(Reading { cpu_s, memory_bytes }),
        tester_cpu_s: cpu_s / 2.0,
        ..ResourceSample::default()
    };
    record.begin(0, Instant::now(), sample(1.0, 1_000_000));
    let mut digest = TDigest::default();
    (1..=10).for_each(|ms| digest.record(Duration::from_millis(ms)));
    let mut progress = Progress { online: 10, ..Progress::default() };
    progress.position = Position { phase: 0, step: 1 };
    progress.counts.insert("logins".to_owned(), 10);
    progress.errors.insert("login: <odd>".to_owned(), 2);
    progress.metrics.insert("login".to_owned(), digest);
    record.add(&progress);
    record.tick(10, sample(1.005, 1_020_000));
    record.end(0, PhaseState::Done, Instant::now(), 10, sample(1.01, 1_020_000));
    record.begin(1, Instant::now(), sample(1.01, 1_020_000));
    record.tick(10, sample(1.01, 1_020_000));
    record.end(1, PhaseState::Done, Instant::now(), 10, sample(1.01, 1_030_000));
    record.close();
    record
}

/// The report of it.
pub(crate) fn report() -> Report {
    record().report(Status::Completed, None, Vec::new())
}
