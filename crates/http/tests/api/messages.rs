//! The archives of accounts.

use crate::support::{World, ask, with_key, world};
use axum::body::Body;
use axum::http::{Method, StatusCode};
use carillon_core::model::{ArchiveSide, Scope, UnixMs};
use carillon_core::ports::store::archive::{KeepMessage, KeepMessageAnswer};
use carillon_wire::jid::Jid;
use serde_json::{Value, json};

const T: u64 = 1_795_167_000_000;

/// Keeps a message between two accounts of `localhost`; its number.
pub(crate) fn keep(world: &World, from: &str, to: &str, n: u64) -> u64 {
    let jid = |name: &str, end: &str| Jid::new(&format!("{name}@localhost{end}")).unwrap();
    let (sender, recipient, domain) = (jid(from, "/r"), jid(to, ""), world.domain("localhost"));
    let body = format!(
        "<message from='{sender}' to='{recipient}' type='chat'><body>{n} &amp; more</body></message>"
    );
    let side = |name: &str, peer| Some(ArchiveSide { domain, local: name.into(), peer });
    let (sender, recipient) = (side(from, recipient), side(to, sender));
    let asked = KeepMessage {
        sender,
        recipient,
        received: UnixMs(T + n),
        stanza: body.into(),
        has_contents: true,
        displayed: None,
    };
    match ask(&*world.store, asked) {
        KeepMessageAnswer::Kept { id, .. } => id.0,
        KeepMessageAnswer::NotKept => panic!("it is not kept"),
    }
}

pub(crate) async fn read(world: &World, key: &str, uri: &str) -> crate::support::Reply {
    world.call(with_key(world.request(Method::GET, uri, Body::empty()), key)).await
}

fn bodies(page: &Value) -> Vec<&str> {
    page["messages"].as_array().unwrap().iter().map(|m| m["body"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn messages_are_read_the_newest_first_page_by_page() {
    let world = world();
    for name in ["alice", "bob", "carol"] {
        world.enrol(name).await;
    }
    let numbers: Vec<u64> =
        (0..5).map(|n| keep(&world, "alice", ["bob", "carol"][n as usize % 2], n)).collect();
    let key = world.key("localhost", &[Scope::ReadMessages]);
    let page = read(&world, &key, "/v1/accounts/alice/messages?limit=3").await.expect(StatusCode::OK);
    assert_eq!(bodies(&page), ["4 & more", "3 & more", "2 & more"]);
    assert_eq!(page["next"], json!(numbers[2]));
    let newest = &page["messages"][0];
    assert_eq!(newest["id"], json!(numbers[4]));
    assert_eq!((&newest["from"], &newest["to"]), (&json!("alice@localhost/r"), &json!("bob@localhost")));
    assert_eq!(newest["received_at"], UnixMs(T + 4).to_xmpp());
    assert!(newest["xml"].as_str().unwrap().starts_with("<message from='alice@localhost/r'"));
    let rest = format!("/v1/accounts/alice@localhost/messages?limit=3&before={}", numbers[2]);
    let page = read(&world, &key, &rest).await.expect(StatusCode::OK);
    assert_eq!((bodies(&page), &page["next"]), (vec!["1 & more", "0 & more"], &Value::Null));
    let with = read(&world, &key, "/v1/accounts/alice/messages?with=carol").await.expect(StatusCode::OK);
    assert_eq!(bodies(&with), ["3 & more", "1 & more"]);
    let (from, to) = (UnixMs(T + 2).to_xmpp(), UnixMs(T + 3).to_xmpp());
    let uri = format!("/v1/accounts/alice/messages?from={from}&to={to}");
    let page = read(&world, &key, &uri).await.expect(StatusCode::OK);
    assert_eq!(bodies(&page), ["3 & more", "2 & more"]);
}

#[tokio::test]
async fn nobody_reads_messages_without_the_scope_for_it() {
    let world = world();
    world.enrol("alice").await;
    world.get("/v1/accounts/alice/messages").await.problem(403, "missing-scope");
    let key = world.key("other.example", &[Scope::ReadMessages]);
    read(&world, &key, "/v1/accounts/alice@localhost/messages").await.problem(403, "other-domain");
    let key = world.key("localhost", &[Scope::ReadMessages]);
    read(&world, &key, "/v1/accounts/nobody/messages").await.problem(404, "unknown-account");
    read(&world, &key, "/v1/accounts/a%20b/messages").await.problem(422, "invalid-jid");
    read(&world, &key, "/v1/accounts/alice/messages?with=a%20b").await.problem(422, "invalid-jid");
    read(&world, &key, "/v1/accounts/alice/messages?before=77").await.problem(422, "invalid-value");
    read(&world, &key, "/v1/accounts/alice/messages?limit=0").await.problem(400, "invalid-parameter");
    // Who reads cannot erase.
    let request = world.request(Method::DELETE, "/v1/accounts/alice/messages", Body::empty());
    world.call(with_key(request, &key)).await.problem(403, "missing-scope");
}

#[tokio::test]
async fn an_archive_is_erased_and_the_other_side_keeps_its_own() {
    let world = world();
    for name in ["alice", "bob"] {
        world.enrol(name).await;
    }
    keep(&world, "alice", "bob", 1);
    world.delete("/v1/accounts/alice/messages").await.expect(StatusCode::NO_CONTENT);
    world.delete("/v1/accounts/nobody/messages").await.problem(404, "unknown-account");
    let key = world.key("localhost", &[Scope::ReadMessages]);
    let page = read(&world, &key, "/v1/accounts/alice/messages").await.expect(StatusCode::OK);
    assert_eq!(page, json!({"messages": [], "next": null}));
    let page = read(&world, &key, "/v1/accounts/bob/messages").await.expect(StatusCode::OK);
    assert_eq!(bodies(&page), ["1 & more"]);
}
