//! The conversations of accounts.

use crate::messages::{keep, read};
use crate::support::{Reply, World, with_key, world};
use axum::body::Body;
use axum::http::{Method, StatusCode, header};
use carillon_core::model::Scope;
use serde_json::{Value, json};

async fn change(world: &World, key: &str, uri: &str, body: &Value) -> Reply {
    let mut request = with_key(world.request(Method::PATCH, uri, Body::from(body.to_string())), key);
    request.headers_mut().insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
    world.call(request).await
}

fn names(page: &Value) -> Vec<(&str, u64)> {
    page["conversations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|view| (view["with"].as_str().unwrap(), view["unread"].as_u64().unwrap()))
        .collect()
}

#[tokio::test]
async fn conversations_are_listed_the_newest_first_page_by_page() {
    let world = world();
    for name in ["alice", "bob", "carol"] {
        world.enrol(name).await;
    }
    keep(&world, "bob", "alice", 1);
    let second = keep(&world, "bob", "alice", 2);
    let third = keep(&world, "alice", "carol", 3);
    let key = world.key("localhost", &[Scope::Admin]);
    let page = read(&world, &key, "/v1/accounts/alice/conversations").await.expect(StatusCode::OK);
    assert_eq!(names(&page), [("carol@localhost", 0), ("bob@localhost", 2)]);
    assert_eq!(
        (&page["total"], &page["unread_conversations"], &page["unread_messages"]),
        (&json!(2), &json!(1), &json!(2))
    );
    assert_eq!(page["conversations"][0]["last_message"], json!(third));
    assert_eq!((&page["conversations"][0]["folder"], &page["next"]), (&json!("inbox"), &Value::Null));
    assert_eq!(page["conversations"][0]["message"], Value::Null);
    let page = read(&world, &key, "/v1/accounts/alice/conversations?limit=1").await.expect(StatusCode::OK);
    assert_eq!((names(&page), &page["next"]), (vec![("carol@localhost", 0)], &json!(third)));
    let next = format!("/v1/accounts/alice/conversations?limit=1&after={third}");
    let page = read(&world, &key, &next).await.expect(StatusCode::OK);
    assert_eq!((names(&page), &page["next"]), (vec![("bob@localhost", 2)], &Value::Null));
    for (query, found) in
        [("unread=true", vec!["bob"]), ("with=carol", vec!["carol"]), ("folder=bin", vec![])]
    {
        let uri = format!("/v1/accounts/alice/conversations?{query}");
        let page = read(&world, &key, &uri).await.expect(StatusCode::OK);
        let found: Vec<String> = found.iter().map(|name| format!("{name}@localhost")).collect();
        assert_eq!(names(&page).iter().map(|(name, _)| *name).collect::<Vec<_>>(), found, "{query}");
    }
    // What was said is for those who may read it.
    let with_messages = "/v1/accounts/alice/conversations?messages=true";
    read(&world, &key, with_messages).await.problem(403, "missing-scope");
    let reader = world.key("localhost", &[Scope::ReadMessages]);
    read(&world, &reader, with_messages).await.problem(403, "missing-scope");
    let both = world.key("localhost", &[Scope::Admin, Scope::ReadMessages]);
    let page = read(&world, &both, with_messages).await.expect(StatusCode::OK);
    assert_eq!(page["conversations"][1]["message"]["id"], json!(second));
    assert_eq!(page["conversations"][1]["message"]["body"], "2 & more");
    read(&world, &key, "/v1/accounts/nobody/conversations").await.problem(404, "unknown-account");
}

#[tokio::test]
async fn without_archives_there_are_no_conversations_and_that_is_said() {
    let world = world();
    world.enrol("alice").await;
    let uri = "/v1/accounts/alice/conversations";
    for query in ["", "?unread=true", "?with=bob"] {
        let reply = world.get(&format!("{uri}{query}")).await;
        reply.problem(409, "no-archive");
        let said = "the domain `localhost` keeps no archives: its policy's `archive` is off";
        assert_eq!(reply.json()["detail"], said);
    }
    world.get("/v1/accounts/nobody/conversations").await.problem(404, "unknown-account");
    world.patch("/v1/admin/domains/localhost", json!({"archive": true})).await.expect(StatusCode::OK);
    assert_eq!(names(&world.get(uri).await.expect(StatusCode::OK)), []);
}

#[tokio::test]
async fn a_conversation_is_changed() {
    let world = world();
    for name in ["alice", "bob"] {
        world.enrol(name).await;
    }
    let last = keep(&world, "bob", "alice", 1);
    let key = world.key("localhost", &[Scope::Admin]);
    let uri = "/v1/accounts/alice/conversations/bob";
    let until = "2100-01-01T00:00:00.000Z";
    let patch = json!({"read": true, "folder": "archive", "muted_until": until});
    let state = change(&world, &key, uri, &patch).await.expect(StatusCode::OK);
    assert_eq!(state, json!({"unread": 0, "last_message": last, "folder": "archive", "muted_until": until}));
    let state =
        change(&world, &key, uri, &json!({"read": false, "muted_until": "2020-01-01T00:00:00Z"})).await;
    let state = state.expect(StatusCode::OK);
    assert_eq!(state, json!({"unread": 1, "last_message": last, "folder": "archive"}));
    keep(&world, "bob", "alice", 2);
    let page = read(&world, &key, "/v1/accounts/alice/conversations").await.expect(StatusCode::OK);
    assert_eq!(page["conversations"][0]["folder"], "inbox");
    let unknown = change(&world, &key, "/v1/accounts/alice/conversations/carol", &patch).await;
    unknown.problem(404, "unknown-conversation");
    let wrong = change(&world, &key, uri, &json!({"folder": "nowhere"})).await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST, "{}", wrong.text);
}
