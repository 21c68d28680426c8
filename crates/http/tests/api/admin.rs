//! Domains, accounts, keys and sessions.

use crate::support::device::Device;
use crate::support::{Events, World, ask, with_key, world};
use axum::body::Body;
use axum::http::{Method, StatusCode};
use carillon_core::model::{Scope, UnixMs};
use carillon_core::ports::store::domains::DeleteDomain;
use carillon_wire::stream::Condition;
use serde_json::json;

#[tokio::test]
async fn a_domain_comes_and_goes_while_the_node_runs() {
    let world = world();
    let policy = json!({"sessions": "single", "registration": false, "account_management": true, "pubsub_create": "any",
        "sessions_max": 20, "messages_durable": true, "resumption_ms_max": 86_400_000, "archive": false, "archive_days": 0,
        "archive_messages_max": 0, "archive_bytes_max": 1 << 30, "keys_max": 100,
        "other_domains": false, "requests_per_second": 0, "stanzas_per_second": 0, "bytes_per_second": 0,
        "rooms_create": "any", "rooms_owned_max": 0, "rooms_max": 0, "accounts_max": 0, "topics_max": 0,
        "topics_owned_max": 0, "subscriptions_max": 0, "sessions_total_max": 0, "bytes_out_per_second": 0, "stored_bytes_max": 0,
        "room_events": "off", "room_archive_days": 0});
    let made = world
        .put("/v1/admin/domains/new.example", json!({"sessions": "single"}))
        .await
        .expect(StatusCode::CREATED);
    assert_eq!(made, json!({"domain": "new.example", "policy": policy, "granted": policy}));
    world.post("/v1/devices?domain=new.example", json!({"id": "a"})).await.expect(StatusCode::CREATED);
    let uri = "/v1/admin/domains/NEW.example";
    for same in [json!({}), json!({"sessions": "single"})] {
        assert_eq!(world.put(uri, same).await.expect(StatusCode::OK), made);
    }
    let other = world.put(uri, json!({"registration": true})).await;
    assert_eq!(other.problem(409, "already-exists").as_deref(), Some("/registration"));
    let changed = world.patch(uri, json!({"registration": true})).await.expect(StatusCode::OK);
    assert_eq!(
        (&changed["policy"]["sessions"], &changed["policy"]["registration"]),
        (&json!("single"), &json!(true))
    );
    assert_eq!(changed["policy"], changed["granted"]);
    assert_eq!(world.get("/v1/admin/domains/new.example").await.expect(StatusCode::OK), changed);
    let list = world.get("/v1/admin/domains").await.expect(StatusCode::OK);
    let names: Vec<_> =
        list["domains"].as_array().unwrap().iter().map(|d| d["domain"].as_str().unwrap()).collect();
    assert_eq!(names, ["localhost", "new.example", "other.example"]);
    world.put("/v1/admin/domains/x.example", json!({"sessions_max": 0})).await.problem(422, "invalid-value");
    for wrong in [
        json!({"resumption_ms_max": 86_400_001}),
        json!({"archive_days": 36_501}),
        json!({"room_archive_days": 36_501}),
        json!({"archive_bytes_max": u64::MAX}),
        json!({"keys_max": 0}),
        json!({"requests_per_second": 1_000_001}),
        json!({"stanzas_per_second": 1_000_001}),
        json!({"rooms_owned_max": 1_000_001}),
        json!({"rooms_max": 1_000_001}),
        json!({"accounts_max": 100_000_001}),
        json!({"stored_bytes_max": u64::MAX}),
        json!({"topics_max": 10_000_001}),
        json!({"topics_owned_max": 10_000_001}),
        json!({"subscriptions_max": 10_000_001}),
        json!({"sessions_total_max": 100_000_001}),
    ] {
        world.put("/v1/admin/domains/x.example", wrong).await.problem(422, "invalid-value");
    }
    world.put("/v1/admin/domains/a%20b", json!({})).await.problem(422, "invalid-jid");
    world.delete("/v1/admin/domains/new.example").await.expect(StatusCode::NO_CONTENT);
    world.get("/v1/devices?domain=new.example").await.problem(404, "unknown-domain");
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_and_their_sessions() {
    let world = world();
    world
        .post("/v1/admin/accounts", json!({"jid": "alice@localhost", "password": "alice"}))
        .await
        .expect(StatusCode::CREATED);
    world
        .post("/v1/admin/accounts", json!({"jid": "alice", "password": "x"}))
        .await
        .problem(409, "already-exists");
    let accounts = world.get("/v1/admin/accounts").await.expect(StatusCode::OK);
    assert_eq!(accounts["accounts"][0]["jid"], "alice@localhost");

    let port = world.server.ports().websocket.unwrap();
    let device = Device::login(port, "alice").await;
    let sessions = world
        .until("/v1/admin/sessions?account=alice", |s| s["sessions"].as_array().unwrap().len() == 1)
        .await;
    let session = &sessions["sessions"][0];
    assert_eq!((&session["transport"], &session["presence"]), (&json!("websocket"), &json!("available")));
    let full = session["jid"].as_str().unwrap().replace('/', "%2F");
    let ended = world.delete(&format!("/v1/admin/sessions/{full}")).await.expect(StatusCode::OK);
    assert_eq!(ended["sessions_ended"], 1);
    assert_eq!(device.end().await, Condition::PolicyViolation);
    world.delete("/v1/admin/sessions/alice").await.problem(404, "unknown-session");

    world
        .put("/v1/admin/accounts/alice/password", json!({"password": "new"}))
        .await
        .expect(StatusCode::NO_CONTENT);
    assert_eq!(
        world.post("/v1/devices/alice/validate", json!({"secret": "new"})).await.json()["valid"],
        true
    );
    world.delete("/v1/admin/accounts/alice@localhost").await.expect(StatusCode::NO_CONTENT);
    world.delete("/v1/admin/accounts/alice@localhost").await.problem(404, "unknown-account");
}

#[tokio::test]
async fn a_domain_that_is_being_removed_is_made_again_when_it_is_gone() {
    let world = world();
    let uri = "/v1/admin/domains/other.example";
    for name in ["a", "b"] {
        world.post("/v1/devices?domain=other.example", json!({"id": name})).await.expect(StatusCode::CREATED);
    }
    let key = world.key("other.example", &[Scope::Send]);
    let request = with_key(world.request(Method::GET, "/v1/events", Body::empty()), &key);
    let mut events = Events::of(world.open(request).await);
    // Another process removed a part. That was so late that the node does not go on with it yet.
    let domain = world.server.node().domains().named("other.example").unwrap().id;
    let part = DeleteDomain { domain, now: UnixMs(u64::MAX >> 2), rows_max: 1 };
    assert!(ask(&*world.store, part.clone()).unwrap().more);
    reload_domains(&world).await;
    world.put(uri, json!({})).await.problem(409, "already-exists");
    world.patch(uri, json!({"registration": true})).await.problem(409, "already-exists");
    // And the rest: what was kept of it here goes, too.
    while ask(&*world.store, part.clone()).unwrap().more {}
    reload_domains(&world).await;
    assert!(events.next().await.is_none());
    world.put(uri, json!({})).await.expect(StatusCode::CREATED);
}

/// As a node of a cell does that is told that domains have changed.
async fn reload_domains(world: &World) {
    let (reply, done) = tokio::sync::oneshot::channel();
    world.server.node().reload_domains(Box::new(move |()| reply.send(()).unwrap()));
    done.await.unwrap();
}

#[tokio::test]
async fn keys_are_made_listed_and_removed() {
    let world = world();
    let body = json!({"name": "games", "domain": "other.example", "scopes": ["enrol", "send"]});
    let made = world.post("/v1/admin/keys", body).await.expect(StatusCode::CREATED);
    assert!(made["key"].as_str().unwrap().starts_with("crl_"));
    let list = world.get("/v1/admin/keys").await.expect(StatusCode::OK);
    let listed = list["keys"].as_array().unwrap().iter().find(|k| k["id"] == made["id"]).unwrap();
    assert_eq!((&listed["domain"], &listed["scopes"]), (&json!("other.example"), &json!(["send", "enrol"])));
    assert!(listed.get("key").is_none());
    world.post("/v1/admin/keys", json!({"name": "", "scopes": ["send"]})).await.problem(422, "invalid-value");
    world.post("/v1/admin/keys", json!({"name": "x", "scopes": []})).await.problem(422, "invalid-value");
    assert_eq!(
        world
            .post("/v1/admin/keys", json!({"name": "x", "scopes": ["fly"]}))
            .await
            .problem(400, "wrong-type")
            .as_deref(),
        Some("/scopes/0")
    );
    world
        .post("/v1/admin/keys", json!({"name": "x", "scopes": ["send"], "domain": "no.example"}))
        .await
        .problem(404, "unknown-domain");
}

#[tokio::test]
async fn the_status_has_the_nodes_figures() {
    let world = world();
    let status = world.get("/v1/admin/status").await.expect(StatusCode::OK);
    assert_eq!((&status["ready"], &status["shards"]), (&json!(true), &json!(2)));
    assert!(status["store"]["answered"].is_u64() && status["delivery_p99_ms"].is_number());
}

#[tokio::test]
async fn the_history_has_what_the_node_did_and_goes_on_where_a_reader_left() {
    let world = world();
    world.enrol("alice").await;
    let _device = Device::login(world.server.ports().websocket.unwrap(), "alice").await;
    let history = world
        .until("/v1/admin/history", |history| {
            history["samples"].as_array().unwrap().last().is_some_and(|sample| sample["sessions"] == 1)
        })
        .await;
    assert_eq!(history["interval_ms"], 2000);
    let samples = history["samples"].as_array().unwrap();
    let (first, last) = (&samples[0], &samples[samples.len() - 1]);
    assert!(samples.iter().any(|sample| sample["logins_per_second"].as_f64().unwrap() > 0.0), "{history}");
    assert!(last["resident_bytes"].as_u64().unwrap() > 1 << 20, "{last}");
    assert!(first["cpu"].as_f64().unwrap() > 0.0, "{first}");
    assert_eq!((&last["connections"], &last["delivery_p50_ms"]), (&json!(1), &json!(null)));

    // Its own page and nothing before it; all of them for one who knows a time that no sample has.
    let after = format!("/v1/admin/history?after={}", last["at"].as_str().unwrap());
    let later = world.until(&after, |later| later["samples"][0].is_object()).await;
    assert!(later["samples"][0]["at"].as_str() > last["at"].as_str(), "{later}");
    let all = world.get("/v1/admin/history?after=2001-01-01T00:00:00Z").await.expect(StatusCode::OK);
    assert_eq!(all["samples"][0], *first);
    world.get("/v1/admin/history?after=yesterday").await.problem(400, "invalid-parameter");
}
