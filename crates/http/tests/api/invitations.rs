//! Invitations: made, listed, revoked, and shown on a page.

use crate::support::{World, ask, with_key, world, world_with};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use carillon_core::model::{Credentials, Scope, TokenHash, UnixMs};
use carillon_core::ports::store::invitations::{RegisterInvited, RegisterInvitedAnswer};
use carillon_core::settings::{Invitations, Settings};
use serde_json::{Value, json};
use std::sync::Arc;

const PATH: &str = "/v1/invitations";

fn inviting() -> World {
    world_with(|options| {
        let invitations =
            Invitations { enabled: true, url: "https://chat.example.org/".into(), ..Invitations::default() };
        options.core = Arc::new(Settings { invitations, ..Settings::default() });
    })
}

async fn made(world: &World, body: Value) -> Value {
    world.post(PATH, body).await.expect(StatusCode::CREATED)
}

async fn listed(world: &World) -> Vec<Value> {
    world.get(PATH).await.expect(StatusCode::OK)["invitations"].as_array().unwrap().clone()
}

/// Registers an account as a client would.
fn register(world: &World, token: &str, local: &str) -> RegisterInvitedAnswer {
    let settings = Settings::default();
    ask(
        &*world.store,
        RegisterInvited {
            domain: world.domain("localhost"),
            hash: TokenHash::of(token),
            local: local.into(),
            credentials: Credentials { sha1: None, sha256: None },
            bounds: settings.limits.roster,
            now: UnixMs(1_795_167_000_000),
        },
    )
}

#[tokio::test]
async fn one_is_made_used_listed_and_revoked() {
    let world = inviting();
    world
        .post("/v1/admin/accounts", json!({"jid": "romeo", "password": "secret"}))
        .await
        .expect(StatusCode::CREATED);
    let first = made(&world, json!({"inviter": "Romeo"})).await;
    let token = first["token"].as_str().unwrap();
    assert_eq!(first["uri"], format!("xmpp:romeo@localhost?roster;preauth={token};ibr=y"));
    assert_eq!(first["landing_url"], format!("https://chat.example.org/invitations/localhost/{token}"));
    assert_eq!(
        (&first["uses"], &first["uses_max"], &first["inviter"]),
        (&json!(0), &json!(1), &json!("romeo"))
    );
    let second = made(&world, json!({"localpart": "juliet", "uses": 3})).await;
    assert_ne!(second["token"], first["token"]);
    assert!(
        matches!(register(&world, token, "mercutio"), RegisterInvitedAnswer::Registered(changes) if changes.len() == 2)
    );
    assert_eq!(register(&world, token, "tybalt"), RegisterInvitedAnswer::Invalid);
    let all = listed(&world).await;
    assert_eq!(
        all.iter().map(|one| one["id"].clone()).collect::<Vec<_>>(),
        [second["id"].clone(), first["id"].clone()]
    );
    assert_eq!(all[1]["uses"], 1);
    assert!(all.iter().all(|one| one.get("token").is_none()), "tokens are not kept");
    let page = world.get("/v1/invitations?limit=1").await.expect(StatusCode::OK);
    assert_eq!(page["next"], second["id"].to_string());
    let rest = world.get(&format!("{PATH}?after={}", second["id"])).await.expect(StatusCode::OK);
    assert_eq!((rest["invitations"].as_array().unwrap().len(), &rest["next"]), (1, &Value::Null));
    let one = format!("{PATH}/{}", second["id"]);
    world.delete(&one).await.expect(StatusCode::NO_CONTENT);
    world.delete(&one).await.problem(404, "unknown-invitation");
    assert_eq!(register(&world, second["token"].as_str().unwrap(), "juliet"), RegisterInvitedAnswer::Invalid);
    // The account goes, and its invitations with it.
    world.delete("/v1/admin/accounts/romeo").await.expect(StatusCode::NO_CONTENT);
    assert!(listed(&world).await.is_empty());
}

