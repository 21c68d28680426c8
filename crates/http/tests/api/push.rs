//! Registrations for push: made, listed, ended, and seen by who may.

use crate::support::{World, ask, with_key, world};
use axum::body::Body;
use axum::http::{Method, StatusCode, header};
use carillon_core::model::Scope;
use carillon_core::ports::store::push::NextPush;
use serde_json::{Value, json};

const PATH: &str = "/v1/push/registrations";

fn subscription() -> Value {
    json!({
        "endpoint": "https://push.example/secret",
        "expirationTime": null,
        "keys": {
            "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
            "auth": "BTBZMqHH6r4Tts7J_aSIgg==",
        },
    })
}

async fn account(world: &World, jid: &str) {
    let body = json!({ "jid": jid, "password": "secret" });
    world.post("/v1/admin/accounts", body).await.expect(StatusCode::CREATED);
}

#[tokio::test]
async fn one_is_made_read_replaced_and_ended() {
    let world = world();
    account(&world, "alice").await;
    let body = json!({ "account": "alice", "node": "phone", "web_push": subscription() });
    let made = world.post(PATH, body).await.expect(StatusCode::CREATED);
    let shown = (&made["account"], &made["channel"], &made["service"], &made["shown"], &made["state"]);
    let expected = ("alice@localhost", "web_push", "https://push.example", "sender", "ok");
    assert_eq!(
        shown,
        (&expected.0.into(), &expected.1.into(), &expected.2.into(), &expected.3.into(), &expected.4.into())
    );
    assert!(!made.to_string().contains("secret"), "nobody is told what is a secret of the app: {made}");
    let uri = format!("{PATH}/{}", made["id"]);
    assert_eq!(world.get(&uri).await.expect(StatusCode::OK), made);
    let hook = json!({ "account": "alice@localhost", "node": "phone", "shown": "whole", "webhook": { "url": "https://a.example/b" } });
    let again = world.post(PATH, hook).await.expect(StatusCode::CREATED);
    assert_eq!(
        (&again["id"], &again["channel"], &again["shown"]),
        (&made["id"], &json!("webhook"), &json!("whole"))
    );
    assert!(again["secret"].as_str().is_some_and(|secret| secret.starts_with("whsec_")));
    let list = world.get(&format!("{PATH}?account=alice&limit=1")).await.expect(StatusCode::OK);
    assert_eq!((list["registrations"].as_array().map(Vec::len), &list["next"]), (Some(1), &Value::Null));
    world.delete(&uri).await.expect(StatusCode::NO_CONTENT);
    world.get(&uri).await.problem(404, "unknown-registration");
    world.delete(&uri).await.problem(404, "unknown-registration");
}

#[tokio::test]
async fn what_is_wrong_is_said_with_its_place() {
    let world = world();
    account(&world, "alice").await;
    let good = json!({ "account": "alice", "node": "phone", "web_push": subscription() });
    let refused = async |change: &[(&str, Value)], code: &str| {
        let mut body = good.clone();
        for (place, value) in change {
            *body.pointer_mut(place).expect("it is there") = value.clone();
        }
        let reply = world.post(PATH, body).await;
        let status = if code == "unknown-account" { 404 } else { 422 };
        reply.problem(status, code)
    };
    let at = |pointer: &str| Some(pointer.to_owned());
    let key = [("/web_push/keys/p256dh", json!("B".repeat(87)))];
    assert_eq!(refused(&key, "invalid-value").await, at("/web_push/keys/p256dh"));
    let auth = [("/web_push/keys/auth", json!("AA"))];
    assert_eq!(refused(&auth, "invalid-value").await, at("/web_push/keys/auth"));
    for url in ["ftp://a.example", "https://10.0.0.1/", "http://a.example/", "https://a@b.example/"] {
        let endpoint = [("/web_push/endpoint", json!(url))];
        assert_eq!(refused(&endpoint, "invalid-value").await, at("/web_push/endpoint"), "{url}");
    }
    assert_eq!(refused(&[("/node", json!(""))], "invalid-value").await, at("/node"));
    assert_eq!(refused(&[("/web_push", json!(null))], "invalid-value").await, at("/web_push"));
    let at_app = async |app: Value| {
        let body = json!({ "account": "alice", "node": "phone", "app": app });
        world.post(PATH, body).await.problem(422, "invalid-value")
    };
    let token = "a0".repeat(32);
    assert_eq!(at_app(json!({ "name": "chat", "token": token })).await, at("/app/name"), "there are no apps");
    let both = json!({ "account": "alice", "node": "phone", "web_push": subscription(), "app": { "name": "a", "token": token } });
    assert_eq!(world.post(PATH, both).await.problem(422, "invalid-value"), at("/web_push"));
    assert_eq!(refused(&[("/account", json!("nobody"))], "unknown-account").await, at("/account"));
    assert_eq!(ask(&*world.store, NextPush), None);
}

