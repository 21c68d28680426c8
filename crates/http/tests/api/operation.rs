//! What load balancers, monitoring and browsers ask for.

use crate::support::{options, world, world_with};
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

fn anonymous(uri: &str) -> Request<Body> {
    Request::get(uri).body(Body::empty()).unwrap()
}

#[tokio::test]
async fn health_and_metrics_need_no_key() {
    let world = world();
    world.post("/v1/notifications", json!({})).await.problem(400, "missing-field");
    assert_eq!(world.call(anonymous("/healthz")).await.text, "ok\n");
    assert_eq!(world.call(anonymous("/readyz")).await.text, "ready\n");
    let metrics = world.call(anonymous("/metrics")).await;
    assert!(metrics.headers[header::CONTENT_TYPE].to_str().unwrap().starts_with("text/plain; version=0.0.4"));
    assert!(metrics.text.contains("\n# TYPE carillon_sessions gauge\ncarillon_sessions 0\n"));
    let counted =
        "carillon_http_requests_total{route=\"/v1/notifications\",method=\"POST\",status=\"400\"} 1\n";
    assert!(metrics.text.contains(counted), "{}", metrics.text);
}

#[tokio::test]
async fn metrics_may_need_a_key() {
    let world = world_with(|options| options.settings.metrics_key_required = true);
    world.call(anonymous("/metrics")).await.problem(401, "missing-key");
    assert_eq!(world.get("/metrics").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_draining_node_is_not_ready() {
    let world = world();
    let router = world.router.clone();
    assert!(world.server.drain(Duration::from_secs(20), Duration::ZERO));
    let response = tower::ServiceExt::oneshot(router, anonymous("/readyz")).await.unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn a_web_client_finds_the_websocket() {
    let world =
        world_with(|options| options.endpoints.websocket_url = Some("wss://x.example/ws?a='&'".into()));
    let xrd = world.call(anonymous("/.well-known/host-meta")).await;
    assert!(xrd.text.contains(
        "<Link rel='urn:xmpp:alt-connections:websocket' href='wss://x.example/ws?a=&apos;&amp;&apos;'/>"
    ));
    assert_eq!(xrd.headers[header::ACCESS_CONTROL_ALLOW_ORIGIN], "*");
    let json = world.call(anonymous("/.well-known/host-meta.json")).await.expect(StatusCode::OK);
    assert_eq!(
        json,
        json!({"links": [{"rel": "urn:xmpp:alt-connections:websocket", "href": "wss://x.example/ws?a='&'"}]})
    );
}

#[tokio::test]
async fn the_console_and_the_documentation_are_inside() {
    let world = world();
    let root = world.call(anonymous("/")).await;
    assert_eq!(
        (root.status, &root.headers[header::LOCATION]),
        (StatusCode::SEE_OTHER, &"/console".parse().unwrap())
    );
    for uri in ["/console", "/docs", "/console/app.js", "/console/style.css"] {
        let page = world.call(anonymous(uri)).await;
        assert_eq!(page.status, StatusCode::OK);
        let policy = page.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"));
    }
    world.call(anonymous("/console/../Cargo.toml")).await.problem(404, "unknown-route");
}

#[tokio::test]
async fn closing_ends_streams_and_waits_for_requests() {
    let world = world();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let mut options = options();
    options.settings.read_timeout_ms = 500;
    let serving = tokio::spawn(carillon_http::serve(
        vec![carillon_http::Listener { socket: listener, serves: carillon_http::Serves::All }],
        world.server.node(),
        options,
        stopped,
    ));

    let mut stream = TcpStream::connect(address).await.unwrap();
    let request =
        format!("GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n", world.admin);
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 15];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");

    // A connection that says nothing is closed, and holds nothing up.
    let mut silent = TcpStream::connect(address).await.unwrap();
    silent.write_all(b"GET / HT").await.unwrap();
    let mut nothing = Vec::new();
    tokio::time::timeout(Duration::from_secs(20), silent.read_to_end(&mut nothing)).await.unwrap().unwrap();

    stop.send(()).unwrap();
    let mut rest = Vec::new();
    tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut rest)).await.unwrap().unwrap();
    assert!(rest.ends_with(b"0\r\n\r\n"), "the stream ended in good order");
    tokio::time::timeout(Duration::from_secs(20), serving).await.unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}
