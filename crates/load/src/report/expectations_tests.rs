use std::time::Instant;

use super::super::samples::target;
use super::super::{Record, ResourceSample, Status};
use super::*;
use crate::control::{Position, Progress};
use crate::plan::Scenario;

const PLAYERS: u64 = 10;

/// Counts by name.
type Counts = BTreeMap<&'static str, u64>;

/// What a phase counts if all is well.
fn well(action: &Action) -> Counts {
    Counts::from_iter(match action {
        Action::Login(_) => vec![("logins", PLAYERS)],
        Action::Hold { .. } | Action::Drop | Action::AwaitGone => Vec::new(),
        Action::Befriend(_) => vec![("mutual_contacts", 20)],
        // Of two who arrive at the same time each may be told twice.
        Action::Arrive(_) => {
            vec![("logins", PLAYERS), ("mutual_contacts", 20), ("presences", 20), ("duplicates", 3)]
        }
        Action::Subscribe { .. } => vec![("subscribed", PLAYERS)],
        Action::Publish(publish) => {
            let items = publish.items.into();
            vec![("sent", items), ("deliveries", items * PLAYERS)]
        }
        Action::Notify(_) => vec![("sent", 40), ("deliveries", 40), ("receipts", 40)],
        Action::Talk(_) | Action::Play(_) => vec![("sent", 40), ("deliveries", 40)],
        Action::EnterRooms(_) => vec![("entered", PLAYERS)],
        Action::Speak(_) => vec![("sent", 8), ("deliveries", 40)],
        Action::ReadArchive(_) => vec![("pages", PLAYERS), ("archived", 90), ("archived_in_test", 80)],
        Action::Resume(_) => {
            vec![("sent", 40), ("deliveries", 40), ("dropped", 5), ("streams_resumed", 5), ("skipped", 7)]
        }
        Action::Churn { .. } => vec![("dropped", 5), ("logins", 5)],
    })
}

/// How each expectation of an action is missed: by a count, and the sentence without the phase's name.
fn missed(action: &Action) -> Vec<(&'static str, u64, String)> {
    let exchanged = |what: &str, came: u64| {
        vec![
            ("missing", 3, format!("3 of {} {what} never came.", came + 3)),
            ("duplicates", 3, format!("3 of {came} {what} came more than once.")),
            ("out_of_order", 3, format!("3 of {came} {what} came after a later one of the same sender.")),
            ("deliveries", 0, "nothing was delivered.".to_owned()),
            ("sent", 0, "nothing was sent.".to_owned()),
        ]
    };
    match action {
        Action::Login(_) | Action::Hold { .. } | Action::Drop | Action::AwaitGone => Vec::new(),
        Action::Befriend(_) => vec![
            ("missing", 3, "3 of 23 contacts are not mutual.".to_owned()),
            ("mutual_contacts", 0, "nobody has a contact.".to_owned()),
        ],
        Action::Arrive(_) => vec![
            ("missing", 3, "3 of 23 presences of contacts never came.".to_owned()),
            ("presences", 0, "no presence of a contact came.".to_owned()),
        ],
        Action::Subscribe { .. } => vec![("subscribed", 0, "nobody is subscribed.".to_owned())],
        Action::Publish(publish) => {
            let items = u64::from(publish.items);
            let mut all = exchanged("deliveries of items", items * PLAYERS);
            all.push(("sent", items - 1, format!("{} of {items} items were published.", items - 1)));
            all
        }
        Action::Notify(_) => {
            let mut all = exchanged("notifications that were accepted", 40);
            all.push(("missing_receipts", 3, "3 of 43 acknowledgements were not reported.".to_owned()));
            all
        }
        Action::Talk(_) => exchanged("messages", 40),
        Action::Play(_) => exchanged("inputs", 40),
        Action::EnterRooms(_) => vec![("entered", 0, "nobody is in a room.".to_owned())],
        Action::Speak(_) => exchanged("messages in rooms", 40),
        Action::ReadArchive(_) => vec![
            ("archived_in_test", 77, "3 of 80 messages of this test are not in the archives.".to_owned()),
            ("duplicates", 3, "3 messages were on a page twice, or on two pages.".to_owned()),
            ("pages", 0, "no page of an archive was read.".to_owned()),
        ],
        Action::Resume(_) => {
            let mut all = exchanged("messages", 40);
            let lost = "3 sessions were lost that the scenario did not cut; their players came back.";
            all.push(("lost", 3, lost.to_owned()));
            let anew = "3 of 8 returns did not resume their streams (3 × item-not-found).";
            all.push(("not_resumed", 3, anew.to_owned()));
            all.push(("dropped", 0, "no connection was cut.".to_owned()));
            all
        }
        Action::Churn { .. } => vec![("dropped", 0, "no player reconnected.".to_owned())],
    }
}

/// The report of a test whose phases counted this, and where one of them had errors.
fn report(scenario: &Scenario, counts: &[Counts], errors: Option<(usize, &str, u64)>, failed: u64) -> Report {
    let mut record = Record::new("t".to_owned(), scenario.clone(), target());
    for (at, counts) in counts.iter().enumerate() {
        record.begin(at, Instant::now(), ResourceSample::default());
        let mut progress = Progress {
            position: Position { phase: at as u32, step: 1 },
            counts: counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            ..Progress::default()
        };
        if let Some((_, kind, count)) = errors.filter(|(phase, ..)| *phase == at) {
            progress.errors.insert(kind.to_owned(), count);
        }
        if let Some(count) = counts.get("not_resumed") {
            progress.counts.insert("not_resumed_item-not-found".to_owned(), *count);
        }
        record.add(&progress);
        record.end(at, PhaseState::Done, Instant::now(), PLAYERS as u32, ResourceSample::default());
    }
    record.add_failed(failed);
    record.close();
    record.report(Status::Completed, None, Vec::new())
}

