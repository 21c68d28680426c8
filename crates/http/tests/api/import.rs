//! Accounts by the stream.

use crate::messages::read;
use crate::support::{Reply, World, world};
use axum::body::Body;
use axum::http::{Method, StatusCode, header};
use carillon_core::model::Scope;
use serde_json::json;

async fn import(world: &World, kind: &str, body: String) -> Reply {
    let mut request = world.request(Method::POST, "/v1/admin/accounts/import", Body::from(body));
    request.headers_mut().insert(header::CONTENT_TYPE, kind.parse().unwrap());
    world.call(request).await
}

#[tokio::test]
async fn csv_with_passwords() {
    let world = world();
    let reply = import(
        &world,
        "text/csv",
        "jid,password\nalice@localhost,secret\nbob,\"p,w\"\nbroken\ncarol@nowhere.example,x\n".into(),
    )
    .await;
    let last = reply.lines().pop().unwrap();
    assert_eq!(
        (&last["done"], &last["lines"], &last["imported"], &last["failed"]),
        (&json!(true), &json!(4), &json!(2), &json!(2))
    );
    assert_eq!(
        (&last["errors"][0]["line"], &last["errors"][0]["code"]),
        (&json!(4), &json!("invalid-value"))
    );
    assert_eq!(
        (&last["errors"][1]["line"], &last["errors"][1]["code"]),
        (&json!(5), &json!("unknown-domain"))
    );
    assert_eq!(world.post("/v1/devices/bob/validate", json!({"secret": "p,w"})).await.json()["valid"], true);
}

#[tokio::test]
async fn csv_names_its_columns_or_does_not() {
    let world = world();
    for (body, id) in [
        ("ann,one\n", "ann"),
        ("jid,password\nbea,one\n", "bea"),
        ("\u{feff}password, jid\r\none,cia\r\n", "cia"),
    ] {
        let last = import(&world, "text/csv", body.into()).await.lines().pop().unwrap();
        assert_eq!((&last["imported"], &last["failed"]), (&json!(1), &json!(0)), "{last}");
        let uri = format!("/v1/devices/{id}/validate");
        assert_eq!(world.post(&uri, json!({"secret": "one"})).await.json()["valid"], true);
    }
    let last = import(&world, "text/csv", "jid,salt\nann,one\n".into()).await.lines().pop().unwrap();
    assert_eq!(
        (&last["imported"], &last["errors"][0]["line"], &last["done"]),
        (&json!(0), &json!(1), &json!(true))
    );
}

/// What cannot be read, what cannot be hashed and what cannot be written fail at different times.
#[tokio::test]
async fn errors_come_in_the_order_of_their_lines() {
    let world = world();
    let lines = "ann,\nbroken\nbea,one\ncarol@nowhere.example,x\ndora,\nbroken too\n";
    let last = import(&world, "text/csv", lines.into()).await.lines().pop().unwrap();
    let failed: Vec<u64> =
        last["errors"].as_array().unwrap().iter().map(|e| e["line"].as_u64().unwrap()).collect();
    assert_eq!(failed, [1, 2, 4, 5, 6]);
}

#[tokio::test]
async fn ready_keys_by_the_thousand() {
    let world = world();
    let keys = carillon_core::sasl::scram::keys("secret", b"0123456789abcdef", 4096).unwrap().sha256.unwrap();
    let base64 = |bytes: &[u8]| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes);
    let line = |n: u32| {
        json!({"jid": format!("u{n}"), "scram_sha256": {
            "salt": base64(&keys.salt), "iterations": keys.iterations,
            "stored_key": base64(&keys.stored_key), "server_key": base64(&keys.server_key),
        }})
        .to_string()
            + "\n"
    };
    let reply = import(&world, "application/x-ndjson", (0..1000).map(line).collect()).await;
    let lines = reply.lines();
    assert!(lines.len() > 2, "progress comes by and by");
    assert_eq!(lines.last().unwrap(), &json!({"lines": 1000, "imported": 1000, "failed": 0, "done": true}));
    assert_eq!(
        world.post("/v1/devices/u999/validate", json!({"secret": "secret"})).await.json()["valid"],
        true
    );
    // Again: they are replaced.
    let again = import(&world, "application/x-ndjson", line(1)).await.lines();
    assert_eq!(again.last().unwrap()["imported"], 1);
    world.get("/v1/admin/accounts?limit=1000").await.expect(StatusCode::OK);
}

