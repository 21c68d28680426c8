//! The OpenAPI document covers every route, and says what the code says.

use crate::support::{options, world, world_with};
use axum::body::Body;
use axum::http::{Method, StatusCode};
use carillon_core::model::{Policy, TopicConfig};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

fn document() -> Value {
    serde_json::from_str(&carillon_http::openapi(&options())).unwrap()
}

fn operations(document: &Value) -> BTreeSet<String> {
    let paths = document["paths"].as_object().unwrap();
    let of = |(path, item): (&String, &Value)| {
        item.as_object()
            .unwrap()
            .keys()
            .map(|method| format!("{} {path}", method.to_uppercase()))
            .collect::<Vec<_>>()
    };
    paths.iter().flat_map(of).collect()
}

/// To take over a change on purpose: `UPDATE_SNAPSHOTS=1 cargo test -p carillon-http`.
#[test]
fn the_routes_are_those_of_the_snapshot() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/routes.txt");
    let routes: String = operations(&document()).iter().map(|route| format!("{route}\n")).collect();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(path, &routes).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), routes, "the routes have changed");
}

#[tokio::test]
async fn every_route_of_the_document_is_served_and_guarded() {
    let world = world();
    let document = world.get("/openapi.json").await.expect(StatusCode::OK);
    assert_eq!(document, self::document());
    assert_eq!(document["openapi"], "3.1.0");
    for route in operations(&document) {
        let (method, path) = route.split_once(' ').unwrap();
        let uri = path.replace(['{', '}'], "");
        let mut request = world.request(Method::from_bytes(method.as_bytes()).unwrap(), &uri, Body::empty());
        request.headers_mut().remove("authorization");
        let status = world.open(request).await.status();
        if path.starts_with("/v1/") {
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{route}");
        } else if path.starts_with("/push/") {
            // The token is the right, and this node gave none.
            assert_eq!(status, StatusCode::NOT_FOUND, "{route}");
        } else {
            assert_eq!(status, StatusCode::OK, "{route}");
        }
    }
}

#[test]
fn every_operation_has_an_id_of_its_own() {
    let document = document();
    let mut seen = BTreeSet::new();
    for item in document["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(seen.insert(id.to_owned()), "{id} twice");
        }
    }
}

#[tokio::test]
async fn bounds_are_those_of_the_settings() {
    let world = world_with(|options| {
        Arc::make_mut(&mut options.core).notification_ttl_max_ms = 3_600_000;
        options.settings.targets_max = 7;
    });
    let document = world.get("/openapi.json").await.expect(StatusCode::OK);
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["NotificationBody"]["properties"]["ttl"]["maximum"], 3600);
    assert_eq!(schemas["Targets"]["oneOf"][1]["maxItems"], 7);
    world.enrol("alice").await;
    let send = |ttl: u32| world.post("/v1/notifications", json!({"to": "alice", "payload": 1, "ttl": ttl}));
    send(3600).await.expect(StatusCode::ACCEPTED);
    send(3601).await.problem(422, "invalid-value");
}

#[test]
fn every_reference_leads_somewhere_and_every_route_is_described() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut references = Vec::new();
    collect(&document, &mut references);
    for reference in references {
        let name = reference.strip_prefix("#/components/schemas/").unwrap();
        assert!(schemas.contains_key(name), "{reference}");
    }
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert!(operation["summary"].is_string(), "{method} {path} has no summary");
            assert_eq!(operation["tags"].as_array().map(Vec::len), Some(1), "{method} {path} has no tag");
            assert_eq!(operation.get("security").is_some(), path.starts_with("/v1/"), "{method} {path}");
        }
    }
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            references.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|inner| collect(inner, references));
        }
        Value::Array(list) => list.iter().for_each(|inner| collect(inner, references)),
        _ => {}
    }
}

/// The core's types do not describe themselves: what does it for them must have the same members and defaults.
#[test]
fn described_records_are_the_cores_own() {
    let document = document();
    for (name, core) in [
        ("TopicConfig", serde_json::to_value(TopicConfig::default()).unwrap()),
        ("Policy", serde_json::to_value(Policy::default()).unwrap()),
    ] {
        let described = document["components"]["schemas"][name]["properties"].as_object().unwrap();
        let members: BTreeSet<_> = described.keys().collect();
        assert_eq!(members, core.as_object().unwrap().keys().collect(), "{name}");
        for (member, value) in core.as_object().unwrap() {
            let default = find_default(&described[member]);
            assert_eq!(default, *value, "{name}.{member}");
        }
    }
}

fn find_default(schema: &Value) -> Value {
    schema.get("default").cloned().unwrap_or_else(|| json!("no default"))
}
