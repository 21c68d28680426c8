//! Publications that are sent again with their idempotency key.

use crate::support::device::Device;
use crate::support::{Reply, World, world};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use carillon_core::settings::{Fanout, Settings as CoreSettings};
use carillon_wire::stanza::Stanza;
use futures_util::FutureExt;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn request(world: &World, key: &str, topic: &str, body: &Value) -> Request<Body> {
    let uri = format!("/v1/topics/{topic}/items");
    let mut request = world.request(Method::POST, &uri, Body::from(body.to_string()));
    request.headers_mut().insert("idempotency-key", key.parse().unwrap());
    request
}

async fn publish(world: &World, key: &str, body: &Value) -> Reply {
    world.call(request(world, key, "t", body)).await
}

/// A topic `t` that keeps ten items, and a device that follows it.
async fn followed(world: &World) -> Device {
    world.put("/v1/topics/t", json!({"max_items": 10})).await.expect(StatusCode::CREATED);
    world.enrol("alice").await;
    world.put("/v1/devices/alice/subscriptions/t", json!(null)).await.expect(StatusCode::CREATED);
    login(world).await
}

async fn login(world: &World) -> Device {
    let device = Device::login(world.server.ports().websocket.unwrap(), "alice").await;
    world.until("/v1/topics/t", |topic| topic["figures"]["sessions"] == 1).await;
    device
}

/// Publishes another item, and makes sure that the device is given `items` and then this one.
async fn is_given(world: &World, mut device: Device, items: &[&str]) -> Device {
    world.post("/v1/topics/t/items", json!({"id": "last", "payload": 1})).await.expect(StatusCode::ACCEPTED);
    for item in items.iter().chain(&["last"]) {
        let message: Stanza;
        (device, message) = device.message().await;
        let text = String::from_utf8(message.payload.bytes().to_vec()).unwrap();
        assert!(text.contains(&format!("<item id='{item}'")), "{item}: {text}");
    }
    device
}

async fn kept(world: &World) -> usize {
    world.get("/v1/topics/t/items").await.json()["items"].as_array().unwrap().len()
}

