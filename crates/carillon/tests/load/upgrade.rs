//! A command that runs while players talk, and what is told of it.

use std::thread;
use std::time::Duration;

use carillon_load::orchestrate::{Options, Orchestrator, Request, ServerRequest, Upgrade};
use carillon_load::plan::Scenario;
use carillon_load::report::{Report, Status};
use carillon_load::worker::link::{WorkerOptions, work};

use crate::support::World;

const PATIENCE: Duration = Duration::from_secs(60);
const SCENARIO: &str = "
name = 'test'
summary = 'A test.'
[players]
count = 20
[[phases]]
do = 'login'
[[phases]]
do = 'talk'
rate = 200
for = '1s'
";

/// Runs the scenario with a worker in this process, and a command half a second after its players begin to talk.
fn run(command: &str) -> Report {
    let world = World::new(20, &[]);
    let upgrade = Upgrade { command: command.to_owned(), phase: None, at: Duration::from_millis(500) };
    let options = Options { upgrade: Some(upgrade), ..Options::default() };
    let orchestrator = Orchestrator::start("127.0.0.1:0".parse().unwrap(), options).unwrap();
    let options = WorkerOptions {
        orchestrator: format!("http://{}", orchestrator.address()),
        key: None,
        players_max: 100,
    };
    // It is not waited for: a worker whose orchestrator is gone looks for it until the process ends.
    thread::spawn(move || work(&options, |_| {}));
    let request = Request {
        scenario: serde_json::to_value(Scenario::parse(SCENARIO).unwrap()).unwrap(),
        set: Vec::new(),
        target: world.target.clone(),
        workers: Some(1),
        threads: Some(2),
        server: ServerRequest::default(),
    };
    let id = orchestrator.submit(request).unwrap();
    assert!(orchestrator.wait(&id, PATIENCE), "it is over");
    let report = orchestrator.report(&id).unwrap();
    Report::clone(&report)
}

#[test]
fn what_players_notice_around_a_command_is_told() {
    let report = run("echo one; echo two >&2");
    assert_eq!(report.status, Status::Completed, "{:?}", report.reason);
    let upgrade = report.upgrade.as_ref().expect("there was one");
    assert_eq!((upgrade.phase.as_str(), upgrade.exit_code, &upgrade.problem), ("talk", Some(0), &None));
    let mut output = upgrade.output.clone();
    output.sort();
    assert_eq!(output, ["one", "two"]);
    assert!(upgrade.start_seconds.is_some_and(|at| at >= upgrade.due_seconds - 0.1));
    let counts = [upgrade.disconnects, upgrade.lost, upgrade.duplicates, upgrade.out_of_order];
    assert_eq!(counts, [0; 4]);
    // Ten messages for each player, five of them after the command.
    assert_eq!(upgrade.silence.map(|silence| silence.count), Some(20));
    assert_eq!(upgrade.silence_before.map(|silence| silence.count), Some(20));
    let deliveries = upgrade.slices.iter().map(|slice| slice.deliveries_per_second / 10.0).sum::<f64>();
    assert_eq!(deliveries.round() as u64, report.counts["deliveries"]);
    let (first, last) = (upgrade.slices.first().unwrap(), upgrade.slices.last().unwrap());
    assert!(first.at < 0.0 && last.at > 0.0, "{first:?} {last:?}");
    assert_eq!(upgrade.csv().lines().count(), upgrade.slices.len() + 1);
    assert!(report.summary().contains("exit code 0") && report.html().contains("around the command"));
}

#[test]
fn a_command_that_fails_fails_the_test() {
    let report = run("exit 3");
    assert_eq!(report.status, Status::Failed);
    assert_eq!(report.reason.as_deref(), Some("The command \"exit 3\" failed: it ended with 3."));
    assert_eq!(report.upgrade.and_then(|upgrade| upgrade.exit_code), Some(3));
}
