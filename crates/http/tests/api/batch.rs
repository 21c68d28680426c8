//! A stream of notifications.

use crate::support::device::Device;
use crate::support::{World, world, world_with};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use std::convert::Infallible;

fn batch(world: &World, body: Body) -> Request<Body> {
    let mut request = world.request(Method::POST, "/v1/notifications/batch", body);
    request.headers_mut().insert(header::CONTENT_TYPE, "application/x-ndjson".parse().unwrap());
    request
}

#[tokio::test]
async fn each_line_has_its_answer_in_order() {
    let world = world_with(|options| options.settings.batch_line_bytes_max = 200);
    world.enrol("alice").await;
    world.enrol("bob").await;
    let long = format!("{{\"to\":\"alice\",\"payload\":\"{}\"}}", "a".repeat(300));
    let lines = [
        r#"{"to":"alice","payload":1}"#,
        "",
        r#"{"to":"nobody","payload":1}"#,
        r#"{"to":"bob","payload":1,"nope":2}"#,
        "not json",
        &long,
        r#"{"to":["alice"],"payload":1}"#,
        r#"{"to":"bob@localhost","payload":{"a":[1,2]}}"#,
    ];
    let reply = world.call(batch(&world, Body::from(lines.join("\n")))).await;
    assert_eq!(reply.status, StatusCode::OK);
    let results = reply.lines();
    let numbers: Vec<_> = results.iter().map(|r| r["line"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 3, 4, 5, 6, 7, 8]);
    let codes: Vec<_> = results.iter().map(|r| r["error"]["code"].as_str().unwrap_or("")).collect();
    assert_eq!(codes, ["", "unknown-device", "unknown-field", "not-json", "too-large", "wrong-type", ""]);
    assert_eq!(results[2]["error"]["pointer"], "/nope");
    assert_eq!((&results[6]["to"], &results[6]["state"]), (&json!("bob@localhost"), &json!("stored")));
    assert_eq!(results[6]["id"].as_str().unwrap().len(), 26);
}

#[tokio::test]
async fn lines_wait_for_room() {
    let world = world_with(|options| options.settings.body_bytes_max = 100);
    world.enrol("alice").await;
    let long = format!("{{\"to\":\"alice\",\"payload\":\"{}\"}}", "a".repeat(300));
    let short = r#"{"to":"alice","payload":1}"#.to_owned();
    // Each long one is more than there is room for: it goes alone.
    let lines: Vec<_> = (0..50).map(|n| if n % 5 == 0 { long.clone() } else { short.clone() }).collect();
    let reply = world.call(batch(&world, Body::from(lines.join("\n")))).await;
    let results = reply.lines();
    assert!(results.iter().all(|r| r["state"] == "stored"), "{results:?}");
    assert!(results.iter().map(|r| r["line"].as_u64().unwrap()).eq(1..=50));
}

#[tokio::test]
async fn the_first_answer_comes_before_the_last_line() {
    let world = world();
    world.enrol("alice").await;
    let (lines, rest) = tokio::sync::mpsc::channel::<Bytes>(1);
    let body =
        stream::unfold(rest, |mut rest| async move { Some((Ok::<_, Infallible>(rest.recv().await?), rest)) });
    lines.send("{\"to\":\"alice\",\"payload\":1}\n".into()).await.unwrap();
    let mut results = world.open(batch(&world, Body::from_stream(body))).await.into_body().into_data_stream();
    let first: Value = serde_json::from_slice(&results.next().await.unwrap().unwrap()).unwrap();
    assert_eq!(first["line"], 1);
    lines.send("{\"to\":\"alice\",\"payload\":2}".into()).await.unwrap();
    drop(lines);
    let second: Value = serde_json::from_slice(&results.next().await.unwrap().unwrap()).unwrap();
    assert_eq!(second["line"], 2);
    assert!(results.next().await.is_none());
}

#[tokio::test]
async fn other_bodies_are_refused() {
    let world = world();
    world.post("/v1/notifications/batch", json!({})).await.problem(415, "wrong-content-type");
}

fn keyed(world: &World, key: &str, body: Body) -> Request<Body> {
    let mut request = batch(world, body);
    request.headers_mut().insert("idempotency-key", key.parse().unwrap());
    request
}

#[tokio::test]
async fn a_complete_batch_may_be_sent_again_at_once() {
    let world = world();
    world.enrol("alice").await;
    let lines = "{\"to\":\"alice\",\"payload\":1}\n{\"to\":\"nobody\",\"payload\":1}\n";
    let first = world.call(keyed(&world, "batch-1", lines.into())).await;
    assert_eq!(first.lines()[0]["state"], "stored");
    for _ in 0..2 {
        let again = world.call(keyed(&world, "batch-1", lines.into())).await;
        assert_eq!(again.status, StatusCode::OK, "{}", again.text);
        assert_eq!(again.text, first.text, "the same notifications");
    }
    assert_eq!(world.get("/v1/devices/alice").await.json()["pending"], 1);
}

