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
    assert_eq!(unknown.problem(409, "refused").as_deref(), Some("/to"));
    assert_eq!(unknown.json()["reason"], "unknown-account");
    assert_eq!(unknown.json()["detail"], "there is no account `nobody@localhost`");
    let nobody = world.post("/v1/accounts/nobody/messages", json!({"to": "bob", "body": "x"})).await;
    nobody.problem(404, "unknown-account");
    for (body, status, code) in [
        (json!({"to": "bob", "body": ""}), 422, "invalid-value"),
        (json!({"to": "", "body": "x"}), 422, "invalid-value"),
        (json!({"to": "bob", "body": "a\u{0}b"}), 422, "invalid-value"),
        (json!({"to": "bob", "body": "a", "subject": "\u{ffff}"}), 422, "invalid-value"),
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

/// Over XMPP who blocks and who is not there look the same. So they do to a key that does not reach the other's domain.
async fn open_to_each_other(world: &World, domains: &[&str]) {
    for domain in domains {
        let uri = format!("/v1/admin/domains/{domain}");
        world.patch(&uri, json!({"other_domains": true})).await.expect(StatusCode::OK);
    }
}

#[tokio::test]
async fn messages_to_domains_that_are_kept_apart_are_refused_with_the_policy() {
    let world = alice_bob_and_carol().await;
    for to in ["dave@other.example", "dave@nowhere.example"] {
        let refused = world.post("/v1/accounts/alice/messages", json!({"to": to, "body": "x"})).await;
        assert_eq!(refused.problem(409, "refused").as_deref(), Some("/to"));
        let domain = to.split_once('@').unwrap().1;
        let said = format!(
            "the node does not serve `{domain}`, or the policies of the two domains (`other_domains`) keep them apart"
        );
        assert_eq!(refused.json()["detail"], said);
    }
    let refused = world.put("/v1/accounts/alice/roster/dave@other.example", json!({"mutual": true})).await;
    assert_eq!(refused.problem(409, "refused").as_deref(), Some("contact"));
}

#[tokio::test]
async fn who_does_not_reach_the_others_domain_is_not_told_why() {
    let world = alice_bob_and_carol().await;
    open_to_each_other(&world, &["localhost", "other.example"]).await;
    world.post("/v1/devices?domain=other.example", json!({"id": "dave"})).await.expect(StatusCode::CREATED);
    let block = "/v1/accounts/dave@other.example/blocked/alice@localhost?domain=other.example";
    world.put(block, json!({})).await.expect(StatusCode::NO_CONTENT);
    let chat = world.key("localhost", &[Scope::Chat]);
    for name in ["dave", "nobody"] {
        let body = json!({"to": format!("{name}@other.example"), "body": "x"}).to_string();
        let request = world.request(Method::POST, "/v1/accounts/alice/messages", Body::from(body));
        let refused = world.call(with_key(request, &chat)).await;
        refused.problem(409, "refused");
        let said = format!("`{name}@other.example` does not exist, or blocks the sender");
        assert_eq!((&refused.json()["detail"], refused.json().get("reason")), (&json!(said), None));
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
    // What is not named stays.
    let put = world.put(uri, json!({"mutual": true})).await.expect(StatusCode::OK);
    let both = json!({"jid": "bob@localhost", "name": "Bob", "groups": ["Friends"], "subscription": "both"});
    assert_eq!(put, both);
    let put = world.put(uri, json!({"name": "", "groups": []})).await.expect(StatusCode::OK);
    assert_eq!(put, json!({"jid": "bob@localhost", "groups": [], "subscription": "both"}));
    world.put(uri, json!({"name": "a\u{0}b"})).await.problem(422, "invalid-value");
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
        let refused = world.post(&uri, json!({"to": to, "body": "x"})).await;
        refused.problem(409, "refused");
        assert_eq!(refused.json()["reason"], "blocked", "{}", refused.text);
        let detail = refused.json()["detail"].to_string();
        assert!(detail.contains("`alice@localhost` blocks `carol@localhost`"), "{detail}");
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
    world.patch("/v1/admin/domains/localhost", json!({"archive": true})).await.expect(StatusCode::OK);
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
    world.put("/v1/admin/domains/third.example", json!({})).await.expect(StatusCode::CREATED);
    open_to_each_other(&world, &["localhost", "third.example"]).await;
    let account = json!({"jid": "dan@third.example", "password": "secret"});
    world.post("/v1/admin/accounts", account).await.expect(StatusCode::CREATED);
    let mutual = || json!({"mutual": true});
    world.put("/v1/accounts/alice/roster/dan@third.example", mutual()).await.expect(StatusCode::OK);
    world.put("/v1/accounts/bob/roster/alice", mutual()).await.expect(StatusCode::OK);
    world.delete("/v1/admin/domains/third.example").await.expect(StatusCode::NO_CONTENT);
    let page = world.get("/v1/accounts/alice/roster").await.expect(StatusCode::OK);
    assert_eq!(roster(&page), [("bob@localhost", "both"), ("dan@third.example", "none")]);
    world.get("/v1/admin/domains/third.example").await.problem(404, "unknown-domain");
}
