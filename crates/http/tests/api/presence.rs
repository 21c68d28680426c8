//! Who is there.

use crate::support::device::Device;
use crate::support::{with_key, world};
use axum::body::Body;
use axum::http::{Method, StatusCode};
use carillon_core::model::Scope;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn many_accounts_are_looked_up_at_once() {
    let world = world();
    world.enrol("alice").await;
    let look_up = async |accounts| world.post("/v1/presence", json!({"accounts": accounts})).await;
    let offline = |jid: &str| json!({"jid": jid, "online": false, "state": "offline", "sessions": 0});
    let nobody = look_up(json!(["alice", "nobody@localhost"])).await.expect(StatusCode::OK);
    assert_eq!(nobody["presence"], json!([offline("alice@localhost"), offline("nobody@localhost")]));

    let port = world.server.ports().websocket.unwrap();
    let device = Device::login(port, "alice").await;
    world.until("/v1/admin/sessions", |s| s["sessions"][0]["presence"] == "available").await;
    let reply = look_up(json!(["bob", "a b", "alice", "x@nowhere.example"])).await;
    let list = reply.expect(StatusCode::MULTI_STATUS)["presence"].take();
    assert_eq!((&list[0], &list[1]["jid"]), (&offline("bob@localhost"), &json!("a b")));
    assert_eq!(
        (&list[1]["error"]["code"], &list[3]["error"]["code"]),
        (&json!("invalid-jid"), &json!("unknown-domain"))
    );
    assert_eq!(list[1]["error"]["pointer"], "/accounts/1");
    let alice = &list[2];
    assert_eq!(
        (&alice["online"], &alice["state"], &alice["sessions"]),
        (&json!(true), &json!("active"), &json!(1))
    );
    let session = world.get("/v1/admin/sessions").await.json()["sessions"][0].take();
    assert_eq!(alice["since"], session["since"]);
    let reading = tokio::spawn(device.end());
    world.delete("/v1/admin/sessions/alice").await.expect(StatusCode::OK);
    reading.await.unwrap();
    let state = async || look_up(json!(["alice"])).await.json()["presence"][0]["state"].take();
    let gone = async { while state().await != "offline" {} };
    tokio::time::timeout(std::time::Duration::from_secs(20), gone).await.unwrap();
}

#[tokio::test]
async fn what_is_asked_for_is_bounded_and_within_reach() {
    let world = world();
    let of = |count: usize| json!({"accounts": (0..count).map(|n| format!("u{n}")).collect::<Vec<_>>()});
    let most = world.post("/v1/presence", of(1000)).await.expect(StatusCode::OK);
    assert_eq!(most["presence"].as_array().unwrap().len(), 1000);
    assert_eq!(most["presence"][999]["jid"], "u999@localhost");
    world.post("/v1/presence", of(1001)).await.problem(422, "too-many-targets");
    world.post("/v1/presence", of(0)).await.problem(422, "invalid-value");
    let key = world.key("other.example", &[Scope::Send]);
    let body = Body::from(json!({"accounts": ["alice@localhost", "alice"]}).to_string());
    let reply = world.call(with_key(world.request(Method::POST, "/v1/presence", body), &key)).await;
    let list = reply.expect(StatusCode::MULTI_STATUS)["presence"].take();
    assert_eq!(list[0]["error"]["code"], "other-domain");
    assert_eq!(list[1]["jid"], "alice@other.example");
    let topics = world.key("localhost", &[Scope::Topics]);
    let request = world.request(Method::POST, "/v1/presence", Body::from(of(1).to_string()));
    world.call(with_key(request, &topics)).await.problem(403, "missing-scope");
}