fn shipped() -> Vec<Scenario> {
    let mut all: Vec<_> = Scenario::names().filter_map(Scenario::shipped).collect();
    all.iter_mut().for_each(|scenario| scenario.players.count = PLAYERS as u32);
    assert!(all.len() >= 12);
    all
}

#[track_caller]
fn fails(report: &Report, sentence: &str) {
    assert_eq!(report.status, Status::Failed, "{sentence}");
    assert!(
        report.shortfalls.iter().any(|told| told.starts_with(sentence)),
        "{:?}: {sentence}",
        report.shortfalls
    );
    assert!(report.has_missed() && report.summary().contains(sentence) && report.html().contains("Failed"));
}

#[test]
fn every_scenario_passes_when_all_is_well() {
    for scenario in shipped() {
        let counts: Vec<_> = scenario.phases.iter().map(|phase| well(&phase.action)).collect();
        let report = report(&scenario, &counts, None, 0);
        assert_eq!(
            (report.status, report.shortfalls.len()),
            (Status::Completed, 0),
            "{:?}",
            report.shortfalls
        );
    }
}

#[test]
fn every_scenario_fails_when_an_expectation_is_missed() {
    let mut actions = std::collections::BTreeSet::new();
    for mut scenario in shipped() {
        scenario.allow = Allow::default();
        let counts: Vec<_> = scenario.phases.iter().map(|phase| well(&phase.action)).collect();
        for (at, phase) in scenario.phases.iter().enumerate() {
            actions.insert(phase.action.name());
            for (name, count, words) in missed(&phase.action) {
                let mut counts = counts.clone();
                counts[at].insert(name, count);
                fails(&report(&scenario, &counts, None, 0), &format!("{}: {words}", phase.name()));
            }
            let refused = report(&scenario, &counts, Some((at, "do: forbidden (no)", 2)), 0);
            fails(&refused, &format!("{}: 2 errors (2 × do: forbidden (no)).", phase.name()));
        }
        fails(&report(&scenario, &counts, None, 3), "3 of 10 players failed: they did not log in, or lost");
    }
    assert_eq!(actions.len(), 16, "a new action needs an expectation, and a shipped scenario: {actions:?}");
}

#[test]
fn what_is_allowed_passes_and_one_more_does_not() {
    for mut scenario in shipped() {
        scenario.allow = Allow { failed: 3, missing: 3, duplicates: 3, errors: 2, ..Allow::default() };
        (scenario.allow.out_of_order, scenario.allow.lost) = (3, 3);
        (scenario.allow.not_resumed, scenario.allow.missing_receipts) = (3, 3);
        let counts: Vec<_> = scenario.phases.iter().map(|phase| well(&phase.action)).collect();
        for (at, phase) in scenario.phases.iter().enumerate() {
            for (name, count, words) in missed(&phase.action).into_iter().filter(|(_, count, _)| *count == 3)
            {
                let with = |count| {
                    let mut counts = counts.clone();
                    counts[at].insert(name, count);
                    report(&scenario, &counts, Some((at, "do: forbidden", 2)), 3)
                };
                assert_eq!(with(count).shortfalls, [""; 0], "{words}");
                let more = with(4);
                assert!(
                    more.shortfalls.len() == 1 && more.shortfalls[0].ends_with(" 3 are allowed."),
                    "{words}"
                );
            }
        }
        let none: Vec<_> = counts.iter().map(|_| Counts::default()).collect();
        let expects = scenario.phases.iter().any(|phase| !missed(&phase.action).is_empty());
        let report = report(&scenario, &none, None, 0);
        assert_eq!(report.status == Status::Failed, expects, "nothing at all is never allowed");
    }
}

#[test]
fn why_players_failed_is_told_with_what_can_be_done() {
    let scenario = Scenario::shipped("login-storm").expect("it is shipped");
    let counts: Vec<_> = scenario.phases.iter().map(|phase| well(&phase.action)).collect();
    let kind = "login: registration failed: resource-constraint (too many registrations from your address)";
    let report = report(&scenario, &counts, Some((0, kind, 200)), 200);
    assert_eq!(report.shortfalls.len(), 1);
    let told = &report.shortfalls[0];
    assert!(
        told.contains(
            "The server refused 200 registrations. Carillon: raise limits.registrations_per_address"
        )
    );
}

#[test]
fn an_assertion_of_an_upper_bound_allows_as_much() {
    let allows = |text: &str| text.parse::<crate::report::Assertion>().expect("an assertion").allows();
    assert_eq!(allows("missing<=5"), Some((FaultKind::Missing, 5)));
    assert_eq!(allows("counts.out_of_order<5"), Some((FaultKind::OutOfOrder, 4)));
    assert_eq!(allows("errors==0"), Some((FaultKind::Errors, 0)));
    assert_eq!(allows("missing>=5"), None);
    assert_eq!(allows("RTT.percentile99<5"), None);
    let scenario = Scenario::shipped("fanout").expect("it is shipped");
    let mut counts: Vec<_> = scenario.phases.iter().map(|phase| well(&phase.action)).collect();
    let check = |counts: &[Counts], text: &str| {
        let report = report(&scenario, counts, None, 0);
        text.parse::<crate::report::Assertion>().expect("an assertion").check(&report).is_ok()
    };
    assert!(check(&counts, "missing<=5") && check(&counts, "lost==0") && check(&counts, "deliveries>1"));
    counts[3].insert("missing", 6);
    assert!(!check(&counts, "missing<=5") && !check(&counts, "counts.missing==0"));
}
