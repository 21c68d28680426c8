//! Notifications, from the sender to the device and back.

use crate::support::device::Device;
use crate::support::{World, with_key, world, world_with};
use axum::body::Body;
use axum::http::{Method, StatusCode};
use carillon_core::model::Scope;
use serde_json::{Value, json};

async fn send(world: &World, body: Value) -> Value {
    world.post("/v1/notifications", body).await.expect(StatusCode::ACCEPTED)
}

fn uri(sent: &Value) -> String {
    format!("/v1/notifications/{}", sent["id"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_is_stored_sent_and_acknowledged() {
    let world = world();
    world.enrol("alice").await;
    let sent = send(&world, json!({"to": "alice", "payload": {"n": 1.5}, "priority": "high"})).await;
    assert_eq!((&sent["to"], &sent["state"]), (&json!("alice@localhost"), &json!("stored")));
    assert_eq!(sent["results"][0]["id"], sent["id"]);
    let waiting = world.get(&uri(&sent)).await.expect(StatusCode::OK);
    assert_eq!(
        (&waiting["state"], &waiting["priority"], &waiting["audience"]),
        (&json!("stored"), &json!("high"), &json!("always"))
    );
    assert!(waiting["stored_at"].is_string() && waiting.get("sent_at").is_none());

    let port = world.server.ports().websocket.unwrap();
    let (device, message) = Device::login(port, "alice").await.message().await;
    assert_eq!(message.id.as_deref(), sent["id"].as_str());
    let payload = String::from_utf8(message.payload.bytes().to_vec()).unwrap();
    assert!(payload.ends_with("<json xmlns='urn:xmpp:json:0'>{\"n\":1.5}</json>"), "{payload}");
    // Read on, so that the server's question how much has come is answered.
    let reading = tokio::spawn(device.end());
    let done = world.until(&uri(&sent), |n| n["state"] == "acknowledged").await;
    assert!(done["sent_at"].is_string() && done["acknowledged_at"] == done["ended_at"]);
    assert_eq!(done["acknowledged_by"], "stream-management");
    world.delete("/v1/admin/sessions/alice").await.expect(StatusCode::OK);
    reading.await.unwrap();
}

#[tokio::test]
async fn a_device_that_is_not_there() {
    let world = world();
    world.enrol("alice").await;
    world
        .post("/v1/notifications", json!({"to": "nobody", "payload": 1}))
        .await
        .problem(404, "unknown-device");
    let body = json!({"to": ["alice", "nobody", "alice@localhost"], "payload": 1});
    let many = world.post("/v1/notifications", body).await.expect(StatusCode::MULTI_STATUS);
    let results = many["results"].as_array().unwrap();
    assert_eq!(results.len(), 3);
    assert_eq!((&results[0]["state"], &results[2]["state"]), (&json!("stored"), &json!("stored")));
    assert_eq!(
        (&results[1]["to"], &results[1]["error"]["code"]),
        (&json!("nobody@localhost"), &json!("unknown-device"))
    );
    assert!(results[1].get("id").is_none() && many.get("id").is_none());
    assert_ne!(results[0]["id"], results[2]["id"]);
}

#[tokio::test]
async fn a_wrong_target_harms_no_other_of_its_list() {
    let world = world();
    world.enrol("alice").await;
    let to = json!(["alice", "a b", "carol@nowhere.example", "alice@localhost/phone", "nobody"]);
    let reply = world.post("/v1/notifications", json!({"to": to, "payload": 1})).await;
    let results = reply.expect(StatusCode::MULTI_STATUS)["results"].take();
    let results = results.as_array().unwrap();
    let named: Vec<_> = results.iter().map(|r| r["to"].as_str().unwrap()).collect();
    assert_eq!(
        named,
        ["alice@localhost", "a b", "carol@nowhere.example", "alice@localhost/phone", "nobody@localhost"]
    );
    let codes: Vec<_> = results.iter().map(|r| r["error"]["code"].as_str().unwrap_or_default()).collect();
    assert_eq!(codes, ["", "invalid-jid", "unknown-domain", "invalid-jid", "unknown-device"]);
    assert_eq!((&results[0]["state"], results[0].get("error")), (&json!("stored"), None));
    let error = &results[1]["error"];
    assert_eq!((&error["pointer"], &error["status"]), (&json!("/to/1"), &json!(422)));
    assert!(error["type"].is_string() && error["title"].is_string() && error["detail"].is_string());

    // Each of them may be wrong, and a key of a domain reaches no other.
    let key = world.key("other.example", &[Scope::Send]);
    let body = json!({"to": ["alice@localhost"], "payload": 1}).to_string();
    let request = with_key(world.request(Method::POST, "/v1/notifications", Body::from(body)), &key);
    let refused = world.call(request).await.expect(StatusCode::MULTI_STATUS);
    assert_eq!(refused["results"][0]["error"]["code"], "other-domain");
    assert_eq!(world.get("/v1/devices/alice").await.json()["pending"], 1);
    let all = world.post("/v1/notifications", json!({"to": ["alice"], "payload": 1})).await;
    all.expect(StatusCode::ACCEPTED);
}

#[tokio::test]
async fn a_time_in_the_past_is_refused_unless_it_is_just_past() {
    let world = world();
    world.enrol("alice").await;
    let ago = |seconds: u64| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
        carillon_core::model::UnixMs(now as u64 - seconds * 1000).to_xmpp()
    };
    let late =
        world.post("/v1/notifications", json!({"to": "alice", "payload": 1, "send_at": ago(90)})).await;
    assert_eq!(late.problem(422, "invalid-value").as_deref(), Some("/send_at"));
    let just = send(&world, json!({"to": "alice", "payload": 1, "send_at": ago(20)})).await;
    assert_eq!(just["state"], "stored");
}

#[tokio::test]
async fn only_while_connected() {
    let world = world();
    world.enrol("alice").await;
    let sent = send(&world, json!({"to": "alice", "payload": 1, "audience": "connected"})).await;
    assert_eq!((&sent["state"], &sent["reason"]), (&json!("dropped"), &json!("not-connected")));
}

#[tokio::test]
async fn a_rehearsal_sends_nothing() {
    let world = world();
    world.enrol("alice").await;
    let body = json!({"to": "alice", "payload": 1, "dry_run": true});
    let rehearsed = send(&world, body).await;
    assert_eq!(rehearsed["dry_run"], true);
    assert!(rehearsed.get("id").is_none());
    let device = world.get("/v1/devices/alice").await.expect(StatusCode::OK);
    assert_eq!(device["pending"], 0);
    world
        .post("/v1/notifications", json!({"to": "bob", "payload": 1, "dry_run": true}))
        .await
        .problem(404, "unknown-device");
}

#[tokio::test]
async fn one_is_taken_back_once() {
    let world = world();
    world.enrol("alice").await;
    let sent = send(&world, json!({"to": "alice", "payload": 1})).await;
    let cancelled = world.delete(&uri(&sent)).await.expect(StatusCode::OK);
    assert_eq!(cancelled["state"], "cancelled");
    assert_eq!(world.get(&uri(&sent)).await.json()["state"], "cancelled");
    world.delete("/v1/notifications/01KAG8X4RZ5T9V7Q2M3N6P8W0Y").await.problem(404, "unknown-notification");
}

#[tokio::test]
async fn a_later_one_replaces_an_earlier_one() {
    let world = world();
    world.enrol("alice").await;
    let first = send(&world, json!({"to": "alice", "payload": 1, "collapse_key": "score"})).await;
    send(&world, json!({"to": "alice", "payload": 2, "collapse_key": "score"})).await;
    let replaced = world.until(&uri(&first), |n| n["state"] == "replaced").await;
    assert!(replaced["ended_at"].is_string());
    let late = world.delete(&uri(&first)).await;
    late.problem(409, "too-late");
    assert_eq!(late.json()["state"], "replaced");
}

#[tokio::test]
async fn one_may_be_due_later() {
    let world = world();
    world.enrol("alice").await;
    let at = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64
        + 3_600_000;
    let at = carillon_core::model::UnixMs(at).to_xmpp();
    let sent = send(&world, json!({"to": "alice", "payload": 1, "send_at": at, "ttl": 60})).await;
    assert_eq!(sent["state"], "scheduled");
    assert_eq!(world.get(&uri(&sent)).await.json()["send_at"], at);
}

#[tokio::test]
async fn the_same_request_twice_sends_once() {
    let world = world();
    world.enrol("alice").await;
    let request = |key: &str, body: &Value| {
        let mut request = world.request(Method::POST, "/v1/notifications", Body::from(body.to_string()));
        request.headers_mut().insert("idempotency-key", key.parse().unwrap());
        request
    };
    let body = json!({"to": ["alice", "nobody"], "payload": 1});
    let first = world.call(request("k1", &body)).await;
    first.expect(StatusCode::MULTI_STATUS);
    assert!(!first.headers.contains_key("idempotent-replayed"));
    let again = world.call(request("k1", &body)).await;
    assert_eq!((again.status, &again.text), (first.status, &first.text));
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(world.get("/v1/devices/alice").await.json()["pending"], 1);

    world
        .call(request("k1", &json!({"to": "alice", "payload": 2})))
        .await
        .problem(422, "idempotency-mismatch");
    world.call(request("k 1", &body)).await.problem(400, "invalid-header");
    let missing = json!({"to": "nobody", "payload": 1});
    world.call(request("k2", &missing)).await.problem(404, "unknown-device");
    let replayed = world.call(request("k2", &missing)).await;
    replayed.problem(404, "unknown-device");
    assert_eq!(replayed.headers["idempotent-replayed"], "true");
    // A request that could never be done does not use up its key.
    world.call(request("k3", &json!({"to": "a b", "payload": 1}))).await.problem(422, "invalid-jid");
    world.call(request("k3", &body)).await.expect(StatusCode::MULTI_STATUS);
}

/// What is kept under the keys of an API key has a bound; without one the request is done, and those of other keys are, too.
#[tokio::test]
async fn idempotency_keys_are_bounded_in_bytes() {
    let world = world_with(|options| options.settings.idempotency_bytes_max = 2000);
    let other = world.key("localhost", &[Scope::Send]);
    let send = |key: &str, name: String| {
        let body = json!({"to": "alice@localhost", "payload": 1, "audience": "active"});
        let request = world.request(Method::POST, "/v1/notifications", Body::from(body.to_string()));
        let mut request = with_key(request, key);
        request.headers_mut().insert("idempotency-key", name.parse().unwrap());
        world.call(request)
    };
    let mut done = 0;
    let full = loop {
        let answer = send(&world.admin, format!("k{done}")).await;
        if answer.status == StatusCode::TOO_MANY_REQUESTS {
            break answer;
        }
        done += 1;
    };
    assert!((3..16).contains(&done), "{done}");
    full.problem(429, "too-many-idempotency-keys");
    assert_ne!(send(&world.admin, "k0".into()).await.status, StatusCode::TOO_MANY_REQUESTS, "it is known");
    assert_ne!(send(&other, "k".into()).await.status, StatusCode::TOO_MANY_REQUESTS);
}
