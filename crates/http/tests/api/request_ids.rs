//! Every response says which request it answers.

use crate::support::world;
use axum::body::Body;
use axum::http::{HeaderValue, Method, StatusCode};
use serde_json::json;

#[tokio::test]
async fn a_request_has_an_id_in_its_header_and_its_problem() {
    let world = world();
    let with = |id: &[u8], uri: &str| {
        let mut request = world.request(Method::GET, uri, Body::empty());
        request.headers_mut().insert("x-request-id", HeaderValue::from_bytes(id).unwrap());
        request
    };
    let fine = world.call(with(b"client-7", "/v1/key")).await;
    fine.expect(StatusCode::OK);
    assert_eq!(fine.headers["x-request-id"], "client-7");
    let wrong = world.call(with(b"client-8", "/v1/topics/none")).await;
    wrong.problem(404, "unknown-topic");
    assert_eq!(wrong.headers["x-request-id"], "client-8");
    assert_eq!(wrong.json()["request_id"], "client-8");

    // What is no id gets one of its own.
    let long = [b'a'; 129];
    for id in [&b"two words"[..], b"", &long, "\u{e9}".as_bytes()] {
        let reply = world.call(with(id, "/nowhere")).await;
        reply.problem(404, "unknown-route");
        let made = reply.headers["x-request-id"].to_str().unwrap();
        assert!(made.len() == 32 && made.bytes().all(|c| c.is_ascii_hexdigit()), "{made}");
        assert_eq!(reply.json()["request_id"], made);
    }
    let (first, second) = (world.get("/healthz").await, world.get("/healthz").await);
    assert_ne!(first.headers["x-request-id"], second.headers["x-request-id"]);
    for uri in ["/console", "/docs", "/openapi.json", "/metrics", "/console/none.js"] {
        assert!(world.get(uri).await.headers.contains_key("x-request-id"), "{uri}");
    }
}

#[tokio::test]
async fn a_problem_given_again_is_of_the_later_request() {
    let world = world();
    for id in ["first", "second"] {
        let body = Body::from(json!({"to": "nobody", "payload": 1}).to_string());
        let mut request = world.request(Method::POST, "/v1/notifications", body);
        request.headers_mut().insert("idempotency-key", "k1".parse().unwrap());
        request.headers_mut().insert("x-request-id", id.parse().unwrap());
        let reply = world.call(request).await;
        reply.problem(404, "unknown-device");
        assert_eq!(reply.json()["request_id"], id);
    }
}
