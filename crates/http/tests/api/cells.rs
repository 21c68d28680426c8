//! What a cell does for its front, and what a node says that is none.

use crate::support::{World, key, world};
use axum::body::Body;
use axum::http::{Method, StatusCode, header};
use carillon_core::model::Scope;
use serde_json::{Value, json};

async fn pending(world: &World, id: &str) -> Value {
    world.get(&format!("/v1/devices/{id}")).await.expect(StatusCode::OK)["pending"].clone()
}

#[tokio::test]
async fn an_account_goes_to_another_cell_with_what_waits_for_it() {
    let (here, there) = (world(), world());
    here.enrol("alice").await;
    for world in [&here, &there] {
        world.put("/v1/topics/news", json!({})).await.expect(StatusCode::CREATED);
    }
    for topic in ["news", "local"] {
        here.put(&format!("/v1/topics/{topic}"), json!({})).await;
        here.put(&format!("/v1/devices/alice/subscriptions/{topic}"), json!({}))
            .await
            .expect(StatusCode::CREATED);
    }
    let later = json!({"to": "alice", "payload": {"n": 9}, "send_at": "2099-01-01T00:00:00Z"});
    here.post("/v1/notifications", later).await.problem(422, "invalid-value");
    for n in 0..3 {
        let body = json!({"to": "alice", "payload": {"n": n}, "collapse_key": format!("k{n}")});
        here.post("/v1/notifications", body).await.expect(StatusCode::ACCEPTED);
    }
    here.post("/v1/devices/alice/disable", json!({})).await;
    let path = "/v1/admin/accounts/alice@localhost/transfer";
    let transfer = here.get(path).await.expect(StatusCode::OK);
    assert_eq!(transfer["topics"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        (transfer["notifications"].as_array().map(Vec::len), &transfer["next"]),
        (Some(3), &Value::Null)
    );
    for _ in 0..2 {
        let taken = there.put(path, transfer.clone()).await.expect(StatusCode::OK);
        assert_eq!(
            taken,
            json!({"notifications": 3, "topics_missing": ["local"]}),
            "the same again is no more"
        );
        assert_eq!(pending(&there, "alice").await, 3);
    }
    assert_eq!(there.get(path).await.expect(StatusCode::OK)["notifications"], transfer["notifications"]);
    let device = there.get("/v1/devices/alice").await.expect(StatusCode::OK);
    assert_eq!((&device["state"], &device["topics"]), (&json!("disabled"), &json!(["news"])));
    there.post("/v1/devices/alice/enable", json!({})).await;
    let valid = there.post("/v1/devices/alice/validate", json!({"secret": "alice"})).await;
    assert_eq!(valid.expect(StatusCode::OK)["valid"], true, "it has the secret that it had");
}

#[tokio::test]
async fn what_a_front_gave_an_id_is_done_once() {
    let world = world();
    world.enrol("alice").await;
    world.put("/v1/topics/news", json!({})).await.expect(StatusCode::CREATED);
    let sent = world.post("/v1/notifications", json!({"to": "alice", "payload": 1})).await;
    let id = sent.expect(StatusCode::ACCEPTED)["id"].as_str().unwrap().to_owned();
    let path = "/v1/admin/accounts/alice@localhost/transfer";
    let document = world.get(path).await.expect(StatusCode::OK)["notifications"][0].clone();
    let taken = world.post("/v1/admin/notifications", document.clone()).await.expect(StatusCode::ACCEPTED);
    assert_eq!((&taken["id"], &pending(&world, "alice").await), (&json!(id), &json!(1)));
    let mut other = document.clone();
    other["to"] = "bob@localhost".into();
    world.post("/v1/admin/notifications", other).await.problem(422, "invalid-value");
    let mut nobody = document;
    nobody["to"] = "alice@nowhere.example".into();
    world.post("/v1/admin/notifications", nobody).await.problem(404, "unknown-domain");

    let publish = |key: &str| {
        let body = json!({"payload": {"n": 1}}).to_string();
        let mut request = world.request(Method::POST, "/v1/topics/news/items", Body::from(body));
        request.headers_mut().insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
        request.headers_mut().insert("carillon-id", id.parse().unwrap());
        request.headers_mut().insert(header::AUTHORIZATION, format!("Bearer {key}").parse().unwrap());
        request
    };
    let first = world.call(publish(&world.admin)).await.expect(StatusCode::ACCEPTED);
    let again = world.call(publish(&world.admin)).await.expect(StatusCode::ACCEPTED);
    assert_eq!(first, again, "the same item, at the same time");
    let scoped = key(&*world.store, None, &[Scope::Topics]);
    world.call(publish(&scoped)).await.problem(403, "missing-scope");
    let bound = world.key("localhost", &[Scope::Admin]);
    world.call(publish(&bound)).await.problem(403, "other-domain");
    // It is what senders send, and no act of an administrator.
    let acts = world.get("/v1/admin/audit").await.expect(StatusCode::OK);
    let taken = |act: &Value| act["what"] == "POST /v1/admin/notifications" && act["outcome"] == "202";
    assert!(!acts["acts"].as_array().unwrap().iter().any(taken));
}

#[tokio::test]
async fn a_node_that_is_no_front_says_so() {
    let world = world();
    world.enrol("alice").await;
    world.get("/v1/cells").await.problem(409, "no-front");
    world.get("/v1/moves").await.problem(409, "no-front");
    world.post("/v1/moves", json!({"device": "alice", "to": "b"})).await.problem(409, "no-front");
    let here = world.get("/v1/devices/alice/endpoint").await.expect(StatusCode::OK);
    assert_eq!(here["endpoints"]["host"], "localhost");
    assert_eq!(here.get("cell"), None);
    world.get("/v1/devices/bob/endpoint").await.problem(404, "unknown-device");
}
