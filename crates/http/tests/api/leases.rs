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
async fn says_what_its_holder_says_of_itself() {
    let world = world();
    let take = async |state| world.post(PATH, json!({"holder": "a", "ttl_ms": 60_000, "state": state})).await;
    assert_eq!(take(json!({"units": 3})).await.expect(StatusCode::OK)["state"], json!({"units": 3}));
    world.post(PATH, json!({"holder": "a", "ttl_ms": 60_000})).await.expect(StatusCode::OK);
    assert_eq!(world.get(PATH).await.expect(StatusCode::OK)["state"], json!({"units": 3}));
    take(json!("three")).await.problem(400, "wrong-type");
    let long = take(json!({"why": "x".repeat(4096)})).await;
    assert_eq!(long.problem(422, "invalid-value").as_deref(), Some("/state"));
}

#[tokio::test]
async fn those_that_are_held_are_listed_in_pages() {
    let world = world();
    for name in ["c", "a", "b"] {
        let path = format!("/v1/admin/leases/{name}");
        world
            .post(&path, json!({"holder": "x", "ttl_ms": 60_000, "state": {"of": name}}))
            .await
            .expect(StatusCode::OK);
    }
    let list =
        async |query: &str| world.get(&format!("/v1/admin/leases?{query}")).await.expect(StatusCode::OK);
    let page = list("limit=2").await;
    assert_eq!((&page["leases"][0]["name"], &page["leases"][1]["state"]["of"]), (&json!("a"), &json!("b")));
    assert_eq!(page["next"], "b");
    let page = list("limit=2&after=b").await;
    assert_eq!((&page["leases"][0]["name"], &page["next"]), (&json!("c"), &json!(null)));
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
