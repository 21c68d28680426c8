//! Devices and their secrets.

use crate::support::device::Device;
use crate::support::{world, world_with};
use axum::body::Body;
use axum::http::{Method, StatusCode, header};
use carillon_wire::stream::Condition;
use serde_json::json;

#[tokio::test]
async fn a_device_is_enrolled_with_all_it_needs() {
    let world = world_with(|options| {
        options.endpoints.c2s_tls_port = Some(5223);
        options.endpoints.websocket_url = Some("wss://localhost/xmpp-websocket".into());
    });
    let mut bare = world.request(Method::POST, "/v1/devices", Body::empty());
    bare.headers_mut().remove(header::CONTENT_TYPE);
    let made = world.call(bare).await.expect(StatusCode::CREATED);
    let id = made["id"].as_str().unwrap();
    assert_eq!(made["jid"], format!("{id}@localhost"));
    assert_eq!(made["secret"].as_str().unwrap().len(), 32);
    assert_eq!(made["endpoints"]["host"], "localhost");
    assert_eq!(
        (&made["endpoints"]["c2s_tls_port"], &made["endpoints"]["c2s_port"]),
        (&json!(5223), &json!(null))
    );
    let valid = json!({"secret": made["secret"]});
    let uri = format!("/v1/devices/{id}/validate");
    assert_eq!(world.post(&uri, valid).await.expect(StatusCode::OK)["valid"], true);
    assert_eq!(world.post(&uri, json!({"secret": "guess"})).await.expect(StatusCode::OK)["valid"], false);

    let named = world.post("/v1/devices", json!({"id": "Console-7"})).await.expect(StatusCode::CREATED);
    assert_eq!(named["id"], "console-7");
    world.post("/v1/devices", json!({"id": "console-7"})).await.problem(409, "already-exists");
    assert_eq!(
        world.post("/v1/devices", json!({"id": "a@b"})).await.problem(422, "invalid-jid").as_deref(),
        Some("/id")
    );
    assert_eq!(
        world.post("/v1/devices", json!({"secret": ""})).await.problem(422, "invalid-secret").as_deref(),
        Some("/secret")
    );
}

#[tokio::test]
async fn devices_are_listed_and_removed() {
    let world = world();
    for id in ["a", "b", "c"] {
        world.enrol(id).await;
    }
    let page = world.get("/v1/devices?limit=2").await.expect(StatusCode::OK);
    assert_eq!((&page["devices"][1]["jid"], &page["next"]), (&json!("b@localhost"), &json!("b")));
    let rest = world.get("/v1/devices?limit=2&after=b").await.expect(StatusCode::OK);
    assert_eq!((&rest["devices"][0]["id"], &rest["next"]), (&json!("c"), &json!(null)));
    let one = world.get("/v1/devices/a").await.expect(StatusCode::OK);
    assert_eq!((&one["state"], &one["sessions"], &one["topics"]), (&json!("enabled"), &json!(0), &json!([])));
    world.delete("/v1/devices/a").await.expect(StatusCode::NO_CONTENT);
    world.get("/v1/devices/a").await.problem(404, "unknown-device");
    world.delete("/v1/devices/a").await.problem(404, "unknown-device");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_secret_ends_the_sessions_of_the_old() {
    let world = world();
    world.enrol("alice").await;
    let port = world.server.ports().websocket.unwrap();
    let device = Device::login(port, "alice").await;
    world.until("/v1/devices/alice", |d| d["sessions"] == 1).await;
    let kept =
        world.post("/v1/devices/alice/rotate", json!({"secret": "alice", "keep_sessions": true})).await;
    assert_eq!(kept.expect(StatusCode::OK)["sessions_ended"], 0);
    let rotated = world.post("/v1/devices/alice/rotate", json!({})).await.expect(StatusCode::OK);
    assert_eq!(rotated["sessions_ended"], 1);
    assert_ne!(rotated["secret"], "alice");
    assert_eq!(device.end().await, Condition::NotAuthorized);
    world.until("/v1/devices/alice", |d| d["sessions"] == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_device_is_out_until_it_is_enabled() {
    let world = world();
    world.enrol("alice").await;
    let port = world.server.ports().websocket.unwrap();
    let device = Device::login(port, "alice").await;
    world.post("/v1/devices/alice/disable", json!({})).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(device.end().await, Condition::NotAuthorized);
    let read = world.get("/v1/devices/alice").await.json();
    assert!(read["state"] == "disabled" && read["disabled_at"].is_string());
    let valid = world.post("/v1/devices/alice/validate", json!({"secret": "alice"})).await;
    assert_eq!(valid.expect(StatusCode::OK)["valid"], false);
    world.post("/v1/devices/alice/enable", json!({})).await.expect(StatusCode::NO_CONTENT);
    Device::login(port, "alice").await;
    world.post("/v1/devices/bob/enable", json!({})).await.problem(404, "unknown-device");
}
