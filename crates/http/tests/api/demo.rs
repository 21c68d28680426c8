//! The demo of real-time matches: there where it is wanted, for this machine alone.

use crate::support::{World, world, world_with};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use serde_json::{Value, json};

fn asked(method: Method, uri: &str, host: &str) -> Request<Body> {
    Request::builder().method(method).uri(uri).header(header::HOST, host).body(Body::empty()).unwrap()
}

fn guest(host: &str, table: &str) -> Request<Body> {
    let request = Request::post("/demo/match/tickets").header(header::HOST, host);
    let request = request.header(header::CONTENT_TYPE, "application/json");
    request.body(json!({ "table": table }).to_string().into()).unwrap()
}

fn with_demo() -> World {
    world_with(|options| {
        options.settings.match_demo = true;
        options.endpoints.websocket_url = Some("ws://example.org:5280/xmpp-websocket".to_owned());
    })
}

#[tokio::test]
async fn there_is_nothing_of_it_where_it_is_not_wanted() {
    let world = world();
    for uri in ["/demo/match", "/demo/match/page.js", "/demo/match/tickets/x"] {
        world.call(asked(Method::GET, uri, "localhost:8080")).await.problem(404, "unknown-route");
    }
    world.call(guest("localhost:8080", "open")).await.problem(404, "unknown-route");
}

#[tokio::test]
async fn two_guests_of_a_table_are_seated_together_without_a_key() {
    let world = with_demo();
    let one = world.call(guest("localhost:8080", "open")).await.expect(StatusCode::CREATED);
    assert_eq!(one["ticket"]["state"], "waiting");
    assert_eq!(one["websocket_url"], "ws://localhost:5280/xmpp-websocket");
    let elsewhere = world.call(guest("127.0.0.1:8080", "other")).await.expect(StatusCode::CREATED);
    assert_eq!(elsewhere["ticket"]["state"], "waiting");
    assert_eq!(elsewhere["websocket_url"], "ws://127.0.0.1:5280/xmpp-websocket");
    let other = world.call(guest("[::1]:8080", "open")).await.expect(StatusCode::CREATED);
    let path = |entered: &Value| format!("/demo/match/tickets/{}", entered["ticket"]["id"].as_str().unwrap());
    let seated = loop {
        let seen = world.call(asked(Method::GET, &path(&one), "localhost")).await.expect(StatusCode::OK);
        if seen["state"] != "waiting" {
            break seen;
        }
    };
    let accounts = &seated["seating"]["accounts"];
    assert_eq!(*accounts, json!([one["ticket"]["account"], other["ticket"]["account"]]));
    assert!(seated["seating"]["token"].is_string());
    // Whoever waits alone gives up.
    let request = asked(Method::DELETE, &path(&elsewhere), "localhost");
    assert_eq!(world.call(request).await.status, StatusCode::NO_CONTENT);
    let request = asked(Method::GET, &path(&elsewhere), "localhost");
    world.call(request).await.problem(404, "unknown-ticket");
    world.call(guest("localhost", "")).await.problem(422, "invalid-value");
}

#[tokio::test]
async fn pages_of_others_do_not_play() {
    let world = with_demo();
    for host in ["evil.example", "localhost.evil.example:8080", "192.0.2.1:8080", "127.0.0.1.evil.example"] {
        world.call(asked(Method::GET, "/demo/match", host)).await.problem(404, "unknown-route");
        world.call(guest(host, "open")).await.problem(404, "unknown-route");
    }
    // What a form of another origin may send, without asking first, is not read.
    let request = Request::post("/demo/match/tickets").header(header::HOST, "localhost");
    let request = request.header(header::CONTENT_TYPE, "text/plain").body("{\"table\":\"open\"}".into());
    world.call(request.unwrap()).await.problem(415, "wrong-content-type");
    let page = world.call(asked(Method::GET, "/demo/match", "localhost:8080")).await;
    assert!(!page.headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
}

#[tokio::test]
async fn its_page_reaches_its_own_files_and_this_node() {
    let world = with_demo();
    for (file, kind) in [("", "text/html"), ("/page.css", "text/css"), ("/page.js", "text/javascript")] {
        let page = world.call(asked(Method::GET, &format!("/demo/match{file}"), "localhost:8080")).await;
        assert_eq!(page.status, StatusCode::OK);
        assert!(page.headers[header::CONTENT_TYPE].to_str().unwrap().starts_with(kind));
        let policy = page.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; ") && !policy.contains("unsafe"));
        assert!(policy.contains("; connect-src 'self' ws://localhost:5280; "), "{policy}");
        if kind == "text/html" {
            assert!(!page.text.contains("style=") && !page.text.contains(" onclick"));
            assert_eq!(page.text.matches("<script").count(), 1);
            assert!(page.text.contains("<script type=\"module\" src=\"/demo/match/page.js\">"));
        }
    }
    world.call(asked(Method::GET, "/demo/match/mod.rs", "localhost")).await.problem(404, "unknown-route");
}