#[tokio::test]
async fn a_batch_sent_again_while_it_runs_is_told_to_wait() {
    let world = world();
    world.enrol("alice").await;
    let (lines, rest) = tokio::sync::mpsc::channel::<Bytes>(1);
    let body =
        stream::unfold(rest, |mut rest| async move { Some((Ok::<_, Infallible>(rest.recv().await?), rest)) });
    let running = world.open(keyed(&world, "batch-1", Body::from_stream(body))).await;
    let line = || Body::from("{\"to\":\"alice\",\"payload\":1}\n");
    let reply = world.call(keyed(&world, "batch-1", line())).await;
    reply.problem(409, "in-progress");
    assert_eq!(reply.headers[header::RETRY_AFTER], "1");
    // Its sender goes away: the next may go on in its place.
    drop((running, lines));
    assert_eq!(world.call(keyed(&world, "batch-1", line())).await.lines()[0]["state"], "stored");
}

/// Not a measurement, but a floor: 20,000 lines through a node on a busy machine.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_batch_goes_through() {
    let world = world();
    for n in 0..20 {
        world.enrol(&format!("d{n}")).await;
    }
    let lines: String =
        (0..20_000).map(|n| format!("{{\"to\":\"d{}\",\"payload\":{n}}}\n", n % 20)).collect();
    let begun = std::time::Instant::now();
    let results = world.call(batch(&world, Body::from(lines))).await.lines();
    eprintln!("{:.0} lines/s", 20_000.0 / begun.elapsed().as_secs_f64());
    assert_eq!(results.len(), 20_000);
    assert!(
        results.iter().all(|r| r["state"] == "stored"),
        "{:?}",
        results.iter().find(|r| r["state"] != "stored")
    );
}

fn line(to: &str, payload: u64) -> String {
    format!("{{\"to\":\"{to}\",\"payload\":{payload}}}\n")
}

async fn results(world: &World, key: &str, lines: &[String]) -> Vec<Value> {
    let reply = world.call(keyed(world, key, lines.concat().into())).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
    reply.lines()
}

fn codes(results: &[Value]) -> Vec<&str> {
    results.iter().map(|result| result["error"]["code"].as_str().unwrap_or_default()).collect()
}

#[tokio::test]
async fn an_altered_line_of_a_batch_that_is_sent_again_is_refused() {
    let mut world = world();
    for id in ["alice", "bob"] {
        world.enrol(id).await;
    }
    let mut lines = vec![line("alice", 1), "{\n".into(), line("nobody", 3), line("alice", 4)];
    let first = results(&world, "b", &lines).await;
    assert_eq!(codes(&first), ["", "not-json", "unknown-device", ""]);
    // What could not be read sent nothing, and may be put right; more lines may follow.
    lines[1] = line("bob", 2);
    lines.push(line("bob", 5));
    let second = results(&world, "b", &lines).await;
    assert_eq!(codes(&second), ["", "", "unknown-device", "", ""]);
    assert_eq!((&second[0], &second[3]), (&first[0], &first[3]));
    let altered =
        [line("bob", 1), line("bob", 7), line("alice", 3), line("alice", 4), line("bob", 6), line("bob", 8)];
    for _ in 0..2 {
        let third = results(&world, "b", &altered).await;
        let mismatch = "idempotency-mismatch";
        assert_eq!(codes(&third), [mismatch, mismatch, mismatch, "", mismatch, ""]);
        assert_eq!((&third[0]["line"], third[0].get("id")), (&json!(1), None));
        assert_eq!(third[3], first[3]);
        world = world.restart();
    }
    // Under another key they are other notifications.
    assert_eq!(codes(&results(&world, "c", &altered[..1]).await), [""]);
    assert_eq!(world.get("/v1/devices/alice").await.json()["pending"], 2);
    assert_eq!(world.get("/v1/devices/bob").await.json()["pending"], 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_are_not_kept_are_not_delivered_again() {
    let world = world();
    world.enrol("alice").await;
    let alice = Device::login(world.server.ports().websocket.unwrap(), "alice").await;
    let line = |n| format!("{{\"to\":\"alice\",\"audience\":\"connected\",\"payload\":{n}}}\n");
    let first = results(&world, "b", &[line(1), line(2)]).await;
    let (alice, _) = alice.message().await;
    let (alice, second) = alice.message().await;
    assert_eq!(second.id.as_deref(), first[1]["id"].as_str());
    let again = results(&world, "b", &[line(1), line(2), line(3)]).await;
    let ids = |results: &[Value]| results.iter().map(|r| r["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&again)[..2], ids(&first));
    let (alice, third) = alice.message().await;
    assert_eq!(third.id.as_deref(), again[2]["id"].as_str(), "nothing comes between");
    let reading = tokio::spawn(alice.end());
    world.delete("/v1/admin/sessions/alice").await.expect(StatusCode::OK);
    reading.await.unwrap();
}

/// As [`a_long_batch_goes_through`], with a key: each line is noted first, and compared when the batch comes again.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_batch_goes_through_once() {
    let world = world();
    for n in 0..20 {
        world.enrol(&format!("d{n}")).await;
    }
    let lines: Vec<String> = (0..20_000).map(|n| line(&format!("d{}", n % 20), n)).collect();
    let rate = async |what| {
        let begun = std::time::Instant::now();
        let results = results(&world, "b", &lines).await;
        eprintln!("{what}: {:.0} lines/s", 20_000.0 / begun.elapsed().as_secs_f64());
        assert!(results.len() == 20_000 && results.iter().all(|r| r["state"] == "stored"));
    };
    rate("noted").await;
    rate("compared").await;
    assert_eq!(world.get("/v1/devices/d7").await.json()["pending"], 1000);
}