#[tokio::test]
async fn what_cannot_be_is_refused() {
    let world = inviting();
    let refused = async |body: Value, code: &str| world.post(PATH, body).await.problem(422, code);
    for (body, member) in [
        (json!({"uses": 0}), "/uses"),
        (json!({"uses": 10_001}), "/uses"),
        (json!({"expires_at": "2020-01-01T00:00:00Z"}), "/expires_at"),
        (json!({"expires_at": "2190-01-01T00:00:00Z"}), "/expires_at"),
        (json!({"registers": false}), "/registers"),
        (json!({"registers": false, "inviter": "romeo", "localpart": "juliet"}), "/registers"),
    ] {
        assert_eq!(refused(body, "invalid-value").await.as_deref(), Some(member));
    }
    assert_eq!(refused(json!({"localpart": "a b"}), "invalid-jid").await.as_deref(), Some("/localpart"));
    let nobody = world.post(PATH, json!({"inviter": "nobody"})).await;
    assert_eq!(nobody.problem(404, "unknown-account").as_deref(), Some("/inviter"));
    world.post(PATH, json!({"token": "mine"})).await.problem(400, "unknown-field");
    world.get(&format!("{PATH}?limit=0")).await.problem(400, "invalid-parameter");
}

#[tokio::test]
async fn a_key_needs_the_scope_and_reaches_its_domain() {
    let world = inviting();
    let (theirs, others) =
        (world.key("other.example", &[Scope::Enrol]), world.key("other.example", &[Scope::Send]));
    let as_key = async |key: &str, method: Method, path: &str| {
        world.call(with_key(world.request(method, path, Body::empty()), key)).await
    };
    as_key(&others, Method::POST, PATH).await.problem(403, "missing-scope");
    as_key(&theirs, Method::POST, &format!("{PATH}?domain=localhost")).await.problem(403, "other-domain");
    let own = as_key(&theirs, Method::POST, PATH).await.expect(StatusCode::CREATED);
    assert!(own["uri"].as_str().unwrap().starts_with("xmpp:other.example?register;preauth="), "{own}");
    assert!(listed(&world).await.is_empty());
}

#[tokio::test]
async fn there_are_none_where_they_are_off() {
    let world = world();
    world.post(PATH, json!({})).await.problem(409, "no-invitations");
    assert_eq!(page(&world, "/invitations/localhost/abc").await.0, StatusCode::NOT_FOUND);
}

/// The status, the policy and the text of a page, for somebody without a key.
async fn page(world: &World, path: &str) -> (StatusCode, String, String) {
    let request = Request::builder().uri(path).body(Body::empty()).unwrap();
    let reply = world.call(request).await;
    let policy =
        reply.headers.get(header::CONTENT_SECURITY_POLICY).map_or("", |value| value.to_str().unwrap());
    assert_eq!(reply.headers[header::CACHE_CONTROL], "no-store");
    assert_eq!(reply.headers[header::REFERRER_POLICY], "no-referrer");
    (reply.status, policy.to_owned(), reply.text)
}

#[tokio::test]
async fn whoever_has_the_token_is_shown_a_page() {
    let world = inviting();
    world
        .post("/v1/admin/accounts", json!({"jid": "r&j", "password": "secret"}))
        .await
        .problem(422, "invalid-jid");
    world
        .post("/v1/admin/accounts", json!({"jid": "romeo", "password": "secret"}))
        .await
        .expect(StatusCode::CREATED);
    let made = made(&world, json!({"inviter": "romeo"})).await;
    let path =
        made["landing_url"].as_str().unwrap().strip_prefix("https://chat.example.org").unwrap().to_owned();
    let (status, policy, text) = page(&world, &path).await;
    assert_eq!(status, StatusCode::OK);
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("script"),
        "{policy}"
    );
    assert!(text.contains("romeo invites you to chat") && !text.contains("<script"), "{text}");
    assert!(text.contains(&format!("href=\"{}\"", made["uri"].as_str().unwrap())), "{text}");
    let known = made["token"].as_str().unwrap();
    assert!(matches!(register(&world, known, "juliet"), RegisterInvitedAnswer::Registered(_)));
    for gone in [
        path.as_str(),
        "/invitations/localhost/abc",
        "/invitations/nowhere/abc",
        "/invitations/localhost/%3Cb%3E",
    ] {
        let (status, _, text) = page(&world, gone).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{gone}");
        assert!(text.contains("cannot be used") && !text.contains("<b>"), "{text}");
    }
}
