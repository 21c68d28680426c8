//! All that is kept of an account.

use crate::messages::{keep, read};
use crate::support::{ask, world};
use axum::http::StatusCode;
use bytes::Bytes;
use carillon_core::model::{Scope, UnixMs};
use carillon_core::ports::store::offline::{StoreOffline, StoreOfflineAnswer};
use carillon_core::ports::store::private::{PrivateElement, StorePrivate, StorePrivateAnswer};
use carillon_core::ports::store::vcard::StoreVcard;
use serde_json::{Value, json};

const SCOPES: [Scope; 2] = [Scope::Admin, Scope::ReadMessages];

fn of<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

#[tokio::test]
async fn everything_of_one_account_is_told_and_nothing_of_others() {
    let world = world();
    for name in ["alice", "bob"] {
        world.enrol(name).await;
    }
    let (domain, local) = (world.domain("localhost"), Box::<str>::from("alice"));
    // More than one page.
    for n in 0..450 {
        keep(&world, ["alice", "bob"][n as usize % 2], ["bob", "alice"][n as usize % 2], n);
    }
    world.put("/v1/topics/news", json!({})).await.expect(StatusCode::CREATED);
    world.put("/v1/devices/alice/subscriptions/news", json!({})).await.expect(StatusCode::CREATED);
    world
        .put("/v1/accounts/alice/roster/bob", json!({"name": "Bob", "groups": ["x"]}))
        .await
        .expect(StatusCode::OK);
    world.put("/v1/accounts/bob/roster/alice", json!({"name": "secret of bob"})).await.expect(StatusCode::OK);
    world.put("/v1/accounts/alice/blocked/mallory", json!({})).await.expect(StatusCode::NO_CONTENT);
    let kept = json!({"to": "alice@localhost", "audience": "always", "ttl": 60, "payload": {"n": 1}});
    world.post("/v1/notifications", kept).await.expect(StatusCode::ACCEPTED);
    let xml = Bytes::from_static(b"<a xmlns='n'/>");
    let elements = vec![PrivateElement { name: "a".into(), ns: "n".into(), xml: xml.clone() }];
    let private = StorePrivate { domain, local: local.clone(), elements, bytes_max: 100 };
    assert_eq!(ask(&*world.store, private), StorePrivateAnswer::Stored);
    ask(&*world.store, StoreVcard { domain, local: local.clone(), xml }).expect("she is there");
    let offline = StoreOffline {
        domain,
        local,
        received: UnixMs(7),
        stanza: Bytes::from_static(b"<message><body>offline</body></message>"),
        expires: None,
        queue_max: 9,
        bytes_max: 999,
        wake: None,
    };
    assert!(matches!(ask(&*world.store, offline), StoreOfflineAnswer::Stored(_)));
    let key = world.key("localhost", &SCOPES);
    let answer = read(&world, &key, "/v1/admin/accounts/alice/export").await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let lines = answer.lines();
    assert_eq!(lines[0]["jid"], "alice@localhost");
    assert_eq!(lines.last(), Some(&json!({"kind": "end", "records": lines.len() - 1})));
    assert_eq!(of(&lines, "topic"), [&json!({"kind": "topic", "name": "news"})]);
    let contacts = of(&lines, "contact");
    assert_eq!(
        (contacts.len(), &contacts[0]["name"], &contacts[0]["groups"]),
        (1, &json!("Bob"), &json!(["x"]))
    );
    assert_eq!(of(&lines, "blocked")[0]["jid"], "mallory@localhost");
    assert_eq!(of(&lines, "private")[0]["xml"], "<a xmlns='n'/>");
    assert_eq!(of(&lines, "vcard")[0]["xml"], "<a xmlns='n'/>");
    let bodies: Vec<_> = of(&lines, "message").iter().map(|line| line["body"].clone()).collect();
    assert_eq!(bodies, (0..450).map(|n| json!(format!("{n} & more"))).collect::<Vec<_>>());
    assert_eq!(of(&lines, "conversation")[0]["with"], "bob@localhost");
    assert!(of(&lines, "offline_message")[0]["xml"].as_str().unwrap().contains("offline"));
    assert_eq!(of(&lines, "notification")[0]["to"], "alice@localhost");
    let text = serde_json::to_string(&lines).unwrap();
    assert!(!text.contains("secret of bob"));
}

#[tokio::test]
async fn it_takes_both_scopes_and_an_account_and_is_noted() {
    let world = world();
    world.enrol("alice").await;
    let path = "/v1/admin/accounts/alice/export";
    for scope in SCOPES {
        read(&world, &world.key("localhost", &[scope]), path).await.problem(403, "missing-scope");
    }
    let key = world.key("localhost", &SCOPES);
    read(&world, &key, "/v1/admin/accounts/nobody/export").await.problem(404, "unknown-account");
    read(&world, &key, "/v1/admin/accounts/alice@elsewhere/export").await.problem(403, "other-domain");
    assert_eq!(read(&world, &key, path).await.lines().len(), 2);
    let acts = world.get("/v1/admin/audit").await.expect(StatusCode::OK);
    let noted =
        acts["acts"].as_array().unwrap().iter().any(|act| act["what"].as_str().unwrap().contains("export"));
    assert!(noted, "{acts}");
}
