//! Runs that cannot go well: one clear sentence each, and a report that says what happened.

use super::support::{World, load};
use serde_json::json;
use std::net::TcpListener;

#[test]
fn a_target_that_is_not_there() {
    let world = World::new();
    // Bound and never listening again once it is dropped.
    let nowhere = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    // Nothing is measured, so nothing is said of the assertion.
    let more = ["--players", "5", "--target", &nowhere, "--assert", "login.percentile99<50"];
    let outcome = world.run("login-storm", &more);
    assert_eq!((outcome.status, outcome.at("/status")), (1, &json!("failed")), "{}", outcome.out);
    assert!(outcome.reason().contains(&nowhere) && outcome.out.contains(outcome.reason()), "{}", outcome.out);
}

#[test]
fn a_wrong_password() {
    let world = World::new();
    let outcome = world.run("login-storm", &["--players", "5", "--password", "wrong"]);
    assert_eq!((outcome.status, outcome.at("/status")), (1, &json!("failed")), "{}", outcome.out);
    assert!(outcome.reason().contains("does not accept its password"), "{}", outcome.reason());
    assert!(!outcome.report.unwrap().to_string().contains("wrong\""));
}

#[test]
fn accounts_that_are_missing_are_players_that_fail() {
    let world = World::new();
    let outcome = world.run("login-storm", &["--players", "30", "--set", "settle.for=0.1"]);
    assert_eq!((outcome.status, outcome.at("/status")), (4, &json!("failed")), "{}", outcome.out);
    assert!(outcome.reason().starts_with("10 of 30 players failed"), "{}", outcome.reason());
    assert!(outcome.out.starts_with("verdict "), "{}", outcome.out);
    assert_eq!((outcome.at("/successful"), outcome.at("/failed")), (&json!(20), &json!(10)));
    let errors = outcome.at("/errors").as_object().unwrap();
    assert_eq!(errors.values().filter_map(serde_json::Value::as_u64).sum::<u64>(), 10, "{errors:?}");
}

/// The topic is that of the API's key: the scenario's publisher may not publish to it.
#[test]
fn publications_that_are_refused_fail_the_test() {
    let world = World::new();
    world.put("/v1/topics/load?domain=localhost", "{}");
    let small = ["--players", "5", "--set", "publish.items=1", "--set", "settle.for=0.1"];
    let run =
        |more: &[&str]| world.run("fanout", &[&small[..], &["--set", "publish.timeout=2s"], more].concat());
    let outcome = run(&[]);
    assert_eq!((outcome.status, outcome.at("/status")), (4, &json!("failed")), "{}", outcome.out);
    assert!(outcome.reason().contains("publish: forbidden"), "{}", outcome.reason());
    assert!(outcome.out.starts_with("verdict                Failed\n"), "{}", outcome.out);
    assert!(outcome.errors.contains("error: publish: forbidden"), "{}", outcome.errors);
    // That nothing came at all is never allowed.
    let outcome = run(&["--assert", "errors<=9", "--assert", "missing<=99"]);
    assert_eq!(outcome.status, 4, "{}{}", outcome.out, outcome.errors);
    assert_eq!(outcome.reason(), "publish: nothing was delivered. publish: timed out.");
}

#[test]
fn registrations_that_are_refused_name_the_setting() {
    // One shard: each counts for itself.
    let settings =
        ["registration.in_band=true", "limits.registrations_per_address=3", "shards=1"].map(str::to_owned);
    let world = World::with(&settings);
    let register = |players: &str, prefix: &str| {
        let options =
            ["--players", players, "--register", "--user-prefix", prefix, "--set", "settle.for=0.1"];
        world.run("login-storm", &options)
    };
    let outcome = register("10", "many");
    assert!(outcome.reason().contains("one address register 3 accounts"), "{}", outcome.reason());
    let remedy = "Carillon: raise limits.registrations_per_address";
    assert!(outcome.reason().contains(remedy), "{}", outcome.reason());
    // As many as may be; how many were before them, only the refusals tell.
    assert_eq!(register("2", "few").status, 0);
    let outcome = register("3", "more");
    assert!(outcome.reason().contains(remedy), "{}", outcome.reason());
    // Without accounts, and without the option by which they are made.
    let outcome = world.run("login-storm", &["--players", "5", "--user-prefix", "nobody"]);
    assert!(outcome.reason().contains("--register"), "{}", outcome.reason());
}

#[test]
fn a_certificate_that_has_expired() {
    // Issued by an authority: a certificate that is itself the trusted one is taken as it is.
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let trusted = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2019, 1, 1);
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let certificate = params.signed_by(&key, &issuer).unwrap().pem();
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (certificate, key) = (write("old.crt", &certificate), write("old.key", &key.serialize_pem()));
    let trusted = write("authority.crt", &trusted);
    let world = World::with(&[format!("tls.certificate={certificate}"), format!("tls.key={key}")]);
    let outcome = world.run("login-storm", &["--players", "5", "--ca", &trusted]);
    assert_eq!((outcome.status, outcome.at("/status")), (1, &json!("failed")), "{}", outcome.out);
    assert!(outcome.reason().contains("certificate"), "{}", outcome.reason());
    assert!(outcome.reason().to_lowercase().contains("expired"), "{}", outcome.reason());
}

#[test]
fn a_feature_that_is_missing() {
    let world = World::new();
    let outcome = world.run("direct", &["--players", "5"]);
    assert_eq!((outcome.status, outcome.at("/status")), (1, &json!("unsupported")), "{}", outcome.out);
    assert!(
        outcome.reason().starts_with("The scenario needs the HTTP API: pass --http and --key."),
        "{}",
        outcome.reason()
    );
}

#[test]
fn mistakes_on_the_command_line() {
    let world = World::new();
    let bad = world.file("bad.toml", "name = \"x\"\nsummary = \"x\"\n[players]\ncount = \"many\"\n");
    let says = |scenario: &str, more: &[&str]| {
        let outcome = world.run(scenario, more);
        assert_eq!((outcome.status, outcome.report.is_none()), (2, true), "{}", outcome.errors);
        outcome.errors
    };
    let errors = says(&bad, &[]);
    assert!(errors.contains("bad.toml") && errors.contains("line 4"), "{errors}");
    let errors = says("tea-party", &[]);
    assert!(errors.contains("\"tea-party\"") && errors.contains("login-storm"), "{errors}");
    let errors = says("idle", &["--set", "players.cuont=5"]);
    assert!(errors.contains("players.cuont") && errors.contains("players.count"), "{errors}");
    let errors = says("idle", &["--server-pid", "4294967295"]);
    assert!(errors.contains("/proc/4294967295"), "{errors}");
    let listed = load().arg("scenarios").output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains("login-storm"));
}
