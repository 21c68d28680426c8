//! Topics, items and followers.

use crate::support::device::Device;
use crate::support::world;
use axum::body::Body;
use axum::http::{Method, StatusCode};
use serde_json::json;

#[tokio::test]
async fn a_topic_from_its_making_to_its_end() {
    let world = world();
    world.get("/v1/topics/news").await.problem(404, "unknown-topic");
    let made = world
        .put("/v1/topics/news", json!({"title": "News", "max_items": 2}))
        .await
        .expect(StatusCode::CREATED);
    assert_eq!((&made["name"], &made["domain"]), (&json!("news"), &json!("localhost")));
    assert_eq!(made["config"]["access_model"], "open");
    let changed = world.patch("/v1/topics/news", json!({"max_items": 3})).await.expect(StatusCode::OK);
    assert_eq!((&changed["config"]["title"], &changed["config"]["max_items"]), (&json!("News"), &json!(3)));
    let read = world.get("/v1/topics/news").await.expect(StatusCode::OK);
    assert_eq!(read["config"], changed["config"]);
    let nothing = json!({"subscribers": 0, "sessions": 0, "published": 0, "delivered": 0});
    assert_eq!((&read["figures"], changed.get("figures")), (&nothing, None));
    world.delete("/v1/topics/news").await.expect(StatusCode::NO_CONTENT);
    world.delete("/v1/topics/news").await.problem(404, "unknown-topic");
}

