//! Notifications found again.

use crate::support::device::Device;
use crate::support::{World, with_key, world};
use axum::body::Body;
use axum::http::{Method, StatusCode};
use carillon_core::model::{Scope, UnixMs};
use serde_json::{Value, json};

async fn send(world: &World, body: Value) -> String {
    let sent = world.post("/v1/notifications", body).await.expect(StatusCode::ACCEPTED);
    sent["id"].as_str().unwrap().to_owned()
}

fn now() -> UnixMs {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    UnixMs(now.as_millis() as u64)
}

async fn list(world: &World, query: &str) -> Vec<String> {
    ids(&world.get(&format!("/v1/notifications{query}")).await.expect(StatusCode::OK))
}

fn ids(page: &Value) -> Vec<String> {
    let notifications = page["notifications"].as_array().unwrap();
    notifications.iter().map(|n| n["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_newest_come_first_and_say_what_a_trace_says() {
    let world = world();
    world.enrol("alice").await;
    let body = json!({"to": "alice", "payload": 1, "ttl": 60, "collapse_key": "score"});
    let first = send(&world, body).await;
    let second = send(&world, json!({"to": "alice", "payload": 2})).await;
    let page = world.get("/v1/notifications").await.expect(StatusCode::OK);
    // Of those accepted in the same millisecond the ids alone say the order.
    let mut newest_first = vec![first.clone(), second];
    newest_first.sort_by(|a, b| b.cmp(a));
    assert_eq!((ids(&page), &page["next"]), (newest_first, &json!(null)));
    let trace = world.get(&format!("/v1/notifications/{first}")).await.expect(StatusCode::OK);
    assert!(page["notifications"].as_array().unwrap().contains(&trace));
    assert_eq!(trace["collapse_key"], "score");
    let own = world.get("/v1/key").await.expect(StatusCode::OK);
    assert_eq!(trace["key"], own["id"]);
    let time = |member: &str| trace[member].as_str().unwrap().to_owned();
    assert!(time("expires_at") > time("accepted_at"), "{trace}");

    // Both outlive the end of the notification.
    world.delete(&format!("/v1/notifications/{first}")).await.expect(StatusCode::OK);
    let ended = world.get("/v1/notifications?state=cancelled").await.expect(StatusCode::OK);
    assert_eq!(ended["notifications"][0]["collapse_key"], "score");
    assert_eq!(ended["notifications"][0]["expires_at"], trace["expires_at"]);
}

#[tokio::test]
async fn a_list_is_narrowed_by_account_state_sender_and_time() {
    let world = world();
    for id in ["alice", "bob"] {
        world.enrol(id).await;
    }
    let soon = now().plus(3_600_000).to_xmpp();
    let alices = send(&world, json!({"to": "alice", "payload": 1})).await;
    let bobs = send(&world, json!({"to": "bob", "payload": 1, "send_at": soon})).await;
    world.get("/v1/notifications?to=carol&state=sent").await.expect(StatusCode::OK);
    assert_eq!(list(&world, "?to=alice").await, std::slice::from_ref(&alices));
    assert_eq!(list(&world, "?to=bob@localhost").await, std::slice::from_ref(&bobs));
    assert_eq!(list(&world, "?state=scheduled").await, std::slice::from_ref(&bobs));
    assert_eq!(list(&world, "?state=stored,scheduled&to=alice").await, std::slice::from_ref(&alices));
    assert!(list(&world, "?key=4000000").await.is_empty());
    assert!(list(&world, "?after=2099-01-01T00:00:00Z").await.is_empty());
    assert!(list(&world, "?before=2001-01-01T00:00:00Z").await.is_empty());
    assert_eq!(list(&world, "?after=2001-01-01T00:00:00Z&before=2099-01-01T00:00:00Z").await.len(), 2);
    for (query, code) in [
        ("?state=lost", "invalid-parameter"),
        ("?cursor=abc", "invalid-parameter"),
        ("?after=yesterday", "invalid-parameter"),
        ("?limit=0", "invalid-parameter"),
        ("?from=1", "unknown-parameter"),
    ] {
        world.get(&format!("/v1/notifications{query}")).await.problem(400, code);
    }
    world.get("/v1/notifications?to=a%20b").await.problem(422, "invalid-jid");
    world.get("/v1/notifications?domain=no.example").await.problem(404, "unknown-domain");
}

#[tokio::test]
async fn pages_follow_each_other_without_a_gap() {
    let world = world();
    world.enrol("alice").await;
    let mut sent = Vec::new();
    for n in 0..5 {
        // Some are kept, and some are only remembered by the shard.
        let audience = if n % 2 == 0 { "always" } else { "connected" };
        sent.push(send(&world, json!({"to": "alice", "payload": n, "audience": audience})).await);
    }
    let mut expected = sent.clone();
    expected.sort();
    expected.reverse();
    for limit in 1..=6 {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let uri = format!("/v1/notifications?to=alice&limit={limit}{cursor}");
            let page = world.get(&uri).await.expect(StatusCode::OK);
            found.extend(ids(&page));
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(found, expected, "in pages of {limit}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_knows_what_is_on_its_way() {
    let world = world();
    world.enrol("alice").await;
    let waiting = send(&world, json!({"to": "alice", "payload": 1})).await;
    assert_eq!(list(&world, "?state=stored").await, std::slice::from_ref(&waiting));
    assert!(list(&world, "?state=sent,acknowledged").await.is_empty());
    let port = world.server.ports().websocket.unwrap();
    let (device, _) = Device::login(port, "alice").await.message().await;
    assert!(list(&world, "?state=stored").await.is_empty());
    assert_eq!(list(&world, "?state=sent,acknowledged").await, std::slice::from_ref(&waiting));
    let reading = tokio::spawn(device.end());
    let gone = send(&world, json!({"to": "alice", "payload": 2, "audience": "active"})).await;
    world
        .until("/v1/notifications?state=acknowledged", |page| ids(page) == [gone.clone(), waiting.clone()])
        .await;
    world.delete("/v1/admin/sessions/alice").await.expect(StatusCode::OK);
    reading.await.unwrap();
}

#[tokio::test]
async fn a_key_lists_what_it_may_see() {
    let world = world();
    world.enrol("alice").await;
    world.post("/v1/devices?domain=other.example", json!({"id": "bob"})).await.expect(StatusCode::CREATED);
    let here = send(&world, json!({"to": "alice", "payload": 1})).await;
    let there = send(&world, json!({"to": "bob@other.example", "payload": 1})).await;
    let lost = send(&world, json!({"to": "bob@other.example", "payload": 1, "audience": "active"})).await;
    assert_eq!(list(&world, "").await.len(), 3);
    let mut theirs = vec![there, lost];
    theirs.sort_by(|a, b| b.cmp(a));
    assert_eq!(list(&world, "?domain=other.example").await, theirs);
    assert_eq!(list(&world, "?domain=localhost").await, [here]);

    let key = world.key("other.example", &[Scope::Send]);
    let get = |uri: &str| with_key(world.request(Method::GET, uri, Body::empty()), &key);
    let own = world.call(get("/v1/notifications")).await.expect(StatusCode::OK);
    assert_eq!(ids(&own), theirs);
    world.call(get("/v1/notifications?domain=localhost")).await.problem(403, "other-domain");
    world.call(get("/v1/notifications?to=alice@localhost")).await.problem(403, "other-domain");
    let topics = world.key("other.example", &[Scope::Topics]);
    let get = with_key(world.request(Method::GET, "/v1/notifications", Body::empty()), &topics);
    world.call(get).await.problem(403, "missing-scope");
}
