//! The node as a push service: pushes that are taken and refused, and endpoints as operators see them.

use crate::support::{World, ask, with_key, world_with};
use axum::body::Body;
use axum::http::{HeaderMap, Method, StatusCode};
use carillon_core::model::{EndpointId, EndpointKey, Scope, UnixMs};
use carillon_core::ports::store::endpoints::{RegisterEndpoint, RegisterEndpointAnswer};
use carillon_core::settings::Settings;
use serde_json::json;
use std::sync::Arc;

const PATH: &str = "/v1/push/endpoints";
/// Later than any test is run.
const LATER: UnixMs = UnixMs(32_503_680_000_000);

fn service() -> World {
    world_with(|options| {
        let mut core = Settings::default();
        core.push.service.url = "https://push.example/base/".to_owned();
        options.core = Arc::new(core);
    })
}

async fn account(world: &World, jid: &str) {
    let body = json!({ "jid": jid, "password": "secret" });
    world.post("/v1/admin/accounts", body).await.expect(StatusCode::CREATED);
}

/// An endpoint of alice's phone; the path of its URL on this node.
fn endpoint(world: &World, id: u128, expires: UnixMs) -> String {
    let domain = world.domain("localhost");
    let question = RegisterEndpoint {
        domain,
        local: "alice".into(),
        id: EndpointId(id),
        resource: "phone".into(),
        application: [id as u8; 32],
        instance: [0; 32],
        sender: None,
        now: UnixMs(0),
        expires,
        per_account_max: 9,
    };
    assert_eq!(ask(&*world.store, question), RegisterEndpointAnswer::Registered(EndpointId(id)));
    format!("/push/{}", EndpointKey::of(&[0; 32]).endpoint(domain, EndpointId(id)))
}

async fn push(world: &World, path: &str, ttl: Option<&str>, body: &[u8]) -> (u16, HeaderMap, String) {
    let mut request = axum::http::Request::builder().method(Method::POST).uri(path);
    if let Some(ttl) = ttl {
        request = request.header("ttl", ttl);
    }
    let reply = world.call(request.body(Body::from(body.to_vec())).expect("a request")).await;
    (reply.status.as_u16(), reply.headers, reply.text)
}

#[tokio::test]
async fn a_push_is_a_notification_that_is_taken_back_by_its_url() {
    let world = service();
    account(&world, "alice").await;
    let path = endpoint(&world, 7, LATER);
    let (status, headers, _) = push(&world, &path, Some("60"), b"hello").await;
    assert_eq!((status, &headers["ttl"]), (201, &"60".parse().unwrap()));
    let location = headers["location"].to_str().expect("ASCII");
    let message = location.strip_prefix("https://push.example/base").expect("it begins as the setting says");
    let listed = world.get("/v1/notifications?to=alice").await.expect(StatusCode::OK);
    assert_eq!(listed["notifications"][0]["state"], "stored");
    let cancel = || world.call(axum::http::Request::delete(message).body(Body::empty()).expect("a request"));
    for _ in 0..2 {
        assert_eq!(cancel().await.status, StatusCode::NO_CONTENT);
    }
    let known = world.call(axum::http::Request::get(&path).body(Body::empty()).expect("a request")).await;
    assert_eq!(known.expect(StatusCode::OK), json!({ "unifiedpush": { "version": 1 } }));
}

#[tokio::test]
async fn a_receipt_waits_for_what_becomes_of_a_push() {
    let world = service();
    account(&world, "alice").await;
    let path = endpoint(&world, 7, LATER);
    let request = axum::http::Request::post(&path).header("ttl", "60").header("prefer", "respond-async");
    let taken = world.call(request.body(Body::from("hello")).expect("a request")).await;
    assert_eq!(taken.status, StatusCode::ACCEPTED);
    let location = taken.headers["location"].to_str().expect("ASCII");
    let link = format!("<{location}>; rel=\"urn:ietf:params:push:receipt\"");
    assert_eq!(taken.headers["link"], link);
    let message = location.strip_prefix("https://push.example/base").expect("it begins as the setting says");
    let receipt = |wait: &str| {
        let request = axum::http::Request::get(message).header("prefer", format!("wait={wait}"));
        world.call(request.body(Body::empty()).expect("a request"))
    };
    assert_eq!(receipt("0").await.status, StatusCode::ACCEPTED);
    receipt("soon").await.problem(400, "invalid-header");
    let cancel = axum::http::Request::delete(message).body(Body::empty()).expect("a request");
    let (waited, cancelled) = tokio::join!(receipt("60"), world.call(cancel));
    waited.problem(410, "push-gone");
    assert_eq!(cancelled.status, StatusCode::NO_CONTENT);
    let other = axum::http::Request::get("/push/messages/abc").body(Body::empty()).expect("a request");
    world.call(other).await.problem(404, "unknown-notification");
}

#[tokio::test]
async fn what_cannot_be_pushed_is_refused() {
    let world = service();
    account(&world, "alice").await;
    let path = endpoint(&world, 7, LATER);
    for (path, ttl, bytes, status, code) in [
        (&*path, None, 1, 400, "invalid-header"),
        (&path, Some("soon"), 1, 400, "invalid-header"),
        (&path, Some("0"), 4097, 413, "payload-too-large"),
        (&endpoint(&world, 8, UnixMs(1)), Some("0"), 1, 410, "endpoint-gone"),
        ("/push/abc", Some("0"), 1, 404, "unknown-endpoint"),
    ] {
        let (found, _, text) = push(&world, path, ttl, &vec![0; bytes]).await;
        assert_eq!(found, status, "{text}");
        assert!(text.contains(code), "{text}");
    }
    // A node that is no push service has no endpoints, whoever signed for them.
    let other = crate::support::world();
    account(&other, "alice").await;
    let path = endpoint(&other, 7, LATER);
    assert_eq!(push(&other, &path, Some("0"), b"").await.0, 404);
}

#[tokio::test]
async fn endpoints_are_listed_and_revoked_by_who_reaches_their_domain() {
    let world = service();
    account(&world, "alice").await;
    let paths = [7, 8].map(|id| endpoint(&world, id, LATER));
    let page = world.get(&format!("{PATH}?account=alice&limit=1")).await.expect(StatusCode::OK);
    let id = EndpointId(7).to_string();
    assert_eq!((&page["endpoints"][0]["id"], &page["next"]), (&json!(id), &json!(id)));
    assert_eq!(page["endpoints"][0]["restricted"], false);
    let next = world.get(&format!("{PATH}?after={id}")).await.expect(StatusCode::OK);
    assert_eq!(next["endpoints"].as_array().map(Vec::len), Some(1));
    world.get(&format!("{PATH}?after=x")).await.problem(400, "invalid-parameter");
    let theirs = world.key("other.example", &[Scope::Enrol]);
    let uri = format!("{PATH}/{id}");
    let request = with_key(world.request(Method::DELETE, &uri, Body::empty()), &theirs);
    world.call(request).await.problem(404, "unknown-endpoint");
    world.delete(&uri).await.expect(StatusCode::NO_CONTENT);
    world.delete(&uri).await.problem(404, "unknown-endpoint");
    assert_eq!(push(&world, &paths[0], Some("0"), b"").await.0, 410);
    assert_eq!(push(&world, &paths[1], Some("0"), b"").await.0, 201);
}
