//! Requests that are wrong are told what is wrong with them.

use crate::support::{world, world_with};
use axum::body::{Body, Bytes};
use axum::http::{Method, header};
use futures_util::stream;
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::Notify;

#[tokio::test]
async fn bodies_are_read_strictly() {
    let world = world();
    let post = |body: &str| {
        world.call(world.request(Method::POST, "/v1/notifications", Body::from(body.to_owned())))
    };
    assert_eq!(
        post(r#"{"to":"a","payload":1,"tll":5}"#).await.problem(400, "unknown-field").as_deref(),
        Some("/tll")
    );
    assert_eq!(post(r#"{"payload":1}"#).await.problem(400, "missing-field").as_deref(), Some("/to"));
    assert_eq!(post(r#"{"to":"a"}"#).await.problem(400, "missing-field").as_deref(), Some("/payload"));
    assert_eq!(
        post(r#"{"to":["a",1],"payload":1}"#).await.problem(400, "wrong-type").as_deref(),
        Some("/to/1")
    );
    assert_eq!(
        post(r#"{"to":"a","payload":1,"audience":"all"}"#).await.problem(400, "wrong-type").as_deref(),
        Some("/audience")
    );
    assert_eq!(
        post(r#"{"to":"a","payload":1,"send_at":"soon"}"#).await.problem(400, "wrong-type").as_deref(),
        Some("/send_at")
    );
    post("{").await.problem(400, "not-json");
    post("to=a").await.problem(400, "not-json");
    post("[]").await.problem(400, "wrong-type");
    let mut request = world.request(Method::POST, "/v1/notifications", Body::from("{}"));
    request.headers_mut().insert(header::CONTENT_TYPE, "text/plain".parse().unwrap());
    world.call(request).await.problem(415, "wrong-content-type");
}

/// A sender knows JSON, and neither serde nor Rust.
#[tokio::test]
async fn what_is_wrong_is_said_in_the_words_of_json() {
    let world = world();
    let said = async |body: &str| {
        let request = world.request(Method::POST, "/v1/notifications", Body::from(body.to_owned()));
        world.call(request).await.json()["detail"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        said(r#"{"to":"a","payload":1,"ttl":"soon"}"#).await,
        "expected an integer that is not negative, got a string"
    );
    assert_eq!(
        said(r#"{"to":"a","payload":1,"ttl":-1}"#).await,
        "-1 is out of range: expected an integer that is not negative"
    );
    assert_eq!(
        said(r#"{"to":"a","payload":1,"audience":"all"}"#).await,
        "`all` is not one of `active`, `connected`, `always`"
    );
    assert_eq!(said(r#"{"payload":1}"#).await, "`to` is missing");
    assert_eq!(said("{").await, "the text ends too early: it breaks off in an object (line 1, column 1)");
    assert_eq!(said("[]").await, "expected an object, got an array");
    assert_eq!(said(r#"["alice",null,1]"#).await, "expected an object, got an array");
    assert_eq!(said("not json").await, "expected a JSON value (line 1, column 2)");
    for limit in ["many", "0", "1001", "99999", "-1", ""] {
        let query = world.get(&format!("/v1/topics?limit={limit}")).await.json();
        assert_eq!(query["detail"], "`limit` is an integer from 1 to 1000", "{limit}");
    }
    let path = world.delete("/v1/admin/keys/first").await.json();
    assert_eq!(path["detail"], "`first` in the path is not an integer from 0 to 4294967295");
}

#[tokio::test]
async fn values_have_bounds() {
    let world = world_with(|options| {
        options.settings.payload_bytes_max = 64;
        options.settings.body_bytes_max = 4096;
        options.settings.targets_max = 3;
    });
    let post = |body| world.post("/v1/notifications", body);
    let long = "a".repeat(100);
    assert_eq!(
        post(json!({"to": "a", "payload": long})).await.problem(413, "payload-too-large").as_deref(),
        Some("/payload")
    );
    post(json!({"to": "a", "payload": "a".repeat(5000)})).await.problem(413, "too-large");
    post(json!({"to": "a", "payload_xml": "<x/>"})).await.problem(422, "invalid-xml");
    post(json!({"to": "a", "payload_xml": "<x xmlns='urn:x'/>", "payload": 1}))
        .await
        .problem(422, "invalid-value");
    assert_eq!(
        post(json!({"to": "a b", "payload": 1})).await.problem(422, "invalid-jid").as_deref(),
        Some("/to")
    );
    for ttl in [0, 30 * 86_400 + 1] {
        assert_eq!(
            post(json!({"to": "a", "payload": 1, "ttl": ttl})).await.problem(422, "invalid-value").as_deref(),
            Some("/ttl")
        );
    }
    post(json!({"to": "a", "payload": 1, "collapse_key": "k".repeat(65)}))
        .await
        .problem(422, "invalid-value");
    post(json!({"to": "a", "payload": 1, "send_at": "2999-01-01T00:00:00Z"}))
        .await
        .problem(422, "invalid-value");
    post(json!({"to": ["a", "b", "c", "d"], "payload": 1})).await.problem(422, "too-many-targets");
    let nobody = post(json!({"to": [], "payload": 1})).await;
    assert_eq!(nobody.problem(422, "invalid-value").as_deref(), Some("/to"));
    post(json!({"to": "a@nowhere.example", "payload": 1})).await.problem(404, "unknown-domain");
}

#[tokio::test]
async fn large_bodies_share_the_memory_there_is() {
    let world = world_with(|options| options.settings.bodies_bytes_max = 1 << 20);
    let announced = |bytes: usize, body| {
        let mut request = world.request(Method::POST, "/v1/notifications", body);
        request.headers_mut().insert(header::CONTENT_LENGTH, bytes.into());
        request
    };
    // It is read and does not come.
    let reading = Arc::new(Notify::new());
    let read = Arc::clone(&reading);
    let slow = stream::poll_fn(move |_| {
        read.notify_one();
        Poll::<Option<Result<Bytes, Infallible>>>::Pending
    });
    let mut slow = Box::pin(world.call(announced(600 * 1024, Body::from_stream(slow))));
    tokio::select! {
        _ = &mut slow => panic!("answered without its body"),
        () = reading.notified() => {}
    }
    world.call(announced(600 * 1024, Body::from("{}"))).await.problem(503, "unavailable");
    world.call(announced(2, Body::from("{}"))).await.problem(400, "missing-field");
    drop(slow);
    world.call(announced(600 * 1024, Body::from("{}"))).await.problem(400, "missing-field");
}

#[tokio::test]
async fn routes_and_methods_and_queries_are_known_or_not() {
    let world = world();
    world.get("/v1/nothing").await.problem(404, "unknown-route");
    world.get("/").await;
    let reply = world.put("/v1/notifications", json!({})).await;
    reply.problem(405, "wrong-method");
    assert_eq!(reply.headers[header::ALLOW], "POST,GET,HEAD");
    world.get("/v1/topics?colour=red").await.problem(400, "unknown-parameter");
    world.get("/v1/topics?limit=0").await.problem(400, "invalid-parameter");
    world.get("/v1/topics?limit=many").await.problem(400, "invalid-parameter");
    world.get("/v1/notifications/nonsense").await.problem(400, "invalid-parameter");
    world.delete("/v1/admin/keys/nonsense").await.problem(400, "invalid-parameter");
}

#[tokio::test]
async fn answers_are_not_kept_and_not_guessed_at() {
    let world = world();
    let reply = world.get("/v1/key").await;
    assert_eq!(reply.headers[header::CACHE_CONTROL], "no-store");
    assert_eq!(reply.headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
}
