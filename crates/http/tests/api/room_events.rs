//! Events of rooms: by streams and webhooks that ask for them, of domains that have them.

use crate::support::receiver::Receiver;
use crate::support::{Events, World, with_key, world, world_with};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use carillon_core::model::Scope;
use serde_json::{Value, json};

const TYPES: &str = "room_created,room_destroyed,room_members,room_subject,room_message,room_moderated";

async fn with_events(world: &World, policy: &str) {
    let patch = json!({"room_events": policy});
    world.patch("/v1/admin/domains/localhost", patch).await.expect(StatusCode::OK);
    for name in ["alice", "bob"] {
        world.enrol(name).await;
    }
}

fn stream(world: &World, query: &str) -> Request<Body> {
    world.request(Method::GET, &format!("/v1/events?{query}"), Body::empty())
}

/// What one does with a room from its making to its end; the number of what was said.
async fn lives(world: &World) -> u64 {
    world.put("/v1/rooms/tea", json!({"title": "Tea"})).await.expect(StatusCode::CREATED);
    world
        .put("/v1/rooms/tea/members/alice", json!({"affiliation": "owner"}))
        .await
        .expect(StatusCode::NO_CONTENT);
    world.patch("/v1/rooms/tea", json!({"title": "Tea and biscuits"})).await.expect(StatusCode::OK);
    let say = |body: Value| world.post("/v1/rooms/tea/messages", body);
    let said = say(json!({"body": "the kettle is on", "from": "alice", "nick": "Ali"})).await;
    let said = said.expect(StatusCode::OK);
    let id = said["archive_id"].as_u64().unwrap();
    say(json!({"subject": "biscuits"})).await.expect(StatusCode::OK);
    world.delete(&format!("/v1/rooms/tea/messages/{id}?reason=Spam")).await.expect(StatusCode::NO_CONTENT);
    world.delete("/v1/rooms/tea?reason=over").await.expect(StatusCode::NO_CONTENT);
    id
}

#[tokio::test]
async fn a_stream_tells_what_happens_to_rooms() {
    let world = world();
    with_events(&world, "all").await;
    let key = world.key("localhost", &[Scope::Send, Scope::Rooms, Scope::ReadMessages]);
    let wanted = format!("type={TYPES}");
    let mut events = Events::of(world.open(with_key(stream(&world, &wanted), &key)).await);
    let mut without = Events::of(world.open(stream(&world, &wanted)).await);
    // Whoever asks for no types is told of notifications alone.
    let mut plain = Events::of(world.open(stream(&world, "state=cancelled")).await);
    world.put("/v1/rooms/tea", json!({"title": "Tea"})).await.expect(StatusCode::CREATED);
    world
        .put("/v1/rooms/tea/members/alice", json!({"affiliation": "owner"}))
        .await
        .expect(StatusCode::NO_CONTENT);
    let body = json!({"body": "the kettle is on", "from": "alice", "nick": "Ali"});
    let said = world.post("/v1/rooms/tea/messages", body).await.expect(StatusCode::OK);
    let room = json!("tea@rooms.localhost");
    let (name, first) = events.next().await.unwrap();
    assert_eq!((&*name, &first["type"], &first["room"]), ("room_created", &json!("room_created"), &room));
    assert_eq!((first.get("by"), first.get("message")), (None, None));
    let number = events.last_id();
    let (name, members) = events.next().await.unwrap();
    let change = json!([{"account": "alice@localhost", "was": "none", "affiliation": "owner"}]);
    assert_eq!((&*name, &members["members"]), ("room_members", &change));
    let (name, message) = events.next().await.unwrap();
    assert_eq!((&*name, &message["by"]), ("room_message", &json!("alice@localhost")));
    let of = &message["message"];
    assert_eq!(
        (&of["archive_id"], &of["id"], &of["nick"]),
        (&said["archive_id"], &said["id"], &json!("Ali"))
    );
    assert_eq!((&of["from"], &of["body"]), (&json!("tea@rooms.localhost/Ali"), &json!("the kettle is on")));
    // Without the scope nobody is told what was said.
    for _ in 0..2 {
        without.next().await.unwrap();
    }
    let (_, message) = without.next().await.unwrap();
    assert_eq!((&message["message"]["nick"], message["message"].get("body")), (&json!("Ali"), None));
    let sent = world.post("/v1/notifications", json!({"to": "alice", "payload": 1})).await;
    let sent = sent.expect(StatusCode::ACCEPTED)["id"].as_str().unwrap().to_owned();
    world.delete(&format!("/v1/notifications/{sent}")).await.expect(StatusCode::OK);
    let (name, cancelled) = plain.next().await.unwrap();
    assert_eq!((&*name, &cancelled["id"]), ("notification", &json!(sent)));
    // Those that are not in memory come from the store, the same.
    let after = format!("type=room_members,room_message&after={number}");
    let mut again = Events::of(world.open(with_key(stream(&world, &after), &key)).await);
    assert_eq!(again.next().await.unwrap(), ("room_members".to_owned(), members));
    assert_eq!(again.next().await.unwrap().1["message"], *of);
}

