//! Rooms: made, configured and removed; their members, and what is said in them. Who is in them is tried with real clients (interop).

use crate::support::{World, with_key, world};
use axum::body::Body;
use axum::http::{Method, StatusCode, header};
use carillon_core::model::Scope;
use serde_json::{Value, json};

async fn tea() -> World {
    let world = world();
    for name in ["alice", "bob"] {
        world.enrol(name).await;
    }
    world.put("/v1/rooms/tea", json!({"title": "Tea"})).await.expect(StatusCode::CREATED);
    world
}

async fn many(world: &World, lines: &str) -> crate::support::Reply {
    let mut request = world.request(Method::POST, "/v1/rooms/tea/members", Body::from(lines.to_owned()));
    request.headers_mut().insert(header::CONTENT_TYPE, "application/x-ndjson".parse().unwrap());
    world.call(request).await
}

fn members(page: &Value) -> Vec<(&str, &str, Option<&str>)> {
    let members = page["members"].as_array().unwrap().iter();
    members
        .map(|of| (of["jid"].as_str().unwrap(), of["affiliation"].as_str().unwrap(), of["nick"].as_str()))
        .collect()
}

#[tokio::test]
async fn a_room_from_its_making_to_its_end() {
    let world = tea().await;
    world.get("/v1/rooms/coffee").await.problem(404, "unknown-room");
    let read = world.get("/v1/rooms/tea").await.expect(StatusCode::OK);
    assert_eq!((&read["name"], &read["jid"]), (&json!("tea"), &json!("tea@rooms.localhost")));
    assert_eq!((&read["config"]["title"], &read["config"]["persistent"]), (&json!("Tea"), &json!(true)));
    assert_eq!((&read["members"], &read["occupants"]), (&json!(0), &json!(0)));
    // What exists stays as it is; the same name in capitals is the same room.
    assert_eq!(world.put("/v1/rooms/Tea", json!({"title": "Tea"})).await.expect(StatusCode::OK), read);
    let other = world.put("/v1/rooms/tea", json!({"title": "Coffee", "public": true})).await;
    assert_eq!(other.problem(409, "already-exists").as_deref(), Some("/title"));
    let patch = json!({"title": null, "members_only": true, "max_users": 5});
    let changed = world.patch("/v1/rooms/tea", patch).await.expect(StatusCode::OK);
    assert_eq!((&changed["config"]["title"], &changed["config"]["members_only"]), (&json!(""), &json!(true)));
    assert_eq!(world.get("/v1/rooms/tea").await.expect(StatusCode::OK), changed);
    world.put("/v1/rooms/milk", json!({"public": false})).await.expect(StatusCode::CREATED);
    let page = world.get("/v1/rooms?limit=1").await.expect(StatusCode::OK);
    assert_eq!((&page["rooms"][0]["name"], &page["next"]), (&json!("milk"), &json!("milk")));
    let page = world.get("/v1/rooms?limit=1&after=milk").await.expect(StatusCode::OK);
    assert_eq!((&page["rooms"][0]["name"], &page["next"]), (&json!("tea"), &json!(null)));
    for name in ["te", "teapot", "team", "tf"] {
        world.put(&format!("/v1/rooms/{name}"), json!({})).await.expect(StatusCode::CREATED);
    }
    // The names that begin with something, page by page.
    let mut uri = "/v1/rooms?prefix=Tea&limit=2".to_owned();
    let mut names = Vec::new();
    loop {
        let page = world.get(&uri).await.expect(StatusCode::OK);
        let rooms = page["rooms"].as_array().unwrap();
        names.extend(rooms.iter().map(|room| room["name"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        uri = format!("/v1/rooms?prefix=tea&limit=2&after={next}");
    }
    assert_eq!(names, ["tea", "team", "teapot"]);
    let none = world.get("/v1/rooms?prefix=x").await.expect(StatusCode::OK);
    assert_eq!(none, json!({"rooms": [], "next": null}));
    world.get("/v1/rooms?prefix=a%20b").await.problem(400, "invalid-parameter");
    world
        .delete("/v1/rooms/tea?reason=Enough&venue=coffee@rooms.localhost")
        .await
        .expect(StatusCode::NO_CONTENT);
    world.delete("/v1/rooms/tea").await.problem(404, "unknown-room");
    world.patch("/v1/rooms/tea", json!({"title": "T"})).await.problem(404, "unknown-room");
}

#[tokio::test]
async fn what_no_room_can_be_is_refused() {
    let world = tea().await;
    for (body, status, code, at) in [
        (json!({"title": "x".repeat(257)}), 422, "invalid-value", Some("/title")),
        (json!({"description": "a\u{0}"}), 422, "invalid-value", Some("/description")),
        (json!({"max_users": 1_000_000}), 422, "invalid-value", Some("/max_users")),
        (json!({"history": 101}), 422, "invalid-value", Some("/history")),
        (json!({"persistent": false}), 422, "invalid-value", Some("/persistent")),
        (json!({"allow_pm": "sometimes"}), 400, "wrong-type", Some("/allow_pm")),
        (json!({"maxUsers": 3}), 400, "unknown-field", Some("/maxUsers")),
    ] {
        let refused = world.put("/v1/rooms/coffee", body.clone()).await;
        assert_eq!(refused.problem(status, code).as_deref(), at, "{body}");
    }
    world.get("/v1/rooms/coffee").await.problem(404, "unknown-room");
    for name in ["a%20b", "a%40b", &"x".repeat(1024)] {
        world.put(&format!("/v1/rooms/{name}"), json!({})).await.problem(400, "invalid-parameter");
    }
    world.delete("/v1/rooms/tea?venue=a%20b").await.problem(422, "invalid-jid");
    world.delete(&format!("/v1/rooms/tea?reason={}", "x".repeat(1025))).await.problem(422, "invalid-value");
    world.get("/v1/rooms/tea").await.expect(StatusCode::OK);
}

#[tokio::test]
async fn members_one_by_one_and_together() {
    let world = tea().await;
    let page = || async { world.get("/v1/rooms/tea/members").await.expect(StatusCode::OK) };
    let owner = json!({"affiliation": "owner", "nick": "Ali", "reason": "hers"});
    world.put("/v1/rooms/tea/members/alice", owner).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(members(&page().await), [("alice@localhost", "owner", Some("Ali"))]);
    // What is left out stays.
    let admin = json!({"affiliation": "admin"});
    world.put("/v1/rooms/tea/members/alice@localhost", admin).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(members(&page().await), [("alice@localhost", "admin", Some("Ali"))]);
    assert_eq!(page().await["members"][0]["reason"], "hers");
    let taken = world.put("/v1/rooms/tea/members/bob", json!({"nick": "Ali"})).await;
    taken.problem(409, "nick-taken");
    let refused = many(&world, "{\"jid\":\"bob\",\"affiliation\":\"member\"}\n{\"jid\":\"a b\"}\n").await;
    refused.problem(422, "invalid-jid");
    assert!(refused.json()["detail"].as_str().unwrap().starts_with("line 2: "), "{refused:?}");
    assert_eq!(members(&page().await).len(), 1, "all lines or none");
    let lines: String = (0..2000)
        .map(|n| format!("{{\"jid\":\"m{n:04}@example.org\",\"affiliation\":\"member\"}}\n"))
        .collect();
    many(&world, &lines).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(world.get("/v1/rooms/tea").await.expect(StatusCode::OK)["members"], 2001);
    let members_after = "/v1/rooms/tea/members?affiliation=member&limit=1000";
    let first = world.get(members_after).await.expect(StatusCode::OK);
    assert_eq!((members(&first).len(), &first["next"]), (1000, &json!("m0999@example.org")));
    let rest = world.get(&format!("{members_after}&after=m0999@example.org")).await.expect(StatusCode::OK);
    assert_eq!((members(&rest).len(), &rest["next"]), (1000, &json!(null)));
    let reason = "x".repeat(1000);
    let lines: String = (0..4500)
        .map(|n| {
            format!(
                "{{\"jid\":\"n{n:04}@example.org\",\"affiliation\":\"member\",\"reason\":\"{reason}\"}}\n"
            )
        })
        .collect();
    many(&world, &lines).await.problem(413, "too-large");
    assert_eq!(world.get("/v1/rooms/tea").await.expect(StatusCode::OK)["members"], 2001, "none of them");
    world.delete("/v1/rooms/tea/members/alice").await.expect(StatusCode::NO_CONTENT);
    world.delete("/v1/rooms/tea/members/alice").await.expect(StatusCode::NO_CONTENT);
    assert_eq!(world.get("/v1/rooms/tea").await.expect(StatusCode::OK)["members"], 2000);
    world.put("/v1/rooms/tea/members/bob", json!({"affiliation": "king"})).await.problem(400, "wrong-type");
    world
        .put("/v1/rooms/coffee/members/bob", json!({"affiliation": "member"}))
        .await
        .problem(404, "unknown-room");
}

#[tokio::test]
async fn what_is_said_is_kept_retracted_and_erased() {
    let world = tea().await;
    let reader = world.key("localhost", &[Scope::ReadMessages]);
    let read = |query: &'static str| {
        let request = world.request(Method::GET, &format!("/v1/rooms/tea/messages{query}"), Body::empty());
        world.call(with_key(request, &reader))
    };
    let say = |body: Value| world.post("/v1/rooms/tea/messages", body);
    let first = say(json!({"body": "The kettle is on", "id": "m1"})).await.expect(StatusCode::OK);
    assert_eq!(first["id"], "m1");
    let second = say(json!({"body": "Milk?", "from": "bob", "nick": "Bob"})).await.expect(StatusCode::OK);
    assert!(second["archive_id"].as_u64() > first["archive_id"].as_u64());
    let page = read("").await.expect(StatusCode::OK);
    let said = |at: usize| (page["messages"][at]["from"].clone(), page["messages"][at]["body"].clone());
    assert_eq!(said(0), (json!("tea@rooms.localhost/Bob"), json!("Milk?")));
    assert_eq!(said(1), (json!("tea@rooms.localhost"), json!("The kettle is on")));
    let of_bob = read("?with=bob").await.expect(StatusCode::OK);
    assert_eq!(of_bob["messages"].as_array().unwrap().len(), 1);
    // The subject is the room's, and no message.
    say(json!({"subject": "Biscuits"})).await.expect(StatusCode::OK);
    let room = world.get("/v1/rooms/tea").await.expect(StatusCode::OK);
    assert_eq!(
        (&room["subject"]["text"], &room["subject"]["by"]),
        (&json!("Biscuits"), &json!("tea@rooms.localhost"))
    );
    say(json!({"subject": ""})).await.expect(StatusCode::OK);
    assert_eq!(world.get("/v1/rooms/tea").await.expect(StatusCode::OK).get("subject"), None);
    let id = second["archive_id"].as_u64().unwrap();
    let uri = format!("/v1/rooms/tea/messages/{id}?reason=Spam");
    world.delete(&uri).await.expect(StatusCode::NO_CONTENT);
    let page = read("?limit=1").await.expect(StatusCode::OK);
    assert_eq!(page["messages"][0]["body"], Value::Null);
    assert!(page["messages"][0]["xml"].as_str().unwrap().contains("<retracted "), "{page}");
    world.delete("/v1/rooms/tea/messages/999").await.problem(404, "unknown-message");
    world.delete("/v1/rooms/tea/messages").await.expect(StatusCode::NO_CONTENT);
    assert_eq!(read("").await.expect(StatusCode::OK)["messages"], json!([]));
    for (body, status, code, at) in [
        (json!({}), 422, "invalid-value", "/body"),
        (json!({"body": ""}), 422, "invalid-value", "/body"),
        (json!({"body": "a", "subject": "b"}), 422, "invalid-value", "/subject"),
        (json!({"body": "a", "nick": "b"}), 422, "invalid-value", "/nick"),
        (json!({"body": "a", "from": "nobody"}), 404, "unknown-account", "/from"),
        (json!({"body": "a", "from": "a b"}), 422, "invalid-jid", "/from"),
        (json!({"body": "a\u{0}"}), 422, "invalid-value", "/body"),
    ] {
        assert_eq!(say(body.clone()).await.problem(status, code).as_deref(), Some(at), "{body}");
    }
    world.put("/v1/rooms/tea/members/alice", json!({"nick": "Ali"})).await.expect(StatusCode::NO_CONTENT);
    say(json!({"body": "a", "from": "bob", "nick": "Ali"})).await.problem(409, "nick-taken");
    assert_eq!(say(json!({"body": "a", "from": "alice"})).await.status, StatusCode::OK);
}

#[tokio::test]
async fn with_an_idempotency_key_it_is_said_once() {
    let world = tea().await;
    let say = || {
        let body = Body::from(json!({"body": "once"}).to_string());
        let mut request = world.request(Method::POST, "/v1/rooms/tea/messages", body);
        request.headers_mut().insert("idempotency-key", "k1".parse().unwrap());
        world.call(request)
    };
    let first = say().await.expect(StatusCode::OK);
    assert_eq!(say().await.expect(StatusCode::OK), first);
    let reader = world.key("localhost", &[Scope::ReadMessages]);
    let request = world.request(Method::GET, "/v1/rooms/tea/messages", Body::empty());
    let page = world.call(with_key(request, &reader)).await.expect(StatusCode::OK);
    assert_eq!(page["messages"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn nobody_is_in_a_room_and_keys_have_their_scopes() {
    let world = tea().await;
    let page = world.get("/v1/rooms/tea/occupants").await.expect(StatusCode::OK);
    assert_eq!(page, json!({"occupants": [], "next": null}));
    world
        .patch("/v1/rooms/tea/occupants/Ali", json!({"role": "visitor"}))
        .await
        .problem(404, "unknown-occupant");
    world.delete("/v1/rooms/tea/occupants/Ali").await.problem(404, "unknown-occupant");
    let (rooms, other) = (world.key("localhost", &[Scope::Rooms]), world.key("localhost", &[Scope::Chat]));
    let call = |method: Method, uri: &str, key: &str| {
        world.call(with_key(world.request(method, uri, Body::empty()), key))
    };
    call(Method::GET, "/v1/rooms/tea", &rooms).await.expect(StatusCode::OK);
    call(Method::GET, "/v1/rooms/tea", &other).await.problem(403, "missing-scope");
    call(Method::GET, "/v1/rooms/tea/messages", &rooms).await.problem(403, "missing-scope");
    call(Method::DELETE, "/v1/rooms/tea/messages", &rooms).await.problem(403, "missing-scope");
}

#[tokio::test]
async fn a_domain_has_as_many_rooms_as_it_may() {
    let world = world();
    let patch = json!({"rooms_create": "admin", "rooms_max": 2});
    world.patch("/v1/admin/domains/localhost", patch).await.expect(StatusCode::OK);
    // Who may create them over XMPP is nothing to a back end.
    world.put("/v1/rooms/tea", json!({})).await.expect(StatusCode::CREATED);
    world.put("/v1/rooms/tea@muclight.localhost", json!({})).await.expect(StatusCode::CREATED);
    let refused = world.put("/v1/rooms/milk", json!({})).await;
    refused.problem(409, "too-many-rooms");
    assert_eq!(refused.json()["detail"], "the domain has as many rooms as its policy's `rooms_max` allows");
    world.put("/v1/rooms/tea", json!({})).await.expect(StatusCode::OK);
    world.put("/v1/rooms/milk?domain=other.example", json!({})).await.expect(StatusCode::CREATED);
    world.delete("/v1/rooms/tea").await.expect(StatusCode::NO_CONTENT);
    world.put("/v1/rooms/milk", json!({})).await.expect(StatusCode::CREATED);
}

/// A request with an image as its body.
async fn set_avatar(world: &World, media_type: &str, image: &[u8]) -> crate::support::Reply {
    let mut request = world.request(Method::PUT, "/v1/rooms/tea/avatar", Body::from(image.to_vec()));
    request.headers_mut().insert(header::CONTENT_TYPE, media_type.parse().unwrap());
    world.call(request).await
}

#[tokio::test]
async fn an_avatar_is_set_read_and_removed() {
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nan image";
    let world = tea().await;
    world.get("/v1/rooms/tea/avatar").await.problem(404, "unknown-avatar");
    let room = set_avatar(&world, "image/png", PNG).await.expect(StatusCode::OK);
    let hash = "1a5586d1e06eb5226e5d2a79e24ede33f7259756";
    assert_eq!(room["avatar"], json!([hash]));
    assert_eq!(world.get("/v1/rooms/tea").await.expect(StatusCode::OK), room);
    let read = world.get("/v1/rooms/tea/avatar").await;
    assert_eq!(read.headers[header::CONTENT_TYPE], "image/png");
    assert_eq!(read.headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    // Another one takes its place.
    let room = set_avatar(&world, "image/gif", b"GIF89a").await.expect(StatusCode::OK);
    assert_eq!(room["avatar"].as_array().map(Vec::len), Some(1));
    assert_ne!(room["avatar"], json!([hash]));

    set_avatar(&world, "image/jpeg", PNG).await.problem(422, "invalid-value");
    set_avatar(&world, "image/svg+xml", b"<svg/>").await.problem(415, "wrong-content-type");
    let large = [PNG, &vec![0; 64 * 1024]].concat();
    set_avatar(&world, "image/png", &large).await.problem(413, "too-large");
    // In base64 it is as large as the whole vCard may be.
    let large = [PNG, &vec![0; 48 * 1024 - PNG.len()]].concat();
    set_avatar(&world, "image/png", &large).await.problem(413, "too-large");
    assert_eq!(world.get("/v1/rooms/tea").await.expect(StatusCode::OK), room);

    world.delete("/v1/rooms/tea/avatar").await.expect(StatusCode::NO_CONTENT);
    world.get("/v1/rooms/tea/avatar").await.problem(404, "unknown-avatar");
    world.delete("/v1/rooms/tea/avatar").await.expect(StatusCode::NO_CONTENT);
    for room in ["coffee", "tea%40muclight.localhost"] {
        world.delete(&format!("/v1/rooms/{room}/avatar")).await.problem(404, "unknown-room");
    }
}
