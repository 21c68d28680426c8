//! Reports as programs and people read them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::samples::{record, report};
use super::*;
use crate::control::{Position, Progress};

#[test]
fn programs_find_the_promised_keys() {
    let json: Value = serde_json::from_str(&report().json()).expect("JSON");
    for key in ["loadTestId", "status", "successful", "failed", "metrics", "startedAt", "phases", "timeline"]
    {
        assert!(json.get(key).is_some(), "{key}");
    }
    let login = json.pointer("/metrics/login").expect("a metric");
    let expected = serde_json::json!({
        "count": 10, "min": 1.0, "max": 10.0, "percentile50": 5.0, "percentile80": 8.0, "percentile90": 9.0,
        "percentile99": 10.0, "percentile99point9": 10.0, "percentile99point99": 10.0,
    });
    assert_eq!(*login, expected);
    assert_eq!(json.pointer("/phases/0/server/cpuMsPerLogin"), Some(&serde_json::json!(1.0)));
    assert_eq!(json.pointer("/phases/1/server/memoryBytesPerConnection"), Some(&serde_json::json!(3000.0)));
}

#[test]
fn a_report_is_read_back_and_has_no_secret() {
    let report = report();
    assert_eq!(serde_json::from_str::<Report>(&report.json()).expect("a report"), report);
    for text in [report.json(), report.summary(), report.html()] {
        assert!(!text.contains("SECRET"), "{text}");
    }
}

#[test]
fn a_page_stands_alone() {
    let page = report().html();
    assert!(page.contains("A &lt;sample&gt;.") && page.contains("login: &lt;odd&gt;"));
    for outside in ["http://", "https://", "<script", "url(", "@import"] {
        let page = page.replace("http://www.w3.org/2000/svg", "").replace("http://127.0.0.1:2", "");
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("<svg") && !page.contains("NaN"));
}

#[test]
fn a_page_says_first_whether_the_test_passed() {
    let mut report = report();
    let assertions: [Assertion; 2] =
        ["login.max<50", "errors==0"].map(|text| text.parse().expect("an assertion"));
    report.check(&assertions);
    report.comparison =
        Some(Comparison::of(vec![("before".to_owned(), report.clone()), ("now".to_owned(), report.clone())]));
    let page = report.html();
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is missing"));
    assert!(at("<b>Failed</b>") < at("expected errors == 0, got 2"));
    assert!(at("expected errors == 0, got 2") < at("class=tiles"));
    assert!(at(">Assertions<") < at(">Comparison<") && at("login.max &lt; 50") > 0);
    assert!(at(">Distribution of latencies<") > 0 && at("class=\"hover\"") > 0);
    let text = report.summary();
    assert!(text.starts_with("verdict                Failed\n"), "{text}");
    assert_eq!(serde_json::from_str::<Report>(&report.json()).expect("a report"), report);
}

#[test]
fn a_late_tester_is_blamed_only_when_it_was_busy() {
    let note = |cpu_s: f64| {
        let mut record = Record::new("t".to_owned(), samples::scenario(), samples::target());
        let start = std::time::Instant::now();
        record.begin(0, start, ResourceSample::default());
        let counts = BTreeMap::from([("late".to_owned(), 7)]);
        record.add(&Progress { counts, position: Position { phase: 0, step: 1 }, ..Progress::default() });
        let end = start + std::time::Duration::from_secs(10);
        let sample = ResourceSample { tester_cpu_s: cpu_s, ..ResourceSample::default() };
        record.end(0, PhaseState::Done, end, 10, sample);
        record.close();
        record.report(Status::Completed, None, Vec::new()).notes.concat()
    };
    assert!(
        note(9.5).contains("login: 7 sends left") && note(9.5).contains("the load tester was at its limit")
    );
    assert!(note(1.2).contains("The load tester itself was not busy (0.12 cores)"), "{}", note(1.2));
}

#[test]
fn what_all_workers_take_part_in_counts_by_its_largest() {
    let mut record = record();
    for values in [[3.0, 9.0], [5.0, 7.0]] {
        let items = BTreeMap::from([(0, values[0]), (1, values[1])]);
        let progress = Progress {
            position: Position { phase: 1, step: 1 },
            largest: BTreeMap::from([("last_delivery".to_owned(), items)]),
            ..Progress::default()
        };
        record.add(&progress);
    }
    let report = record.report(Status::Completed, None, Vec::new());
    let last = report.metrics["last_delivery"];
    assert_eq!((last.count, last.min, last.max), (2, 5.0, 9.0));
}

#[test]
fn a_failed_player_or_a_lost_worker_is_no_success() {
    assert!(report().is_clean());
    let mut record = record();
    record.add_failed(3);
    let report = record.report(Status::Completed, None, Vec::new());
    assert_eq!((report.successful, report.failed, report.is_clean()), (7, 3, false));
}

#[test]
fn moments_are_written_in_utc() {
    let at = |seconds| text::rfc3339(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds));
    assert_eq!(at(0), "1970-01-01T00:00:00Z");
    assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
    assert_eq!(at(1_709_164_800), "2024-02-29T00:00:00Z");
    assert_eq!(at(1_767_225_599), "2025-12-31T23:59:59Z");
}

#[test]
fn assertions_find_their_figures() {
    let report = report();
    let check = |text: &str| text.parse::<Assertion>().expect("an assertion").check(&report);
    for text in [
        "login.percentile99<50",
        "metrics.login.percentile99point9 <= 10",
        "counts.logins==10",
        "errors==2",
        "errors.other==0",
        "phases.login.server.cpuMsPerLogin<2",
        "phases.0.timedOut==0",
        "failed=0",
    ] {
        assert_eq!(check(text), Ok(()), "{text}");
    }
    assert_eq!(check("login.max<10").expect_err("it is 10").to_string(), "expected login.max < 10, got 10");
    let unknown = check("login.percentile98<1").expect_err("there is none").to_string();
    assert!(unknown.contains("\"percentile98\"") && unknown.contains("percentile99"), "{unknown}");
    assert!(matches!(check("status==1"), Err(AssertionError::NoNumber(_))));
    assert!("login.max".parse::<Assertion>().is_err() && "<5".parse::<Assertion>().is_err());
}

#[test]
fn reports_are_put_side_by_side() {
    let (before, mut after) = (report(), report());
    if let Some(login) = after.metrics.get_mut("login") {
        login.percentile99 = 15.0;
    }
    let comparison = Comparison::of(vec![("before".to_owned(), before), ("after".to_owned(), after)]);
    let table = comparison.table();
    let line = table.lines().find(|line| line.starts_with("login, 99 %")).expect("a line");
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!(words[words.len() - 4..], ["10", "15", "+50.0", "%"]);
    assert!(comparison.svg().contains("<svg") && comparison.html().contains("<table>"));
}
