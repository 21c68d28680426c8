//! Acting for people: sending as an account, rosters, block lists.

use crate::support::{World, with_key, world};
use axum::body::Body;
use axum::http::{Method, StatusCode, header};
use carillon_core::model::Scope;
use serde_json::{Value, json};

async fn alice_bob_and_carol() -> World {
    let world = world();
    for name in ["alice", "bob", "carol"] {
        world.enrol(name).await;
    }
    world
}

fn roster(page: &Value) -> Vec<(&str, &str)> {
    let contacts = page["contacts"].as_array().unwrap().iter();
    contacts.map(|c| (c["jid"].as_str().unwrap(), c["subscription"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn a_message_is_sent_as_an_account() {
    let world = alice_bob_and_carol().await;
    let body = json!({"to": "bob", "body": "a & b", "subject": "s", "thread": "t", "id": "m1"});
    let sent = world.post("/v1/accounts/alice/messages", body).await.expect(StatusCode::OK);
    assert_eq!(sent, json!({"id": "m1", "settled": true}));
    let unknown = world.post("/v1/accounts/alice/messages", json!({"to": "nobody", "body": "x"})).await;
    unknown.problem(409, "refused");
    let nobody = world.post("/v1/accounts/nobody/messages", json!({"to": "bob", "body": "x"})).await;
    nobody.problem(404, "unknown-account");
    for (body, status, code) in [
        (json!({"to": "bob", "body": ""}), 422, "invalid-value"),
        (json!({"to": "a b", "body": "x"}), 422, "invalid-jid"),
        (json!({"to": "bob", "body": "x", "id": ""}), 422, "invalid-value"),
        (json!({"to": "bob", "body": "x", "from": "eve"}), 400, "unknown-field"),
        (json!({"to": "bob"}), 400, "missing-field"),
        (json!({"to": "bob", "body": "x".repeat(200_000)}), 413, "payload-too-large"),
        (json!({"to": "bob@elsewhere.example", "body": "x"}), 409, "refused"),
    ] {
        world.post("/v1/accounts/alice/messages", body).await.problem(status, code);
    }
}

#[tokio::test]
async fn the_same_message_again_is_sent_once() {
    let world = alice_bob_and_carol().await;
    let send = || {
        let body = json!({"to": "bob", "body": "once"}).to_string();
        let mut request = world.request(Method::POST, "/v1/accounts/alice/messages", Body::from(body));
        request.headers_mut().insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
        request.headers_mut().insert("idempotency-key", "k1".parse().unwrap());
        world.call(request)
    };
    let first = send().await.expect(StatusCode::OK);
    let again = send().await;
    assert_eq!(again.expect(StatusCode::OK), first);
}

#[tokio::test]
async fn contacts_are_made_and_removed() {
    let world = alice_bob_and_carol().await;
    let uri = "/v1/accounts/alice/roster/bob";
    let put = world.put(uri, json!({"name": "Bob", "groups": ["Friends"]})).await.expect(StatusCode::OK);
    let bob = json!({"jid": "bob@localhost", "name": "Bob", "groups": ["Friends"], "subscription": "none"});
    assert_eq!(put, bob);
    assert_eq!(roster(&world.get("/v1/accounts/bob/roster").await.expect(StatusCode::OK)), []);
    let put = world.put(uri, json!({"mutual": true})).await.expect(StatusCode::OK);
    assert_eq!(put, json!({"jid": "bob@localhost", "groups": [], "subscription": "both"}));
    // Twice is as good as once.
    world.put(uri, json!({"mutual": true})).await.expect(StatusCode::OK);
    for (account, contact) in [("alice", "bob@localhost"), ("bob", "alice@localhost")] {
        let page = world.get(&format!("/v1/accounts/{account}/roster")).await.expect(StatusCode::OK);
        assert_eq!(roster(&page), [(contact, "both")]);
    }
    world.delete(uri).await.expect(StatusCode::NO_CONTENT);
    world.delete(uri).await.problem(404, "unknown-contact");
    assert_eq!(roster(&world.get("/v1/accounts/alice/roster").await.expect(StatusCode::OK)), []);
    let page = world.get("/v1/accounts/bob/roster").await.expect(StatusCode::OK);
    assert_eq!(roster(&page), [("alice@localhost", "none")]);
    world
        .put("/v1/accounts/alice/roster/nobody", json!({"mutual": true}))
        .await
        .problem(404, "unknown-account");
    world.put("/v1/accounts/alice/roster/alice", json!({})).await.problem(403, "forbidden");
    world.get("/v1/accounts/nobody/roster").await.problem(404, "unknown-account");
}

#[tokio::test]
async fn nothing_passes_between_those_who_block() {
    let world = alice_bob_and_carol().await;
    world.put("/v1/accounts/alice/blocked/carol", json!({})).await.expect(StatusCode::NO_CONTENT);
    let list = world.get("/v1/accounts/alice/blocked").await.expect(StatusCode::OK);
    assert_eq!(list, json!({"blocked": ["carol@localhost"]}));
    for (from, to) in [("alice", "carol"), ("carol", "alice")] {
        let uri = format!("/v1/accounts/{from}/messages");
        world.post(&uri, json!({"to": to, "body": "x"})).await.problem(409, "refused");
    }
    world.put("/v1/accounts/alice/roster/carol", json!({"mutual": true})).await.problem(422, "invalid-value");
    world.delete("/v1/accounts/alice/blocked/carol").await.expect(StatusCode::NO_CONTENT);
    world
        .post("/v1/accounts/carol/messages", json!({"to": "alice", "body": "x"}))
        .await
        .expect(StatusCode::OK);
}

#[tokio::test]
async fn scope_chat_is_enough_and_needed() {
    let world = alice_bob_and_carol().await;
    let chat = world.key("localhost", &[Scope::Chat]);
    let send = world.key("localhost", &[Scope::Send, Scope::Enrol]);
    for uri in ["/v1/accounts/alice/roster", "/v1/accounts/alice/blocked", "/v1/accounts/alice/conversations"]
    {
        let ask = |key: &str| world.call(with_key(world.request(Method::GET, uri, Body::empty()), key));
        ask(&chat).await.expect(StatusCode::OK);
        ask(&send).await.problem(403, "missing-scope");
    }
    // Contacts of other domains are for keys that reach them.
    let mut request = world.request(
        Method::PUT,
        "/v1/accounts/alice/roster/x@other.example",
        Body::from("{\"mutual\":true}"),
    );
    request.headers_mut().insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
    world.call(with_key(request, &chat)).await.problem(403, "other-domain");
}

#[tokio::test]
async fn an_account_that_is_removed_leaves_its_contacts() {
    let world = alice_bob_and_carol().await;
    world.put("/v1/accounts/alice/roster/bob", json!({"mutual": true})).await.expect(StatusCode::OK);
    world.put("/v1/accounts/carol/roster/alice", json!({"mutual": true})).await.expect(StatusCode::OK);
    world.delete("/v1/admin/accounts/alice").await.expect(StatusCode::NO_CONTENT);
    for name in ["bob", "carol"] {
        let page = world.get(&format!("/v1/accounts/{name}/roster")).await.expect(StatusCode::OK);
        assert_eq!(roster(&page), [("alice@localhost", "none")]);
    }
    world.delete("/v1/admin/accounts/alice").await.problem(404, "unknown-account");
    world.delete("/v1/devices/bob").await.expect(StatusCode::NO_CONTENT);
    let page = world.get("/v1/accounts/carol/roster").await.expect(StatusCode::OK);
    assert_eq!(roster(&page), [("alice@localhost", "none")]);
}

#[tokio::test]
async fn a_domain_that_is_removed_leaves_the_rosters_of_others() {
    let world = alice_bob_and_carol().await;
    world.put("/v1/admin/domains/other.example", json!({})).await.expect(StatusCode::CREATED);
    let account = json!({"jid": "dan@other.example", "password": "secret"});
    world.post("/v1/admin/accounts", account).await.expect(StatusCode::CREATED);
    let mutual = || json!({"mutual": true});
    world.put("/v1/accounts/alice/roster/dan@other.example", mutual()).await.expect(StatusCode::OK);
    world.put("/v1/accounts/bob/roster/alice", mutual()).await.expect(StatusCode::OK);
    world.delete("/v1/admin/domains/other.example").await.expect(StatusCode::NO_CONTENT);
    let page = world.get("/v1/accounts/alice/roster").await.expect(StatusCode::OK);
    assert_eq!(roster(&page), [("bob@localhost", "both"), ("dan@other.example", "none")]);
    world.get("/v1/admin/domains/other.example").await.problem(404, "unknown-domain");
}