fn is_replayed(reply: &Reply) -> bool {
    reply.headers.get("idempotent-replayed").is_some_and(|value| value == "true")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_publication_again_publishes_nothing() {
    let world = world();
    let device = followed(&world).await;
    let body = json!({"payload": {"n": 1}});
    let first = publish(&world, "k1", &body).await;
    let item = first.expect(StatusCode::ACCEPTED)["id"].as_str().unwrap().to_owned();
    assert!(!is_replayed(&first));
    let again = publish(&world, "k1", &body).await;
    assert_eq!((again.status, &again.text), (first.status, &first.text));
    assert!(is_replayed(&again));
    is_given(&world, device, &[&item]).await;
    assert_eq!(kept(&world).await, 2);

    publish(&world, "k1", &json!({"payload": {"n": 2}})).await.problem(422, "idempotency-mismatch");
    world.call(request(&world, "k1", "u", &body)).await.problem(422, "idempotency-mismatch");
    publish(&world, "k 1", &body).await.problem(400, "invalid-header");
    // An id that the sender gives is the item's; another key makes another item.
    let named = publish(&world, "k2", &json!({"id": "mine", "payload": 1})).await;
    assert_eq!(named.expect(StatusCode::ACCEPTED)["id"], "mine");
    assert_ne!(publish(&world, "k3", &body).await.json()["id"], item);
    // What can never be done does not use up its key; what was refused is refused again.
    publish(&world, "k4", &json!({"id": "", "payload": 1})).await.problem(422, "invalid-value");
    publish(&world, "k4", &body).await.expect(StatusCode::ACCEPTED);
    world.call(request(&world, "k5", "none", &body)).await.problem(404, "unknown-topic");
    let replayed = world.call(request(&world, "k5", "none", &body)).await;
    replayed.problem(404, "unknown-topic");
    assert!(is_replayed(&replayed));
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_it_is_known() {
    let world = world();
    let device = followed(&world).await;
    let body = json!({"payload": 1});
    let first = publish(&world, "k1", &body).await;
    let item = first.expect(StatusCode::ACCEPTED)["id"].as_str().unwrap().to_owned();
    let (device, _) = device.message().await;
    let reading = tokio::spawn(device.end());
    let world = world.restart();
    reading.await.unwrap();
    let device = login(&world).await;
    let again = publish(&world, "k1", &body).await;
    assert_eq!((again.text, again.status), (first.text, first.status));
    // Given at login as the last item, and not again.
    is_given(&world, device, &[&item]).await;
    assert_eq!(kept(&world).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_its_sender_has_gone_away_it_is_done_and_remembered() {
    let world = world();
    let device = followed(&world).await;
    let body = json!({"payload": 1});
    world.store.hold();
    let mut first = Box::pin(world.open(request(&world, "k1", "t", &body)));
    wait_until(|| {
        assert!((&mut first).now_or_never().is_none(), "it waits for the store");
        world.store.held() == 1
    })
    .await;
    drop(first);
    let waiting = publish(&world, "k1", &body).await;
    waiting.problem(409, "in-progress");
    assert_eq!(waiting.headers[header::RETRY_AFTER], "1");
    world.store.go_on();
    let again = loop {
        let again = publish(&world, "k1", &body).await;
        if again.status != StatusCode::CONFLICT {
            break again;
        }
        tokio::task::yield_now().await;
    };
    let item = again.expect(StatusCode::ACCEPTED)["id"].as_str().unwrap().to_owned();
    assert!(is_replayed(&again));
    is_given(&world, device, &[&item]).await;
    assert_eq!(kept(&world).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_unknown_is_settled_by_the_same_request() {
    let world = world();
    let device = followed(&world).await;
    let body = json!({"payload": 1});
    world.store.lose();
    for _ in 0..2 {
        let lost = publish(&world, "k1", &body).await;
        lost.problem(503, "outcome-unknown");
        assert!(lost.headers.contains_key(header::RETRY_AFTER));
    }
    world.store.go_on();
    let settled = publish(&world, "k1", &body).await;
    let item = settled.expect(StatusCode::ACCEPTED)["id"].as_str().unwrap().to_owned();
    let again = publish(&world, "k1", &body).await;
    assert_eq!(again.text, settled.text);
    assert!(is_replayed(&again) && !is_replayed(&settled));
    is_given(&world, device, &[&item]).await;
    let items = world.get("/v1/topics/t/items").await.json();
    let ids: Vec<_> = items["items"].as_array().unwrap().iter().map(|i| i["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["last", &item], "it was published before the last one");
}

/// Shards that give followers nothing are behind at once.
#[tokio::test(flavor = "multi_thread")]
async fn what_came_too_fast_is_not_remembered() {
    let world = world();
    let device = followed(&world).await;
    let body = json!({"payload": 1});
    let fanout = Fanout { slice: 0, waiting_deliveries: 1, ..Fanout::default() };
    world.server.reload_settings(&Arc::new(CoreSettings { fanout, ..CoreSettings::default() }));
    let mut items = Vec::new();
    let (key, refused) = loop {
        assert!(items.len() < 1000, "the topic is never too fast");
        let key = format!("k{}", items.len());
        let reply = publish(&world, &key, &body).await;
        if reply.status == StatusCode::TOO_MANY_REQUESTS {
            break (key, reply);
        }
        items.push(reply.expect(StatusCode::ACCEPTED)["id"].as_str().unwrap().to_owned());
    };
    refused.problem(429, "too-fast");
    assert_eq!(refused.headers[header::RETRY_AFTER], "1");
    let refused = publish(&world, &key, &body).await;
    refused.problem(429, "too-fast");
    assert!(!is_replayed(&refused), "it is tried again, and refused again");
    world.server.reload_settings(&Arc::default());
    let taken = loop {
        let reply = publish(&world, &key, &body).await;
        if reply.status != StatusCode::TOO_MANY_REQUESTS {
            break reply;
        }
        tokio::task::yield_now().await;
    };
    assert!(!is_replayed(&taken));
    items.push(taken.expect(StatusCode::ACCEPTED)["id"].as_str().unwrap().to_owned());
    let again = publish(&world, &key, &body).await;
    assert!(is_replayed(&again));
    assert_eq!((again.status, &again.text), (taken.status, &taken.text));
    is_given(&world, device, &items.iter().map(String::as_str).collect::<Vec<_>>()).await;
}

async fn wait_until(mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.expect("it never came to be");
}
