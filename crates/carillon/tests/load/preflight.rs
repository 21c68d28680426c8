//! What cannot be run is said before anyone is connected, in one sentence.

use crate::support::{World, fault};
use carillon_load::control::{Fault, Job};
use tempfile::TempDir;

const PUBLISH: &str = "
name = 'test'
summary = 'A test.'
[players]
count = 2
[[phases]]
do = 'login'
[[phases]]
do = 'subscribe'
topic = 'news'
[[phases]]
do = 'publish'
topic = 'news'
by = 'http'
items = 1
";

fn target(job: Job) -> String {
    match fault(job) {
        Fault::Target { why } => why,
        other => panic!("{other:?}"),
    }
}

fn lacks(job: Job) -> (String, String) {
    match fault(job) {
        Fault::Lacks { feature, why } => (feature, why),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_target_that_lets_nobody_in_is_told() {
    let world = World::new(2, &[]);
    let mut job = world.job(PUBLISH);
    job.target.password = "wrong".to_owned();
    let why = target(job);
    let expected = "refused the login of u0@localhost: the server does not accept its password, or does not know the account; \
                    --register registers the accounts first";
    assert!(why.ends_with(expected), "{why}");

    let mut job = world.job(PUBLISH);
    let (certificate, _) = other_certificate();
    job.target.ca_pem = Some(certificate);
    let why = target(job);
    assert!(why.contains("its certificate or TLS is not accepted"), "{why}");

    let mut job = world.job(PUBLISH);
    // A port that was free a moment ago and is nobody's.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    job.target.address = format!("127.0.0.1:{port}");
    let why = target(job);
    assert_eq!(why, format!("127.0.0.1:{port} cannot be reached: connection refused"));

    let mut job = world.job(PUBLISH);
    job.target.address = "nowhere.invalid:5222".to_owned();
    assert!(target(job).contains("cannot be resolved"));
}

#[test]
fn what_the_scenario_needs_and_the_target_lacks_is_told() {
    let world = World::new(2, &["features.disabled=pubsub"]);
    let (feature, why) = lacks(world.job(PUBLISH));
    assert_eq!(feature, "pubsub");
    assert!(why.starts_with("pubsub.localhost does not answer service discovery: "), "{why}");
}

#[test]
fn the_api_and_its_key_are_tried() {
    let world = World::new(2, &[]);
    let mut job = world.job(PUBLISH);
    job.target.key = None;
    let (feature, why) = lacks(job);
    assert_eq!((feature.as_str(), why.as_str()), ("the HTTP API", "pass --http and --key"));

    let mut job = world.job(PUBLISH);
    job.target.key = Some("crl_wrong".to_owned());
    assert!(target(job).ends_with("does not accept the key"));
}

#[test]
fn a_job_that_makes_no_sense_is_told() {
    let world = World::new(0, &[]);
    let mut job = world.job(PUBLISH);
    job.test = "a b".to_owned();
    assert!(matches!(fault(job), Fault::Worker { why } if why.contains("not a valid test id")));
    let mut job = world.job(PUBLISH);
    job.count = u32::MAX / 2;
    assert!(matches!(fault(job), Fault::Worker { why } if why.contains("file descriptors")));
}

/// A certificate that is not the node's.
fn other_certificate() -> (String, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    carillon_server::tls::Settings::self_signed_in(dir.path(), &["localhost".to_owned()]).unwrap();
    let pem = std::fs::read_dir(dir.path())
        .unwrap()
        .filter_map(|entry| std::fs::read_to_string(entry.unwrap().path()).ok())
        .find(|text| text.contains("BEGIN CERTIFICATE"))
        .expect("it writes its certificate");
    (pem, dir)
}
