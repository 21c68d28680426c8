//! An orchestrator over HTTP, with workers that only say what they are told to.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::control::{Fault, NumberedOrder, Position, Progress, Registration, RegistrationAccepted};
use crate::measure::{TDigest, agent};
use crate::report::WorkerState;
use crate::report::samples::{scenario, target};

const TIMEOUT: Duration = Duration::from_secs(30);

/// An orchestrator, and how to speak to it.
struct Played {
    orchestrator: Orchestrator,
    agent: ureq::Agent,
    base: String,
}

/// A worker whose requests the test makes itself.
struct Puppet<'a> {
    played: &'a Played,
    id: u32,
    after: u64,
    sequence: u64,
    test: String,
    /// How far it said it was.
    last: Progress,
}

fn start(give_up: Duration) -> Played {
    let options = Options {
        key: Some("k".to_owned()),
        silence_limits: SilenceLimits { ask: give_up / 4, give_up },
        ..Options::default()
    };
    let orchestrator =
        Orchestrator::start("127.0.0.1:0".parse().expect("an address"), options).expect("it starts");
    let base = format!("http://{}", orchestrator.address());
    Played { orchestrator, agent: agent(TIMEOUT), base }
}

fn request() -> Value {
    json!({ "scenario": scenario(), "target": target(), "workers": 2, "set": ["players.count=20"] })
}

impl Played {
    fn call(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header("authorization", "Bearer k");
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut response = self.agent.run(request.body(body).expect("a request")).expect("an answer");
        let text = response.body_mut().read_to_string().expect("text");
        (response.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    fn submit(&self) -> String {
        let (status, answer) = self.call("POST", "/loadtests", Some(&request()));
        assert_eq!((status, &answer["status"]), (201, &json!("queued")));
        answer["loadTestId"].as_str().expect("an id").to_owned()
    }

    fn puppet(&self, name: &str) -> Puppet<'_> {
        let registration = Registration { name: name.to_owned(), players_max: 1000, boot_id: boot_id() };
        let body = serde_json::to_value(registration).expect("plain data");
        let (status, answer) = self.call("POST", "/v1/workers", Some(&body));
        assert_eq!(status, 201);
        let RegistrationAccepted { id } = serde_json::from_value(answer).expect("an id");
        Puppet { played: self, id, after: 0, sequence: 0, test: String::new(), last: Progress::default() }
    }

    fn report(&self, id: &str) -> Arc<Report> {
        assert!(self.orchestrator.wait(id, TIMEOUT), "it is over");
        self.orchestrator.report(id).expect("a report")
    }
}

impl Puppet<'_> {
    /// The next order that matters; requests for a report are answered.
    fn order(&mut self) -> Order {
        loop {
            let path = format!("/v1/workers/{}/orders?after={}", self.id, self.after);
            let (_, answer) = self.played.call("GET", &path, None);
            let orders: Vec<NumberedOrder> = serde_json::from_value(answer).expect("orders");
            let Some(NumberedOrder { number, order }) = orders.into_iter().next() else { continue };
            self.after = number;
            if order != Order::Report {
                return order;
            }
            self.say(self.last.clone());
        }
    }

    fn say(&mut self, progress: Progress) {
        self.sequence += 1;
        let Progress { position, done, online, .. } = progress;
        self.last = Progress { position, done, online, ..Progress::default() };
        let progress = Progress { test: self.test.clone(), sequence: self.sequence, ..progress };
        let body = serde_json::to_value(progress).expect("plain data");
        // Twice: the second time it counts for nothing.
        for _ in 0..2 {
            let path = format!("/v1/workers/{}/progress", self.id);
            assert_eq!(self.played.call("POST", &path, Some(&body)).0, 204);
        }
    }

    fn prepare(&mut self) -> (u32, u32, bool) {
        let Order::Prepare(job) = self.order() else { panic!("a job comes first") };
        self.test.clone_from(&job.test);
        self.say(Progress { done: true, ..Progress::default() });
        (job.first, job.count, job.publishes)
    }

    /// Goes through everything as told, with a login that took so many milliseconds for each player.
    fn play(mut self) {
        let (_, count, _) = self.prepare();
        loop {
            match self.order() {
                Order::Begin { position, .. } if position.phase == 0 => self.say(logins(position, count)),
                Order::Begin { position, .. } => {
                    self.say(Progress { position, done: true, online: count, ..Progress::default() });
                }
                Order::Finish { .. } => {
                    let position = Position::behind(&scenario());
                    return self.say(Progress { position, done: true, ..Progress::default() });
                }
                _ => {}
            }
        }
    }
}

fn logins(position: Position, count: u32) -> Progress {
    let mut progress = Progress { position, done: true, online: count, ..Progress::default() };
    progress.counts.insert("logins".to_owned(), count.into());
    let mut digest = TDigest::default();
    (0..count).for_each(|_| digest.add(f64::from(count)));
    progress.metrics.insert("login".to_owned(), digest);
    progress
}

#[test]
fn two_workers_go_through_a_test() {
    let played = start(TIMEOUT);
    let id = played.submit();
    let (one, two) = (played.puppet("one"), played.puppet("two"));
    thread::scope(|scope| {
        scope.spawn(|| one.play());
        scope.spawn(|| two.play());
    });
    let report = played.report(&id);
    assert_eq!((report.status, report.reason.as_deref()), (Status::Completed, None));
    assert_eq!((report.successful, report.failed, report.counts["logins"]), (20, 0, 20));
    let login = report.metrics["login"];
    assert_eq!((login.count, login.percentile50, login.percentile99), (20, 10.0, 10.0));
    assert_eq!(
        report.timeline.last().map(|row| row.online),
        Some(20),
        "farewells are no part of the timeline"
    );
    assert!(report.is_clean() && report.workers.iter().all(|worker| worker.state == WorkerState::Finished));
    let (status, over_http) = played.call("GET", &format!("/loadtests/{id}?wait=5"), None);
    assert_eq!((status, &over_http["status"]), (200, &json!("completed")));
    let (_, list) = played.call("GET", "/loadtests", None);
    assert_eq!(list["loadTests"][0]["scenario"], "sample");
}

