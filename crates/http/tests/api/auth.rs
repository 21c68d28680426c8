//! Who may do what.

use crate::support::{with_key, world};
use axum::body::Body;
use axum::http::{Method, StatusCode, header};
use carillon_core::model::Scope;
use serde_json::json;

#[tokio::test]
async fn without_a_good_key_nothing_is_done() {
    let world = world();
    let mut request = world.request(Method::GET, "/v1/topics", Body::empty());
    request.headers_mut().remove(header::AUTHORIZATION);
    let reply = world.call(request).await;
    reply.problem(401, "missing-key");
    assert_eq!(reply.headers[header::WWW_AUTHENTICATE], "Bearer realm=\"carillon\"");

    let (stranger, _) = carillon_http::generate_key();
    for wrong in ["", "crl_short", stranger.as_str()] {
        let request = with_key(world.request(Method::GET, "/v1/topics", Body::empty()), wrong);
        let reply = world.call(request).await;
        assert_eq!(reply.status, StatusCode::UNAUTHORIZED, "{}", reply.text);
        assert!(reply.headers.contains_key(header::WWW_AUTHENTICATE));
    }
    let mut request = world.request(Method::GET, "/v1/topics", Body::empty());
    request.headers_mut().insert(header::AUTHORIZATION, "Basic YTpi".parse().unwrap());
    world.call(request).await.problem(401, "missing-key");
}

#[tokio::test]
async fn a_key_does_what_its_scopes_say() {
    let world = world();
    let sender = world.key("localhost", &[Scope::Send]);
    let admin = world.key("localhost", &[Scope::Admin]);
    let topics = || world.request(Method::GET, "/v1/topics", Body::empty());
    let reply = world.call(with_key(topics(), &sender)).await;
    reply.problem(403, "missing-scope");
    assert!(reply.headers[header::WWW_AUTHENTICATE].to_str().unwrap().contains("scope=\"topics\""));
    world.call(with_key(topics(), &admin)).await.expect(StatusCode::OK);
}

#[tokio::test]
async fn a_key_of_a_domain_stays_in_it() {
    let world = world();
    world.enrol("alice").await;
    let other = world.key("other.example", &[Scope::Admin]);
    let as_other = |method, uri: &str, body: &str| {
        with_key(world.request(method, uri, Body::from(body.to_owned())), &other)
    };

    world.call(as_other(Method::GET, "/v1/topics?domain=localhost", "")).await.problem(403, "other-domain");
    world.call(as_other(Method::GET, "/v1/topics?domain=other.example", "")).await.expect(StatusCode::OK);
    let body = r#"{"to":"alice@localhost","payload":1}"#;
    let pointer =
        world.call(as_other(Method::POST, "/v1/notifications", body)).await.problem(403, "other-domain");
    assert_eq!(pointer.as_deref(), Some("/to"));
    world.call(as_other(Method::GET, "/v1/admin/status", "")).await.problem(403, "other-domain");
    world.call(as_other(Method::GET, "/v1/admin/history", "")).await.problem(403, "other-domain");
    world
        .call(as_other(Method::DELETE, "/v1/admin/domains/other.example", ""))
        .await
        .problem(403, "other-domain");
    world
        .call(as_other(Method::PUT, "/v1/admin/domains/new.example", "{}"))
        .await
        .problem(403, "other-domain");
    world
        .call(as_other(Method::DELETE, "/v1/admin/sessions/alice@localhost", ""))
        .await
        .problem(403, "other-domain");
    let domains = world.call(as_other(Method::GET, "/v1/admin/domains", "")).await.expect(StatusCode::OK);
    assert_eq!(domains["domains"].as_array().unwrap().len(), 1);

    // What another domain sent is not there for this key.
    let sent = world
        .post("/v1/notifications", json!({"to": "alice", "payload": 1}))
        .await
        .expect(StatusCode::ACCEPTED);
    let uri = format!("/v1/notifications/{}", sent["id"].as_str().unwrap());
    world.call(as_other(Method::GET, &uri, "")).await.problem(404, "unknown-notification");
    world.call(as_other(Method::DELETE, &uri, "")).await.problem(404, "unknown-notification");
}

#[tokio::test]
async fn a_key_of_the_node_names_its_domain() {
    let world = world();
    world.put("/v1/topics/here", json!({})).await.expect(StatusCode::CREATED);
    world.put("/v1/topics/there?domain=other.example", json!({})).await.expect(StatusCode::CREATED);
    let topics = world.get("/v1/topics?domain=other.example").await.expect(StatusCode::OK);
    assert_eq!(topics["topics"][0]["name"], "there");
    assert_eq!(topics["topics"].as_array().unwrap().len(), 1);
    world.get("/v1/topics?domain=nowhere.example").await.problem(404, "unknown-domain");
}

#[tokio::test]
async fn a_deleted_key_is_dead_at_once() {
    let world = world();
    let made = world
        .post("/v1/admin/keys", json!({"name": "sender", "scopes": ["send"]}))
        .await
        .expect(StatusCode::CREATED);
    let key = made["key"].as_str().unwrap();
    let own = || with_key(world.request(Method::GET, "/v1/key", Body::empty()), key);
    let view = world.call(own()).await.expect(StatusCode::OK);
    assert_eq!(
        (&view["name"], &view["scopes"], &view["domain"]),
        (&json!("sender"), &json!(["send"]), &json!(null))
    );
    assert_eq!(view["default_domain"], "localhost");
    assert!(view.get("key").is_none());
    world.delete(&format!("/v1/admin/keys/{}", made["id"])).await.expect(StatusCode::NO_CONTENT);
    world.call(own()).await.problem(401, "unknown-key");
    world.delete(&format!("/v1/admin/keys/{}", made["id"])).await.problem(404, "unknown-key-id");
}

#[tokio::test]
async fn the_last_key_that_administers_the_node_goes_only_when_that_is_meant() {
    let world = world();
    let list = world.get("/v1/admin/keys").await.expect(StatusCode::OK);
    let is_admin = |key: &&serde_json::Value| {
        key["domain"].is_null() && key["scopes"].as_array().unwrap().contains(&json!("admin"))
    };
    let admins: Vec<_> = list["keys"].as_array().unwrap().iter().filter(is_admin).collect();
    assert_eq!(admins.len(), 1, "{list}");
    let last = &admins[0]["id"];
    // One that is bound to a domain cannot stand in for it.
    let bound = json!({"name": "tenant", "scopes": ["admin"], "domain": "other.example"});
    world.post("/v1/admin/keys", bound).await.expect(StatusCode::CREATED);
    world.delete(&format!("/v1/admin/keys/{last}")).await.problem(409, "last-admin-key");
    let spare = json!({"name": "spare", "scopes": ["admin"]});
    let spare = world.post("/v1/admin/keys", spare).await.expect(StatusCode::CREATED);
    world.delete(&format!("/v1/admin/keys/{}", spare["id"])).await.expect(StatusCode::NO_CONTENT);
    world.delete(&format!("/v1/admin/keys/{last}?last=true")).await.expect(StatusCode::NO_CONTENT);
    world.get("/v1/admin/keys").await.problem(401, "unknown-key");
}
