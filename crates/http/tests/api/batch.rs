//! A stream of notifications.

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
