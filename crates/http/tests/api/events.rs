//! Receipts as they happen.

use crate::support::{Events, World, with_key, world, world_with};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use carillon_core::model::Scope;
use serde_json::{Value, json};

#[tokio::test]
async fn a_stream_tells_what_becomes_of_a_notification() {
    let world = world();
    world.enrol("alice").await;
    let mut events = Events::of(world.open(world.request(Method::GET, "/v1/events", Body::empty())).await);
    let body = json!({"to": "alice", "payload": 1, "collapse_key": "score"});
    let first = world.post("/v1/notifications", body.clone()).await.expect(StatusCode::ACCEPTED);
    let second = world.post("/v1/notifications", body).await.expect(StatusCode::ACCEPTED);
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let (name, data) = events.next().await.unwrap();
        assert_eq!((name.as_str(), &data["to"]), ("notification", &json!("alice@localhost")));
        seen.push((data["id"].clone(), data["state"].as_str().unwrap().to_owned()));
    }
    assert_eq!(seen[0], (first["id"].clone(), "stored".to_owned()));
    assert!(seen.contains(&(first["id"].clone(), "replaced".to_owned())));
    assert!(seen.contains(&(second["id"].clone(), "stored".to_owned())));
}

#[tokio::test]
async fn a_stream_has_the_states_and_the_domain_it_asks_for() {
    let world = world();
    world.enrol("alice").await;
    world.post("/v1/devices?domain=other.example", json!({"id": "bob"})).await.expect(StatusCode::CREATED);
    let key = world.key("other.example", &[Scope::Send]);
    let open = |uri: &str| world.open(world.request(Method::GET, uri, Body::empty()));
    let mut ended = Events::of(open("/v1/events?state=replaced,expired").await);
    let mut other =
        Events::of(world.open(with_key(world.request(Method::GET, "/v1/events", Body::empty()), &key)).await);
    let body = json!({"to": "alice", "payload": 1, "collapse_key": "score"});
    let mine = world.post("/v1/notifications", body.clone()).await.expect(StatusCode::ACCEPTED);
    let theirs = world
        .post("/v1/notifications", json!({"to": "bob@other.example", "payload": 1}))
        .await
        .expect(StatusCode::ACCEPTED);
    world.post("/v1/notifications", body).await.expect(StatusCode::ACCEPTED);
    let (_, first) = ended.next().await.unwrap();
    assert_eq!((&first["id"], &first["state"]), (&mine["id"], &json!("replaced")));
    let (_, first) = other.next().await.unwrap();
    assert_eq!(first["id"], theirs["id"]);
    world.get("/v1/events?state=lost").await.problem(400, "invalid-parameter");
}

#[tokio::test]
async fn a_slow_reader_is_told_what_it_missed() {
    let world = world_with(|options| options.settings.stream_events_max = 4);
    world.enrol("alice").await;
    let mut events =
        Events::of(world.open(world.request(Method::GET, "/v1/events?state=stored", Body::empty())).await);
    for n in 0..40 {
        world
            .post("/v1/notifications", json!({"to": "alice", "payload": n}))
            .await
            .expect(StatusCode::ACCEPTED);
    }
    let (name, data) = events.next().await.unwrap();
    assert_eq!(name, "lagged");
    assert!(data["count"].as_u64().unwrap() > 0);
    assert_eq!(events.next().await.unwrap().0, "notification");
}

/// Two notifications with one key: the first is replaced.
async fn replace(world: &World) -> Value {
    let body = json!({"to": "alice", "payload": 1, "collapse_key": "score"});
    let first = world.post("/v1/notifications", body.clone()).await.expect(StatusCode::ACCEPTED);
    world.post("/v1/notifications", body).await.expect(StatusCode::ACCEPTED);
    first["id"].clone()
}

fn from(world: &World, last: &str) -> Request<Body> {
    let mut request = world.request(Method::GET, "/v1/events?state=replaced", Body::empty());
    request.headers_mut().insert("last-event-id", last.parse().unwrap());
    request
}

#[tokio::test]
async fn a_stream_goes_on_where_it_was_cut() {
    let world = world();
    world.enrol("alice").await;
    let mut events = Events::of(world.open(from(&world, "0")).await);
    let replaced = [replace(&world).await, replace(&world).await];
    // The second notification of a pair is replaced by the next pair.
    let (_, first) = events.next().await.unwrap();
    assert_eq!((&first["id"], &first["state"]), (&replaced[0], &json!("replaced")));
    let number = events.last_id();
    drop(events);
    replace(&world).await;
    let mut seen = Vec::new();
    let mut again = Events::of(world.open(from(&world, &number.to_string())).await);
    while seen.len() < 4 {
        let (name, data) = again.next().await.unwrap();
        assert_eq!(name, "notification");
        assert!(again.last_id() > number);
        seen.push(data["id"].clone());
    }
    assert!(seen.contains(&replaced[1]) && !seen.contains(&replaced[0]));
    // From the beginning: the same, and the first.
    let uri = "/v1/events?after=0&state=replaced";
    let mut all = Events::of(world.open(world.request(Method::GET, uri, Body::empty())).await);
    assert_eq!(all.next().await.unwrap().1["id"], replaced[0]);
    for id in seen {
        assert_eq!(all.next().await.unwrap().1["id"], id);
    }
    world.call(from(&world, "first")).await.problem(400, "invalid-header");
}

#[tokio::test]
async fn a_stream_that_is_far_behind_is_given_all_from_the_store() {
    let world = world_with(|options| options.settings.stream_events_max = 4);
    world.enrol("alice").await;
    let mut events = Events::of(world.open(from(&world, "0")).await);
    let mut replaced = Vec::new();
    for _ in 0..40 {
        replaced.push(replace(&world).await);
    }
    let (mut seen, mut last) = (Vec::new(), 0);
    while seen.len() < 79 {
        seen.push(events.next().await.unwrap().1["id"].clone());
        assert!(events.last_id() > last, "in order, and each once");
        last = events.last_id();
    }
    assert!(replaced.iter().all(|id| seen.contains(id)));
}

#[tokio::test]
async fn a_stream_of_another_store_begins_with_a_gap() {
    let world = world();
    let mut events = Events::of(world.open(from(&world, "7000")).await);
    let gap = events.next().await.unwrap();
    assert_eq!(gap, ("gap".to_owned(), json!({"after": 7000, "next": 1})));
    assert_eq!(events.last_id(), 0);
}

#[tokio::test]
async fn streams_are_bounded_and_end_with_their_key() {
    let world = world_with(|options| options.settings.streams_max = 1);
    let made = world
        .post("/v1/admin/keys", json!({"name": "s", "scopes": ["send"]}))
        .await
        .expect(StatusCode::CREATED);
    let request =
        || with_key(world.request(Method::GET, "/v1/events", Body::empty()), made["key"].as_str().unwrap());
    let mut events = Events::of(world.open(request()).await);
    world.call(request()).await.problem(503, "too-many-streams");
    world.delete(&format!("/v1/admin/keys/{}", made["id"])).await.expect(StatusCode::NO_CONTENT);
    assert!(events.next().await.is_none());
    drop(events);
    Events::of(world.open(world.request(Method::GET, "/v1/events", Body::empty())).await);
}