#[test]
fn whoever_never_got_in_has_failed() {
    let played = start(TIMEOUT);
    let id = played.submit();
    let (one, mut two) = (played.puppet("one"), played.puppet("two"));
    thread::scope(|scope| {
        scope.spawn(|| one.play());
        scope.spawn(|| {
            let (_, count, _) = two.prepare();
            loop {
                match two.order() {
                    // Its share of the step is done, and three of its players are nowhere: a rate's shape ended before.
                    Order::Begin { position, .. } => two.say(logins(position, count - 3)),
                    Order::Finish { .. } => {
                        let position = Position::behind(&scenario());
                        return two.say(Progress { position, done: true, ..Progress::default() });
                    }
                    _ => {}
                }
            }
        });
    });
    let report = played.report(&id);
    assert_eq!((report.status, report.failed), (Status::Failed, 3));
    assert!(report.shortfalls[0].starts_with("3 of 20 players failed"), "{:?}", report.shortfalls);
}

#[test]
fn shares_follow_one_another_and_one_worker_publishes() {
    let played = start(TIMEOUT);
    let id = played.submit();
    let (mut one, mut two) = (played.puppet("one"), played.puppet("two"));
    assert_eq!((one.prepare(), two.prepare()), ((0, 10, true), (10, 10, false)));
    let (status, _) = played.call("DELETE", &format!("/loadtests/{id}"), None);
    assert_eq!(status, 204);
    for puppet in [&mut one, &mut two] {
        while !matches!(puppet.order(), Order::Finish { .. }) {}
        puppet.say(Progress { position: Position::behind(&scenario()), done: true, ..Progress::default() });
    }
    assert_eq!(played.report(&id).status, Status::Aborted);
}

#[test]
fn a_silent_worker_is_given_up_and_the_test_goes_on() {
    let played = start(Duration::from_millis(400));
    let id = played.submit();
    let (one, mut two) = (played.puppet("one"), played.puppet("two"));
    thread::scope(|scope| {
        scope.spawn(|| one.play());
        two.prepare();
    });
    let report = played.report(&id);
    assert_eq!((report.status, report.failed, report.successful), (Status::Failed, 10, 10));
    assert!(report.reason.as_deref().is_some_and(|why| why.contains("1 of 2 workers were lost")));
    assert!(!report.is_clean() && report.notes[0].contains("two was lost"), "{:?}", report.notes);
}

#[test]
fn a_test_ends_when_nobody_is_left() {
    let played = start(TIMEOUT);
    let id = played.submit();
    let (mut one, mut two) = (played.puppet("one"), played.puppet("two"));
    thread::scope(|scope| {
        for puppet in [&mut one, &mut two] {
            scope.spawn(|| {
                let (_, count, _) = puppet.prepare();
                loop {
                    match puppet.order() {
                        Order::Begin { position, .. } => {
                            assert_eq!(position.phase, 0, "nobody is there for the next phase");
                            let failed = count.into();
                            puppet.say(Progress { position, done: true, failed, ..Progress::default() });
                        }
                        Order::Finish { .. } => {
                            let position = Position::behind(&scenario());
                            return puppet.say(Progress { position, done: true, ..Progress::default() });
                        }
                        _ => {}
                    }
                }
            });
        }
    });
    let report = played.report(&id);
    assert_eq!((report.status, report.failed), (Status::Failed, 20));
    assert_eq!(report.reason.as_deref(), Some("No player was in session when hold was to begin."));
}

#[test]
fn a_fault_ends_the_test_in_a_sentence() {
    let played = start(TIMEOUT);
    let id = played.submit();
    let (mut one, mut two) = (played.puppet("one"), played.puppet("two"));
    two.prepare();
    let Order::Prepare(job) = one.order() else { panic!("a job comes first") };
    one.test = job.test;
    let fault = Fault::Lacks { feature: "pubsub".to_owned(), why: "nobody offers it".to_owned() };
    one.say(Progress { done: true, fault: Some(fault), ..Progress::default() });
    for puppet in [&mut one, &mut two] {
        while !matches!(puppet.order(), Order::Finish { .. }) {}
        puppet.say(Progress { position: Position::behind(&scenario()), done: true, ..Progress::default() });
    }
    let report = played.report(&id);
    assert_eq!(report.status, Status::Unsupported);
    assert_eq!(report.reason.as_deref(), Some("The scenario needs pubsub: nobody offers it."));
}

#[test]
fn requests_that_make_no_sense_are_problems() {
    let played = start(TIMEOUT);
    let code = |method, path: &str, body: Option<&Value>| played.call(method, path, body).0;
    assert_eq!(code("GET", "/loadtests/none", None), 404);
    assert_eq!(code("DELETE", "/loadtests/none", None), 404);
    assert_eq!(code("GET", "/v1/workers/7/orders", None), 404);
    assert_eq!(code("POST", "/loadtests", Some(&json!({ "what": 1 }))), 400);
    let unknown = json!({ "scenario": "tea-party", "target": target() });
    let (status, problem) = played.call("POST", "/loadtests", Some(&unknown));
    assert_eq!(status, 422);
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("login-storm")), "{problem}");
    let mut stranger = played.agent.get(format!("{}/loadtests", played.base)).call().expect("an answer");
    let text = stranger.body_mut().read_to_string().expect("text");
    assert_eq!(stranger.status().as_u16(), 401, "{text}");
}