#[tokio::test]
async fn what_belongs_to_accounts_follows_them() {
    let world = world();
    let part = |jid: &str, part: serde_json::Value| json!({"jid": jid, "part": part}).to_string() + "\n";
    let contact = json!({"kind": "contact", "jid": "bob@localhost", "name": "Bob", "groups": ["Friends"], "to": true, "from": true});
    let message = "<message xmlns='jabber:client' from='bob@localhost/r' type='chat'><body>hi</body><delay xmlns='urn:xmpp:delay' stamp='2026-01-02T03:04:05Z'/></message>";
    let good = [
        json!({"jid": "alice", "password": "secret"}).to_string() + "\n",
        part("alice", contact),
        part("alice@localhost", json!({"kind": "private", "xml": "<p xmlns='urn:p'>kept</p>"})),
        part("alice", json!({"kind": "vcard", "xml": "<vCard xmlns='vcard-temp'><FN>Alice</FN></vCard>"})),
        part("alice", json!({"kind": "node", "name": "urn:n", "access_model": "open"})),
        part("alice", json!({"kind": "item", "node": "urn:n", "id": "1", "xml": "<a xmlns='urn:a'/>"})),
        part("alice", json!({"kind": "item", "node": "urn:n", "id": "2", "xml": "<a xmlns='urn:a'/>"})),
        part(
            "alice",
            json!({"kind": "offline_message", "received_at": "2026-01-02T03:04:05Z", "xml": message}),
        ),
    ];
    let bad = [
        (part("nobody", json!({"kind": "vcard", "xml": "<vCard xmlns='vcard-temp'/>"})), "unknown-account"),
        (part("alice", json!({"kind": "vcard", "xml": "<v xmlns='vcard-temp'/>"})), "invalid-xml"),
        (part("alice", json!({"kind": "contact", "jid": "alice@localhost"})), "invalid-value"),
        (part("alice", json!({"kind": "private", "xml": "<p/>"})), "invalid-value"),
        (part("alice", json!({"kind": "node", "name": "n", "access_model": "some"})), "invalid-value"),
        (
            part("alice", json!({"kind": "offline_message", "xml": "<message xmlns='jabber:client'/>"})),
            "invalid-xml",
        ),
        (
            json!({"jid": "alice", "password": "p", "part": {"kind": "private", "xml": "<p/>"}}).to_string()
                + "\n",
            "invalid-value",
        ),
    ];
    // Twice: it is the same afterwards.
    for _ in 0..2 {
        let body: String = good.iter().chain(bad.iter().map(|(line, _)| line)).cloned().collect();
        let last = import(&world, "application/x-ndjson", body).await.lines().pop().unwrap();
        let codes: Vec<&str> =
            last["errors"].as_array().unwrap().iter().map(|e| e["code"].as_str().unwrap()).collect();
        assert_eq!(codes, bad.iter().map(|(_, code)| *code).collect::<Vec<_>>(), "{last}");
        assert_eq!((&last["imported"], &last["parts"], &last["failed"]), (&json!(1), &json!(7), &json!(7)));
    }
    is_exported(&world).await;
}

/// All of it is there, once.
async fn is_exported(world: &World) {
    let key = world.key("localhost", &[Scope::Admin, Scope::ReadMessages]);
    let lines = read(world, &key, "/v1/admin/accounts/alice/export").await.lines();
    let of = |kind: &str| -> Vec<serde_json::Value> {
        lines.iter().filter(|line| line["kind"] == kind).cloned().collect()
    };
    let contacts = of("contact");
    assert_eq!(contacts.len(), 1);
    assert_eq!(
        (
            &contacts[0]["jid"],
            &contacts[0]["name"],
            &contacts[0]["groups"],
            &contacts[0]["to"],
            &contacts[0]["from"]
        ),
        (&json!("bob@localhost"), &json!("Bob"), &json!(["Friends"]), &json!(true), &json!(true))
    );
    assert_eq!(of("private")[0]["xml"], "<p xmlns='urn:p'>kept</p>");
    assert_eq!(of("vcard")[0]["xml"], "<vCard xmlns='vcard-temp'><FN>Alice</FN></vCard>");
    assert_eq!(of("node")[0]["access_model"], "open");
    assert_eq!(
        of("item").iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>(),
        ["2", "1"]
    );
    let waiting = of("offline_message");
    assert_eq!((waiting.len(), &waiting[0]["received_at"]), (1, &json!("2026-01-02T03:04:05.000Z")));
    let stanza = "<message to='alice@localhost' from='bob@localhost/r' type='chat'><body>hi</body></message>";
    assert_eq!(waiting[0]["xml"], stanza);
}
