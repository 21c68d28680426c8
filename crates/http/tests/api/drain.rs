//! Draining a node: how far it has come, and the way back.

use crate::support::world;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::json;

const PATH: &str = "/v1/admin/drain";

#[tokio::test]
async fn a_node_is_drained_and_serves_again() {
    let world = world();
    let none = world.get(PATH).await.expect(StatusCode::OK);
    assert_eq!((&none["state"], &none["to"]), (&json!("none"), &json!(null)));
    let body = json!({"over_ms": 86_400_000, "to": "b.example.org:5222"});
    let begun = world.put(PATH, body).await.expect(StatusCode::ACCEPTED);
    assert_eq!((&begun["state"], &begun["total"]), (&json!("drained"), &json!(0)));
    assert_eq!((&begun["to"], &begun["slices"]), (&json!("b.example.org:5222"), &json!(864_000)));
    assert!(begun["ends_in_ms"].as_u64().is_some_and(|ms| ms > 86_000_000), "{begun}");
    let ready = || Request::get("/readyz").body(Body::empty()).unwrap();
    let draining = world.call(ready()).await;
    assert_eq!(draining.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(draining.text.contains("draining: takes no new sessions"), "{}", draining.text);
    // Another one takes its place.
    let begun = world.put(PATH, json!({"over_ms": 0})).await.expect(StatusCode::ACCEPTED);
    assert_eq!((&begun["slices"], &begun["to"]), (&json!(1), &json!(null)));
    world.delete(PATH).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(world.get(PATH).await.expect(StatusCode::OK)["state"], "none");
    assert_eq!(world.call(ready()).await.status, StatusCode::OK);
    world.delete(PATH).await.expect(StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn what_cannot_be_is_refused() {
    let world = world();
    let at = async |body| world.put(PATH, body).await;
    let long = at(json!({"over_ms": 86_400_001})).await;
    assert_eq!(long.problem(422, "invalid-value").as_deref(), Some("/over_ms"));
    for to in ["", "b.example:0", "::1", "b.example/x"] {
        let refused = at(json!({"over_ms": 0, "to": to})).await;
        assert_eq!(refused.problem(422, "invalid-value").as_deref(), Some("/to"), "{to}");
    }
    let neither = at(json!({"to": "b.example"})).await;
    assert_eq!(neither.problem(422, "invalid-value").as_deref(), Some("/over_ms"));
    let both = at(json!({"over_ms": 0, "rate": 5})).await;
    assert_eq!(both.problem(422, "invalid-value").as_deref(), Some("/over_ms"));
    let none = at(json!({"rate": 0})).await;
    assert_eq!(none.problem(422, "invalid-value").as_deref(), Some("/rate"));
    assert_eq!(world.get(PATH).await.expect(StatusCode::OK)["state"], "none");
}
