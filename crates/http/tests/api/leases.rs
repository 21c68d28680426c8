//! Leases: one holder at a time.

use crate::support::world;
use axum::http::StatusCode;
use serde_json::json;

const PATH: &str = "/v1/admin/leases/autoscale";

#[tokio::test]
async fn one_holder_has_it_until_it_is_given_up() {
    let world = world();
    let take = async |holder: &str| world.post(PATH, json!({"holder": holder, "ttl_ms": 60_000})).await;
    world.get(PATH).await.problem(404, "unknown-lease");
    assert_eq!(take("a").await.expect(StatusCode::OK)["holder"], "a");
    take("b").await.problem(409, "lease-held");
    assert_eq!(take("a").await.expect(StatusCode::OK)["name"], "autoscale");
    world.delete(&format!("{PATH}?holder=b")).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(world.get(PATH).await.expect(StatusCode::OK)["holder"], "a");
    world.delete(&format!("{PATH}?holder=a")).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(take("b").await.expect(StatusCode::OK)["holder"], "b");
}

#[tokio::test]
async fn what_cannot_be_is_refused() {
    let world = world();
    let take = async |body| world.post(PATH, body).await;
    let long = take(json!({"holder": "a", "ttl_ms": 86_400_001})).await;
    assert_eq!(long.problem(422, "invalid-value").as_deref(), Some("/ttl_ms"));
    let nobody = take(json!({"holder": "", "ttl_ms": 1000})).await;
    assert_eq!(nobody.problem(422, "invalid-value").as_deref(), Some("/holder"));
    take(json!({"holder": "a"})).await.problem(400, "missing-field");
    world.delete(PATH).await.problem(400, "invalid-parameter");
}
