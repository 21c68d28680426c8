//! Notifications for every account of a domain.

use crate::support::device::Device;
use crate::support::{with_key, world, world_with};
use axum::body::Body;
use axum::http::{Method, StatusCode};
use carillon_core::model::Scope;
use serde_json::json;

const ALL: &str = "/v1/domains/localhost/notifications";

#[tokio::test(flavor = "multi_thread")]
async fn who_is_there_and_who_comes_later_is_given_it_once() {
    let world = world();
    for id in ["alice", "bob", "carol"] {
        world.enrol(id).await;
    }
    let port = world.server.ports().websocket.unwrap();
    let alice = Device::login(port, "alice").await;
    let count = world.post(ALL, json!({"payload": 1, "dry_run": true})).await.expect(StatusCode::OK);
    assert_eq!(count, json!({"dry_run": true, "accounts": 3, "reached_now": 1}));
    let sent = world.post(ALL, json!({"payload": {"n": 1}})).await.expect(StatusCode::ACCEPTED);
    let id = sent["id"].as_str().unwrap().to_owned();
    assert_eq!((&sent["state"], &sent["domain"]), (&json!("running"), &json!("localhost")));
    let (alice, stanza) = alice.message().await;
    assert_eq!(stanza.id.as_deref(), Some(&*id));
    let (bob, stanza) = Device::login(port, "bob").await.message().await;
    assert_eq!(stanza.id.as_deref(), Some(&*id));
    let one = format!("{ALL}/{id}");
    let done = world.until(&one, |found| found["acknowledged"] == 2 && found["given"] == 2).await;
    assert_eq!(done["state"], "running");
    let device = |name: &str| format!("{one}/devices/{name}");
    let state = world.get(&device("alice")).await.expect(StatusCode::OK);
    assert_eq!(
        (&state["state"], &state["acknowledged_by"]),
        (&json!("acknowledged"), &json!("stream-management"))
    );
    assert_eq!(world.get(&device("carol")).await.expect(StatusCode::OK)["state"], "waiting");
    world.get(&device("nobody")).await.problem(404, "unknown-device");
    // They are given nothing but what comes after it.
    drop((alice, bob));
    let second = world.post(ALL, json!({"payload": 2})).await.expect(StatusCode::ACCEPTED);
    let (_alice, stanza) = Device::login(port, "alice").await.message().await;
    assert_eq!(stanza.id.as_deref(), second["id"].as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_paused_changed_and_aborted() {
    let world = world();
    world.enrol("alice").await;
    let port = world.server.ports().websocket.unwrap();
    let body = json!({
        "payload": 1, "rate": 5, "not_before": "2099-01-01T00:00:00.000Z",
    });
    assert_eq!(world.post(ALL, body).await.problem(422, "invalid-value").as_deref(), Some("/not_before"));
    let window = json!({"from": "09:00", "to": "21:00", "utc_offset": "+09:00"});
    let body = json!({"payload": 1, "rate": 5, "window": window});
    let sent = world.post(ALL, body).await.expect(StatusCode::ACCEPTED);
    assert_eq!((&sent["rate"], &sent["window"]), (&json!(5), &window));
    let one = format!("{ALL}/{}", sent["id"].as_str().unwrap());
    let paused = world.patch(&one, json!({"paused": true, "window": null})).await.expect(StatusCode::OK);
    assert_eq!(
        (&paused["state"], paused.get("window"), &paused["rate"]),
        (&json!("paused"), None, &json!(5))
    );
    let alice = Device::login(port, "alice").await;
    world.patch(&one, json!({"paused": false, "rate": null})).await.expect(StatusCode::OK);
    let (_alice, _) = alice.message().await;
    for (wrong, status, code, at) in [
        (json!({"rate": 0}), 422, "invalid-value", "/rate"),
        (json!({"window": {"from": "9", "to": "21:00"}}), 422, "invalid-value", "/window/from"),
        (json!({"pause": true}), 400, "unknown-field", "/pause"),
    ] {
        assert_eq!(world.patch(&one, wrong).await.problem(status, code).as_deref(), Some(at));
    }
    let aborted = world.delete(&one).await.expect(StatusCode::OK);
    assert_eq!(aborted["state"], "aborted");
    assert_eq!(world.delete(&one).await.expect(StatusCode::OK)["ended_at"], aborted["ended_at"]);
    world.patch(&one, json!({"paused": true})).await.problem(409, "broadcast-ended");
    let listed = world.get(ALL).await.expect(StatusCode::OK);
    assert_eq!((listed["broadcasts"].as_array().unwrap().len(), &listed["next"]), (1, &json!(null)));
    for (method, uri) in [(Method::GET, "/none"), (Method::DELETE, "/01KAG8X4RZ5T9V7Q2M3N6P8W0Y")] {
        let request = world.request(method, &format!("{ALL}{uri}"), Body::empty());
        world.call(request).await.problem(404, "unknown-broadcast");
    }
}

#[tokio::test]
async fn it_takes_its_scope_and_its_domain() {
    let world = world();
    world.domain("other.example");
    let ask = async |scopes: &[Scope], uri: &str| {
        let request = world.request(Method::POST, uri, Body::from(json!({"payload": 1}).to_string()));
        let key = world.key("localhost", scopes);
        world.call(with_key(request, &key)).await
    };
    ask(&[Scope::Send], ALL).await.problem(403, "missing-scope");
    ask(&[Scope::Broadcast], ALL).await.expect(StatusCode::ACCEPTED);
    let other = "/v1/domains/other.example/notifications";
    ask(&[Scope::Broadcast], other).await.problem(403, "other-domain");
    world
        .post("/v1/domains/none.example/notifications", json!({"payload": 1}))
        .await
        .problem(404, "unknown-domain");
    let topic = world.post(ALL, json!({"payload": 1, "topic": "none"})).await;
    assert_eq!(topic.problem(404, "unknown-topic").as_deref(), Some("/topic"));
}

#[tokio::test]
async fn a_domain_has_so_many_open() {
    let world = world_with(|options| options.settings.broadcasts.per_domain_max = 2);
    let mut first = String::new();
    for _ in 0..2 {
        let sent = world.post(ALL, json!({"payload": 1})).await.expect(StatusCode::ACCEPTED);
        first = sent["id"].as_str().unwrap().to_owned();
    }
    world.post(ALL, json!({"payload": 1})).await.problem(409, "too-many-broadcasts");
    world.delete(&format!("{ALL}/{first}")).await.expect(StatusCode::OK);
    world.post(ALL, json!({"payload": 1})).await.expect(StatusCode::ACCEPTED);
}

#[tokio::test]
async fn sent_again_it_is_the_same_one() {
    let world = world();
    let send = async |n: u32| {
        let body = Body::from(json!({"payload": n}).to_string());
        let mut request = world.request(Method::POST, ALL, body);
        request.headers_mut().insert("idempotency-key", "once".parse().unwrap());
        world.call(request).await
    };
    let first = send(1).await.expect(StatusCode::ACCEPTED);
    assert_eq!(send(1).await.expect(StatusCode::ACCEPTED), first);
    send(2).await.problem(422, "idempotency-mismatch");
    assert_eq!(world.get(ALL).await.json()["broadcasts"].as_array().unwrap().len(), 1);
}