#[tokio::test]
async fn a_room_is_told_of_from_its_making_to_its_end() {
    let world = world();
    with_events(&world, "all").await;
    let id = lives(&world).await;
    let mut events = Events::of(world.open(stream(&world, &format!("type={TYPES}&after=0"))).await);
    let mut seen = Vec::new();
    while seen.len() < 6 {
        let (name, data) = events.next().await.unwrap();
        assert_eq!(json!(name), data["type"]);
        seen.push((name, data));
    }
    let names: Vec<&str> = seen.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[..3], ["room_created", "room_members", "room_message"]);
    assert_eq!(names[3..], ["room_subject", "room_moderated", "room_destroyed"]);
    // That it was said is told, though it went with the room.
    assert_eq!(
        (&seen[2].1["message"]["archive_id"], &seen[2].1["message"]["nick"]),
        (&json!(id), &json!("Ali"))
    );
    assert_eq!(seen[3].1.get("subject"), None, "what it is is told with the scope only");
    assert_eq!(seen[4].1["message"], json!({"archive_id": id}));
    assert_eq!(seen[5].1["reason"], "over");
}

#[tokio::test]
async fn a_domain_has_the_events_that_its_policy_says() {
    let world = world();
    with_events(&world, "membership").await;
    lives(&world).await;
    world.patch("/v1/admin/domains/localhost", json!({"room_events": "off"})).await.expect(StatusCode::OK);
    lives(&world).await;
    let mut events = Events::of(world.open(stream(&world, &format!("type={TYPES}&after=0"))).await);
    let mut names = Vec::new();
    while names.len() < 3 {
        names.push(events.next().await.unwrap().0);
    }
    assert_eq!(names, ["room_created", "room_members", "room_destroyed"]);
    // No more than these were stored: the next has the next number.
    let last = events.last_id();
    world.patch("/v1/admin/domains/localhost", json!({"room_events": "all"})).await.expect(StatusCode::OK);
    world.put("/v1/rooms/milk", json!({})).await.expect(StatusCode::CREATED);
    assert_eq!((events.next().await.unwrap().0.as_str(), events.last_id()), ("room_created", last + 1));
}

#[tokio::test]
async fn events_of_rooms_take_a_scope_and_names_that_there_are() {
    let world = world();
    let key = world.key("localhost", &[Scope::Send]);
    let call = |query: &str| world.call(with_key(stream(&world, query), &key));
    call("type=room_message").await.problem(403, "missing-scope");
    call("type=room_lost").await.problem(400, "invalid-parameter");
    call("type=").await.problem(400, "invalid-parameter");
    let url = "https://a.example/";
    for (body, at) in
        [(json!({"url": url, "types": []}), "/types"), (json!({"url": url, "types": ["room"]}), "/types")]
    {
        let refused = world.post("/v1/webhooks", body).await;
        let problem = refused.json();
        assert!(problem["pointer"].as_str().unwrap().starts_with(at), "{problem}");
    }
    let contents = json!({"url": url, "types": ["room_message"], "contents": true});
    world.post("/v1/webhooks", contents).await.problem(403, "missing-scope");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_told_of_the_rooms_that_it_asks_for() {
    let world = world_with(|options| {
        options.settings.webhooks.allow_addresses = vec!["127.0.0.0/8".parse().unwrap()];
    });
    with_events(&world, "all").await;
    let (mut plain, mut rooms) = (Receiver::start().await, Receiver::start().await);
    world.post("/v1/webhooks", json!({"url": plain.url})).await.expect(StatusCode::CREATED);
    let key = world.key("localhost", &[Scope::Admin, Scope::ReadMessages]);
    let body = json!({"url": rooms.url, "types": ["notification", "room_message"], "contents": true});
    let request = world.request(Method::POST, "/v1/webhooks", Body::from(body.to_string()));
    let made = world.call(with_key(request, &key)).await.expect(StatusCode::CREATED);
    assert_eq!((&made["types"], &made["contents"]), (&body["types"], &json!(true)));
    world.put("/v1/rooms/tea", json!({"title": "Tea"})).await.expect(StatusCode::CREATED);
    let said = world.post("/v1/rooms/tea/messages", json!({"body": "hello", "from": "alice"})).await;
    let said = said.expect(StatusCode::OK);
    let request = rooms.next().await.json();
    assert_eq!((&request["type"], &request["webhook"]), (&json!("events"), &made["id"]));
    let event = &request["events"][0];
    assert_eq!((&event["room"]["type"], event.get("notification")), (&json!("room_message"), None));
    assert_eq!(event["room"]["message"]["archive_id"], said["archive_id"]);
    assert_eq!(event["room"]["message"]["body"], "hello");
    let sent = world.post("/v1/notifications", json!({"to": "alice", "payload": 1})).await;
    let sent = sent.expect(StatusCode::ACCEPTED)["id"].as_str().unwrap().to_owned();
    world.delete(&format!("/v1/notifications/{sent}")).await.expect(StatusCode::OK);
    let request = rooms.next().await.json();
    assert_eq!(request["events"][0]["notification"]["id"], json!(sent));
    // The other one never heard of rooms.
    let request = plain.next().await.json();
    assert_eq!(
        (&request["type"], request["events"].as_array().unwrap().len()),
        (&json!("notifications.ended"), 1)
    );
    assert_eq!(request["events"][0]["notification"]["id"], json!(sent));
    // Who may not read messages has those of nobody sent elsewhere.
    let path = format!("/v1/webhooks/{}", made["id"]);
    let elsewhere = json!({"url": "https://b.example/"});
    world.patch(&path, elsewhere).await.problem(403, "missing-scope");
    world.patch(&path, json!({"contents": false})).await.problem(403, "missing-scope");
    world.get(&format!("{path}/dead-letters")).await.problem(403, "missing-scope");
    world.patch(&path, json!({"enabled": false})).await.expect(StatusCode::OK);
}