#[tokio::test]
async fn a_key_of_a_domain_reaches_those_of_its_domain() {
    let world = world();
    account(&world, "alice").await;
    let body = json!({ "account": "alice", "node": "phone", "web_push": subscription() });
    let made = world.post(PATH, body.clone()).await.expect(StatusCode::CREATED);
    let uri = format!("{PATH}/{}", made["id"]);
    let theirs = world.key("other.example", &[Scope::Enrol]);
    for (method, uri) in [(Method::GET, &*uri), (Method::DELETE, &*uri)] {
        let request = with_key(world.request(method, uri, Body::empty()), &theirs);
        world.call(request).await.problem(404, "unknown-registration");
    }
    let listed = world.call(with_key(world.request(Method::GET, PATH, Body::empty()), &theirs)).await;
    assert_eq!(listed.expect(StatusCode::OK)["registrations"], json!([]));
    let mut request = with_key(world.request(Method::POST, PATH, Body::from(body.to_string())), &theirs);
    request.headers_mut().insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
    world.call(request).await.problem(404, "unknown-account");
    let sender = world.key("localhost", &[Scope::Send]);
    let request = with_key(world.request(Method::GET, PATH, Body::empty()), &sender);
    world.call(request).await.problem(403, "missing-scope");
    let request = with_key(world.request(Method::GET, "/v1/push/key", Body::empty()), &sender);
    let key = world.call(request).await.expect(StatusCode::OK);
    assert_eq!(key["vapid"].as_str().map(str::len), Some(87));
}

#[tokio::test]
async fn templates_are_set_by_who_administers_their_domain() {
    const TEMPLATES: &str = "/v1/push/templates";
    let world = world();
    let none = json!({ "domain": "localhost", "templates": null });
    assert_eq!(world.get(TEMPLATES).await.expect(StatusCode::OK), none);
    let templates = json!({ "title": ["{sender}"], "body": ["{body}", "News"], "apns": { "title": [], "body": ["You have news"] } });
    let set = world.put(TEMPLATES, templates.clone()).await.expect(StatusCode::OK);
    assert_eq!(set, json!({ "domain": "localhost", "templates": templates }));
    assert_eq!(world.get(TEMPLATES).await.expect(StatusCode::OK), set);
    let many = vec!["a".repeat(500); 8];
    for (wrong, at) in [
        (json!({ "title": ["{sendr}"] }), "/title"),
        (json!({ "body": ["a".repeat(501)] }), "/body"),
        (json!({ "fcm": { "body": ["{"] } }), "/fcm/body"),
        (json!({ "webhook": { "title": vec!["a"; 9] } }), "/webhook/title"),
        (
            json!({ "title": many, "body": many, "apns": { "title": many, "body": many }, "fcm": { "title": many } }),
            "",
        ),
    ] {
        let pointer = world.put(TEMPLATES, wrong).await.problem(422, "invalid-value");
        assert_eq!(pointer.unwrap_or_default(), at);
    }
    world.put(TEMPLATES, json!({ "sms": {} })).await.problem(400, "unknown-field");
    // Nothing of what is refused is kept, and other domains have their own.
    assert_eq!(world.get(TEMPLATES).await.expect(StatusCode::OK), set);
    world.delete(TEMPLATES).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(world.get(TEMPLATES).await.expect(StatusCode::OK), none);
    let reader = world.key("localhost", &[Scope::Enrol]);
    let request = with_key(world.request(Method::GET, TEMPLATES, Body::empty()), &reader);
    world.call(request).await.problem(403, "missing-scope");
}
