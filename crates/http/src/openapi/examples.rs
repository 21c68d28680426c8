//! Examples for the document: a body for each operation that has one, and a value for each part of a path. Together they
//! work: a test sends them to a node.

use serde_json::Value;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::{OpenApi, RefOr, Schema};

/// Bodies by the id of their operation. What is not JSON stands as text.
const BODIES: &[(&str, &str)] = &[
    (
        "sendNotification",
        r#"{"to": ["alice", "bob"], "payload": {"title": "Your order has shipped"}, "ttl": 86400, "priority": "high"}"#,
    ),
    (
        "sendBatch",
        "{\"to\": \"alice\", \"payload\": {\"n\": 1}}\n{\"to\": \"bob\", \"payload\": {\"n\": 2}, \"collapse_key\": \"score\"}\n",
    ),
    (
        "sendBroadcast",
        r#"{"payload": {"title": "Maintenance at 10:00"}, "ttl": 7200, "rate": 1000, "window": {"from": "09:00", "to": "21:00", "utc_offset": "+09:00"}}"#,
    ),
    ("updateBroadcast", r#"{"paused": false, "rate": 5000}"#),
    ("lookUpPresence", r#"{"accounts": ["alice", "bob@localhost"]}"#),
    ("putTopic", r#"{"title": "News", "max_items": 10}"#),
    ("updateTopic", r#"{"max_items": 20}"#),
    ("putRoom", r#"{"title": "Tea", "members_only": true}"#),
    ("updateRoom", r#"{"description": "All about tea", "members_only": false}"#),
    ("putRoomMember", r#"{"affiliation": "owner", "nick": "Alice"}"#),
    (
        "changeRoomMembers",
        "{\"jid\": \"alice\", \"affiliation\": \"owner\"}\n{\"jid\": \"bob\", \"affiliation\": \"member\"}\n",
    ),
    ("updateOccupant", r#"{"role": "visitor", "reason": "too loud"}"#),
    ("sendRoomMessage", r#"{"body": "The kettle is on"}"#),
    (
        "putMatchQueue",
        r#"{"seats": 2, "tick_rate": 15, "rating": {"initial": 100, "per_second": 20, "max": 500}}"#,
    ),
    ("enterTicket", r#"{"id": "first", "account": "alice", "rating": 1200, "alike": {"region": "eu"}}"#),
    ("publishItem", r#"{"id": "latest", "payload": {"headline": "Carillon rings"}}"#),
    ("enrolDevice", r#"{"id": "alice"}"#),
    ("rotateSecret", r#"{"secret": "correct horse battery staple"}"#),
    ("validateSecret", r#"{"secret": "correct horse battery staple"}"#),
    ("sendProbe", r#"{"to": "alice", "audience": "active", "timeout": 1}"#),
    ("startDrain", r#"{"over_ms": 60000, "to": "chat2.games.example"}"#),
    ("rotateKey", r#"{"overlap_ms": 3600000}"#),
    (
        "logCommand",
        r#"{"command": "session end alice@localhost", "reason": "ticket 4711", "outcome": "done", "took_ms": 12}"#,
    ),
    (
        "putCell",
        r#"{"url": "https://eu-1.example.com", "key": "crl_qk1nrO7Tq7bWf4Z0uXyH3mA2sVdJ9cLe5GiKpRtYwBE", "weight": 100, "endpoints": {"host": "eu-1.example.com", "c2s_tls_port": 5223}}"#,
    ),
    ("updateCell", r#"{"drain": "running", "rate": 20}"#),
    (
        "takeNotification",
        r#"{"id": "01KAG8X4RZ5T9V7Q2M3N6P8W0Y", "to": "alice@localhost", "audience": "always", "priority": "normal", "accepted_at": "2026-11-20T09:30:00.125Z", "payload": {"title": "Your order has shipped"}}"#,
    ),
    ("takeTransfer", r#"{"topics": [], "acknowledged": [], "notifications": [], "next": null}"#),
    ("moveDevice", r#"{"device": "alice", "to": "eu-1"}"#),
    ("startNodeDrain", r#"{"over_ms": 60000}"#),
    ("evictNode", r#"{"reason": "the machine is gone"}"#),
    ("putDomain", r#"{"sessions": "single", "registration": false}"#),
    ("updateDomain", r#"{"archive": true, "archive_days": 30}"#),
    ("createAccount", r#"{"jid": "bob", "password": "correct horse battery staple"}"#),
    ("setPassword", r#"{"password": "a new and better one", "keep_sessions": true}"#),
    (
        "importAccounts",
        "{\"jid\": \"alice\", \"password\": \"correct horse\"}\n{\"jid\": \"carol\", \"password\": \"battery staple\"}\n\
         {\"jid\": \"alice\", \"part\": {\"kind\": \"contact\", \"jid\": \"carol@localhost\", \"name\": \"Carol\", \"to\": true, \"from\": true}}\n",
    ),
    (
        "createWebhook",
        r#"{"url": "https://shop.example.com/receipts", "states": ["acknowledged", "expired"]}"#,
    ),
    (
        "createRegistration",
        r#"{"account": "alice", "node": "phone", "webhook": {"url": "https://shop.example.com/pushes"}}"#,
    ),
    (
        "putPushTemplates",
        r#"{"title": ["{sender} in {room}", "{sender}"], "body": ["{body}", "{messages} new messages"]}"#,
    ),
    ("updateWebhook", r#"{"states": ["acknowledged", "expired", "dropped"], "enabled": false}"#),
    ("sendMessage", r#"{"to": "bob", "body": "Your table is ready"}"#),
    ("putContact", r#"{"name": "Bob", "groups": ["Friends"], "mutual": true}"#),
    ("updateConversation", r#"{"read": true, "folder": "archive"}"#),
    ("createLink", r#"{"url": "https://example.com/offers?id=7", "code": "offers"}"#),
    ("updateLink", r#"{"expires_at": "2030-01-01T00:00:00Z"}"#),
    (
        "putLinkFile",
        r#"{"applinks": {"details": [{"appIDs": ["ABCDE12345.com.example.app"], "components": [{"/": "/*"}]}]}}"#,
    ),
    ("createInvitation", r#"{"localpart": "dora", "uses": 1}"#),
    ("takeLease", r#"{"holder": "scaler-1", "ttl_ms": 180000}"#),
    ("activateModule", r#"{"hash": "9b2f61c04d7e", "percent": 5, "on_failure": "closed"}"#),
    ("createKey", r#"{"name": "shop", "scopes": ["send", "topics"]}"#),
];

/// Parts of paths by what the path begins with.
const PARTS: &[(&str, &str, &str)] = &[
    ("/v1/notifications", "id", "01KAG8X4RZ5T9V7Q2M3N6P8W0Y"),
    ("/v1/domains", "domain", "games.example"),
    ("/v1/domains", "id", "01KAG8X4RZ00007Q2M3N6P8W0Y"),
    ("/v1/domains", "device", "alice"),
    ("/v1/topics", "topic", "news"),
    ("/v1/topics", "id", "latest"),
    ("/v1/rooms", "room", "tea"),
    ("/v1/rooms", "jid", "alice"),
    ("/v1/rooms", "nick", "Alice"),
    ("/v1/rooms", "id", "1"),
    ("/v1/matchmaking", "queue", "duel"),
    ("/v1/matchmaking", "ticket", "first"),
    ("/v1/matches", "match", "0000000000000001c3a9f0e27b5d4816"),
    ("/v1/devices", "id", "alice"),
    ("/v1/devices", "topic", "news"),
    ("/v1/admin/domains", "domain", "games.example"),
    ("/v1/admin/accounts", "jid", "bob"),
    ("/v1/accounts", "jid", "alice"),
    ("/v1/accounts", "with", "bob"),
    ("/v1/accounts", "contact", "bob"),
    ("/v1/accounts", "address", "bob"),
    ("/v1/admin/keys", "id", "2"),
    ("/v1/admin/leases", "lease", "autoscale"),
    ("/v1/admin/modules", "module", "profanity"),
    ("/v1/cells", "cell", "eu-1"),
    ("/v1/cluster/nodes", "node", "node3"),
    ("/v1/cluster/where", "jid", "alice@localhost"),
    ("/v1/push", "id", "1"),
    ("/v1/webhooks", "id", "1"),
    ("/v1/webhooks", "event", "17"),
    ("/v1/admin/sessions", "jid", "alice"),
    ("/v1/invitations", "id", "1"),
    ("/v1/links", "code", "offers"),
    ("/v1/link-files", "file", "apple-app-site-association"),
];

/// Puts the examples into the document.
pub(crate) fn add(document: &mut OpenApi) {
    for (path, item) in &mut document.paths.paths {
        let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.patch, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            body(operation);
            let parameters = operation.parameters.iter_mut().flatten();
            parameters.for_each(|parameter| part(path, parameter));
        }
    }
}

fn body(operation: &mut Operation) {
    let id = operation.operation_id.as_deref().unwrap_or_default();
    let Some((_, text)) = BODIES.iter().find(|(of, _)| *of == id) else { return };
    let Some(RefOr::T(body)) = &mut operation.request_body else { return };
    for content in body.content.values_mut() {
        let RefOr::T(content) = content else { continue };
        content.example = Some(serde_json::from_str(text).unwrap_or_else(|_| Value::from(*text)));
    }
}

fn part(path: &str, parameter: &mut RefOr<Parameter>) {
    let RefOr::T(Parameter { name, parameter_in: ParameterIn::Path, schema, .. }) = parameter else { return };
    let known = PARTS.iter().find(|(begin, of, _)| path.starts_with(begin) && of == name);
    if let (Some((_, _, value)), Some(RefOr::T(Schema::Object(schema)))) = (known, schema) {
        schema.examples = vec![Value::from(*value)];
    }
}