#[tokio::test]
async fn a_topic_that_exists_is_left_as_it_is() {
    let world = world();
    let (uri, closed) = ("/v1/topics/t", json!({"access_model": "whitelist", "max_items": 5}));
    let made = world.put(uri, closed.clone()).await.expect(StatusCode::CREATED);
    for same in [closed, json!({}), json!({"max_items": 5})] {
        assert_eq!(world.put(uri, same).await.expect(StatusCode::OK), made);
    }
    let other = world.put(uri, json!({"title": "T", "access_model": "open", "max_items": 5})).await;
    assert_eq!(other.problem(409, "already-exists").as_deref(), Some("/access_model"));
    assert_eq!(
        other.json()["detail"],
        "the topic `t` exists with another value of `access_model`, `title`; `PATCH` changes it"
    );
    let config = || async { world.get(uri).await.expect(StatusCode::OK)["config"].clone() };
    assert_eq!(config().await, made["config"]);

    let mut expected = made["config"].clone();
    world.patch(uri, json!({"title": "T"})).await.expect(StatusCode::OK);
    expected["title"] = json!("T");
    assert_eq!(config().await, expected);
    world.patch(uri, json!({"max_items": null, "access_model": "open"})).await.expect(StatusCode::OK);
    (expected["max_items"], expected["access_model"]) = (json!(1), json!("open"));
    assert_eq!(config().await, expected);
    // As plain JSON, too.
    let request = world.request(Method::PATCH, uri, Body::from(r#"{"max_items":2}"#));
    assert_eq!(world.call(request).await.expect(StatusCode::OK)["config"]["max_items"], 2);
    for (wrong, status, code, at) in [
        (json!({"max_items": 0}), 422, "invalid-value", "/max_items"),
        (json!({"max_items": "2"}), 400, "wrong-type", "/max_items"),
        (json!({"maxItems": null}), 400, "unknown-field", "/maxItems"),
    ] {
        assert_eq!(world.patch(uri, wrong).await.problem(status, code).as_deref(), Some(at));
    }
    let missing = world.patch("/v1/topics/none", json!({})).await;
    missing.problem(404, "unknown-topic");
    assert_eq!(missing.json()["detail"], "the domain `localhost` has no topic `none`");
    let missing = world.post("/v1/topics/none/items", json!({"payload": 1})).await;
    missing.problem(404, "unknown-topic");
    assert_eq!(missing.json()["detail"], "the domain `localhost` has no topic `none`");
}

#[tokio::test]
async fn names_may_be_any_text() {
    let world = world();
    world.put("/v1/topics/news%2Feu%20%E2%98%95", json!({})).await.expect(StatusCode::CREATED);
    let read = world.get("/v1/topics/news%2Feu%20%E2%98%95").await.expect(StatusCode::OK);
    assert_eq!(read["name"], "news/eu ☕");
    world.put("/v1/topics/a%0Ab", json!({})).await.problem(400, "invalid-parameter");
    world.put(&format!("/v1/topics/{}", "a".repeat(1024)), json!({})).await.problem(400, "invalid-parameter");
    assert_eq!(
        world.put("/v1/topics/a", json!({"max_items": 0})).await.problem(422, "invalid-value").as_deref(),
        Some("/max_items")
    );
    assert_eq!(
        world.put("/v1/topics/a", json!({"maxItems": 1})).await.problem(400, "unknown-field").as_deref(),
        Some("/maxItems")
    );
}

#[tokio::test]
async fn topics_are_listed_in_pages() {
    let world = world();
    for name in ["a", "b", "c"] {
        world.put(&format!("/v1/topics/{name}"), json!({})).await.expect(StatusCode::CREATED);
    }
    let names = |page: &serde_json::Value| {
        page["topics"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let first = world.get("/v1/topics?limit=2").await.expect(StatusCode::OK);
    assert_eq!((names(&first), &first["next"]), (vec!["a".into(), "b".into()], &json!("b")));
    let second = world.get("/v1/topics?limit=2&after=b").await.expect(StatusCode::OK);
    assert_eq!((names(&second), &second["next"]), (vec!["c".into()], &json!(null)));
}

#[tokio::test]
async fn items_come_back_as_they_were_sent() {
    let world = world();
    world.put("/v1/topics/t", json!({"max_items": 10})).await.expect(StatusCode::CREATED);
    let published =
        world.post("/v1/topics/t/items", json!({"payload": {"b": 1, "a": [true, null, "<&>"]}})).await;
    let published = published.expect(StatusCode::ACCEPTED);
    assert!(published["published_at"].is_string());
    world
        .post("/v1/topics/t/items", json!({"id": "x", "payload_xml": "<p:e xmlns:p='urn:e'>1</p:e>"}))
        .await
        .expect(StatusCode::ACCEPTED);
    let items = world.get("/v1/topics/t/items").await.expect(StatusCode::OK);
    let items = items["items"].as_array().unwrap();
    assert_eq!((&items[0]["id"], &items[0]["payload_xml"]), (&json!("x"), &json!("<e xmlns='urn:e'>1</e>")));
    assert_eq!(
        (&items[1]["id"], &items[1]["payload"]),
        (&published["id"], &json!({"b": 1, "a": [true, null, "<&>"]}))
    );
    let one = world.get("/v1/topics/t/items?id=x").await.expect(StatusCode::OK);
    assert_eq!(one["items"].as_array().unwrap().len(), 1);

    world.delete("/v1/topics/t/items/x").await.expect(StatusCode::NO_CONTENT);
    world.delete("/v1/topics/t/items/x").await.problem(404, "unknown-item");
    world.post("/v1/topics/none/items", json!({"payload": 1})).await.problem(404, "unknown-topic");
    world.post("/v1/topics/t/items", json!({})).await.problem(400, "missing-field");
}

#[tokio::test]
async fn devices_follow_topics() {
    let world = world();
    world.put("/v1/topics/t", json!({})).await.expect(StatusCode::CREATED);
    for id in ["alice", "bob", "carol"] {
        world.enrol(id).await;
        let uri = format!("/v1/devices/{id}/subscriptions/t");
        world.put(&uri, json!(null)).await.expect(StatusCode::CREATED);
        world.put(&uri, json!(null)).await.expect(StatusCode::OK);
    }
    let first = world.get("/v1/topics/t/subscribers?limit=2").await.expect(StatusCode::OK);
    assert_eq!(first, json!({"subscribers": ["alice@localhost", "bob@localhost"], "next": "bob@localhost"}));
    let second =
        world.get("/v1/topics/t/subscribers?limit=2&after=bob@localhost").await.expect(StatusCode::OK);
    assert_eq!(second, json!({"subscribers": ["carol@localhost"], "next": null}));
    assert_eq!(world.get("/v1/devices/bob/subscriptions").await.json(), json!({"topics": ["t"]}));
    world.delete("/v1/devices/bob/subscriptions/t").await.expect(StatusCode::NO_CONTENT);
    world.delete("/v1/devices/bob/subscriptions/t").await.problem(404, "not-subscribed");
    world.put("/v1/devices/dave/subscriptions/t", json!(null)).await.problem(404, "unknown-device");
    world.put("/v1/devices/bob/subscriptions/none", json!(null)).await.problem(404, "unknown-topic");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_says_who_follows_and_what_was_delivered() {
    let world = world();
    world.put("/v1/topics/t", json!({})).await.expect(StatusCode::CREATED);
    for id in ["alice", "bob"] {
        world.enrol(id).await;
        world
            .put(&format!("/v1/devices/{id}/subscriptions/t"), json!(null))
            .await
            .expect(StatusCode::CREATED);
    }
    let port = world.server.ports().websocket.unwrap();
    let alice = Device::login(port, "alice").await;
    world.until("/v1/topics/t", |topic| topic["figures"]["sessions"] == 1).await;
    world.post("/v1/topics/t/items", json!({"payload": 1})).await.expect(StatusCode::ACCEPTED);
    let (alice, _) = alice.message().await;
    let counted = json!({"subscribers": 2, "sessions": 1, "published": 1, "delivered": 1});
    world.until("/v1/topics/t", |topic| topic["figures"] == counted).await;
    let list = world.get("/v1/topics").await.expect(StatusCode::OK);
    assert_eq!(list["topics"][0]["figures"], json!({"sessions": 1, "published": 1, "delivered": 1}));
    let reading = tokio::spawn(alice.end());
    world.delete("/v1/admin/sessions/alice").await.expect(StatusCode::OK);
    reading.await.unwrap();
}
