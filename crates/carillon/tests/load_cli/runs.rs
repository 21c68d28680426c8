//! Runs that go well, and runs in which a process does not.

use super::support::{World, children, load};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Logins, a fan-out over HTTP, and everyone gone.
const SHORT: &str = r#"
name = "short"
summary = "Everything once."
[players]
count = 20
[[phases]]
do = "login"
[[phases]]
do = "subscribe"
topic = "news"
[[phases]]
do = "publish"
topic = "news"
by = "http"
items = 3
[[phases]]
do = "drop"
[[phases]]
do = "await-gone"
timeout = "30s"
"#;

#[test]
fn a_run_of_two_processes_measures_and_reports() {
    let world = World::new();
    let (scenario, page) = (world.file("short.toml", SHORT), world.path("page.html").display().to_string());
    let (http, key, pid) = (world.http(), world.key(), std::process::id().to_string());
    let more = ["--http", &http, "--key", &key, "--server-pid", &pid, "--workers", "2", "--html", &page];
    let asserted =
        ["--assert", "RTT.count==60", "--assert", "last_delivery.count==3", "--assert", "errors==0"];
    let outcome = world.run(&scenario, &[&more[..], &asserted[..]].concat());
    assert_eq!(outcome.status, 0, "{}{}", outcome.out, outcome.errors);
    assert_eq!(outcome.at("/status"), "completed");
    assert_eq!((outcome.at("/successful"), outcome.at("/failed")), (&json!(20), &json!(0)));
    assert_eq!(
        (outcome.at("/workers/0/players"), outcome.at("/workers/1/players")),
        (&json!(10), &json!(10))
    );
    assert_eq!(outcome.at("/metrics/gone/count"), &json!(1));
    assert!(outcome.at("/phases/0/server/cpuMsPerLogin").is_f64());
    assert!(outcome.out.contains("20 successful, 0 failed"), "{}", outcome.out);
    assert!(!outcome.report.unwrap().to_string().contains(&key));
    assert!(std::fs::read_to_string(&page).unwrap().contains("</html>"));
}

#[test]
fn an_assertion_that_does_not_hold_has_a_status_of_its_own() {
    let world = World::new();
    let more = ["--players", "5", "--set", "settle.for=0.1", "--assert", "login.percentile50<0"];
    let outcome = world.run("login-storm", &more);
    assert_eq!(outcome.status, 3, "{}{}", outcome.out, outcome.errors);
    assert!(outcome.errors.contains("expected login.percentile50 < 0, got "), "{}", outcome.errors);
    let path = world.path("report.json").display().to_string();
    let compared = load().args(["compare", &path, &path]).output().unwrap();
    assert!(compared.status.success() && String::from_utf8_lossy(&compared.stdout).contains("login, 99 %"));
}

#[test]
fn metrics_tell_what_the_server_spent() {
    let world = World::new();
    let metrics = format!("{}/metrics", world.http());
    let more = ["--players", "5", "--set", "settle.for=0.1", "--metrics-url", &metrics];
    let outcome = world.run("login-storm", &more);
    assert_eq!(outcome.status, 0, "{}{}", outcome.out, outcome.errors);
    assert!(outcome.at("/server/memoryBytes").as_u64().is_some_and(|bytes| bytes > 0));
}

#[test]
fn a_worker_that_is_killed_is_told_of_and_the_run_ends() {
    let world = World::new();
    let scenario = SHORT.replace("do = \"subscribe\"\ntopic = \"news\"", "do = \"hold\"\nfor = \"3s\"");
    let scenario =
        world.file("held.toml", &scenario[..scenario.find("[[phases]]\ndo = \"publish\"").unwrap()]);
    let mut command = world.command(&scenario, &["--workers", "2", "--lost-after", "1s"]);
    let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    let held = lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("[2/2] hold")));
    assert!(held.is_some(), "everyone is in session");
    let workers = children(&run);
    assert_eq!(workers.len(), 2);
    assert!(Command::new("kill").args(["-9", &workers[1].to_string()]).status().unwrap().success());
    let rest = std::thread::spawn(move || lines.map_while(Result::ok).collect::<Vec<_>>());
    let outcome = world.outcome(&run.wait_with_output().unwrap());
    rest.join().unwrap();
    assert_eq!(outcome.status, 4, "{}", outcome.out);
    assert_eq!((outcome.at("/successful"), outcome.at("/failed")), (&json!(10), &json!(10)));
    assert!(outcome.at("/notes/0").as_str().is_some_and(|note| note.contains("was lost")), "{}", outcome.out);
    assert!(
        workers.iter().all(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists()),
        "nobody is left"
    );
}

#[test]
fn a_run_that_is_told_to_end_closes_everything_and_reports() {
    let world = World::new();
    let mut command = world.command("idle", &["--players", "5"]);
    let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.is_ok_and(|line| line.contains("5/5 online"))));
    let workers = children(&run);
    assert!(Command::new("kill").args(["-TERM", &run.id().to_string()]).status().unwrap().success());
    let rest = std::thread::spawn(move || lines.map_while(Result::ok).count());
    let outcome = world.outcome(&run.wait_with_output().unwrap());
    rest.join().unwrap();
    assert_eq!((outcome.status, outcome.at("/status")), (1, &json!("aborted")));
    assert!(
        workers.iter().all(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists()),
        "nobody is left"
    );
}
