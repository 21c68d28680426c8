//! A node to ask, and how to ask it.

pub(crate) mod device;
pub(crate) mod faulty;
pub(crate) mod receiver;

use self::faulty::Faulty;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, Response, StatusCode, header};
use carillon_backend::sqlite::{self, SqliteStore};
use carillon_core::model::{DomainId, Policy, Scope, Scopes, UnixMs};
use carillon_core::ports::store::domains::PutDomain;
use carillon_core::ports::store::keys::{CreateKey, NODE_KEYS_MAX};
use carillon_core::ports::{Question, Store};
use carillon_http::{Endpoints, Options, Settings, WebhookRoots};
use carillon_server::{Server, Tcp, TrustedProxies, WebSocket, tls};
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tempfile::TempDir;
use tower::ServiceExt;

/// A node with the domains `localhost` and `other.example`, and the API over it.
pub(crate) struct World {
    pub router: Router,
    pub server: Server,
    /// A key of the whole node with scope admin.
    pub admin: String,
    pub store: Arc<Faulty>,
    dir: TempDir,
}

/// An answer of the API.
#[derive(Debug)]
pub(crate) struct Reply {
    pub status: StatusCode,
    pub headers: axum::http::HeaderMap,
    pub text: String,
}

pub(crate) fn world() -> World {
    world_with(|_| {})
}

/// The API at its defaults, for devices that are told nothing.
pub(crate) fn options() -> Options {
    Options {
        settings: Settings::default(),
        core: Arc::default(),
        default_domain: "localhost".to_owned(),
        drain_timeout_ms: 10_000,
        endpoints: Endpoints::default(),
        webhook_roots: WebhookRoots::default(),
        vapid: carillon_http::VapidKey::of_secret(&[7; 32]),
        push_apps: tokio::sync::watch::channel(carillon_http::PushApps::default()).1,
        push_templates: tokio::sync::watch::channel(carillon_http::PushTemplates::default()).1,
        queues: Vec::new(),
        objects: None,
        traces_kept_ms: 86_400_000,
        trusted_proxies: TrustedProxies::default(),
    }
}

pub(crate) fn world_with(change: impl FnOnce(&mut Options)) -> World {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    for name in ["localhost", "other.example"] {
        ask(&*store, PutDomain { name: name.into(), policy: Policy::default() });
    }
    let admin = key(&*store, None, &[Scope::Admin]);
    start(dir, store, admin, change)
}

fn open(dir: &TempDir) -> Arc<Faulty> {
    let store = SqliteStore::open(sqlite::Options::new(dir.path().join("test.db"))).unwrap();
    Arc::new(Faulty::new(Arc::new(store)))
}

fn start(dir: TempDir, store: Arc<Faulty>, admin: String, change: impl FnOnce(&mut Options)) -> World {
    let tls = tls::Settings::self_signed_in(dir.path(), &["localhost".to_owned()]).unwrap();
    let none = Tcp { enabled: false, port: 0 };
    let options = carillon_server::Options {
        c2s: none,
        c2s_tls: none,
        websocket: WebSocket { port: 0, ..WebSocket::default() },
        shards: 2,
        ..carillon_server::Options::default()
    };
    let server = Server::start(&options, &tls, &Arc::default(), store.clone()).unwrap();
    let mut options = self::options();
    change(&mut options);
    let router = carillon_http::router(server.node(), options);
    World { router, server, admin, store, dir }
}

/// Makes a key known to the store.
pub(crate) fn key(store: &dyn Store, domain: Option<DomainId>, scopes: &[Scope]) -> String {
    let (text, hash) = carillon_http::generate_key();
    let scopes = Scopes::of(scopes);
    ask(
        store,
        CreateKey {
            hash,
            name: "test".into(),
            domain,
            scopes,
            expires: None,
            networks: Box::default(),
            certificates: Box::default(),
            node_keys_max: NODE_KEYS_MAX,
            now: UnixMs(0),
        },
    );
    text
}

pub(crate) fn ask<Q: Question>(store: &dyn Store, question: Q) -> Q::Answer {
    let (sender, answers) = mpsc::channel();
    store.ask(question.into(), Q::reply(move |answer| drop(sender.send(answer))));
    answers.recv_timeout(Duration::from_secs(20)).expect("one answer").expect("the store is well")
}

impl World {
    /// The same node, ended in order and started again.
    pub(crate) fn restart(self) -> World {
        let World { router, server, admin, store, dir } = self;
        drop((router, store));
        server.drain(Duration::from_secs(20), Duration::ZERO);
        let store = open(&dir);
        start(dir, store, admin, |_| {})
    }

    pub(crate) fn domain(&self, name: &str) -> DomainId {
        self.server.node().domains().named(name).unwrap().id
    }

    pub(crate) fn key(&self, domain: &str, scopes: &[Scope]) -> String {
        key(&*self.store, Some(self.domain(domain)), scopes)
    }

    /// Enrols a device with a secret that is its id.
    pub(crate) async fn enrol(&self, id: &str) {
        self.post("/v1/devices", json!({"id": id, "secret": id})).await.expect(StatusCode::CREATED);
    }

    pub(crate) async fn get(&self, uri: &str) -> Reply {
        self.call(self.request(Method::GET, uri, Body::empty())).await
    }

    pub(crate) async fn delete(&self, uri: &str) -> Reply {
        self.call(self.request(Method::DELETE, uri, Body::empty())).await
    }

    pub(crate) async fn post(&self, uri: &str, body: Value) -> Reply {
        self.call(self.request(Method::POST, uri, Body::from(body.to_string()))).await
    }

    pub(crate) async fn put(&self, uri: &str, body: Value) -> Reply {
        self.call(self.request(Method::PUT, uri, Body::from(body.to_string()))).await
    }

    pub(crate) async fn patch(&self, uri: &str, body: Value) -> Reply {
        let mut request = self.request(Method::PATCH, uri, Body::from(body.to_string()));
        request.headers_mut().insert(header::CONTENT_TYPE, "application/merge-patch+json".parse().unwrap());
        self.call(request).await
    }

    /// A request with the admin key and a JSON body.
    pub(crate) fn request(&self, method: Method, uri: &str, body: Body) -> Request<Body> {
        Request::builder()
            .method(method)
            .uri(uri)
            .header(header::AUTHORIZATION, format!("Bearer {}", self.admin))
            .header(header::CONTENT_TYPE, "application/json")
            .body(body)
            .unwrap()
    }

    pub(crate) async fn call(&self, request: Request<Body>) -> Reply {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, 64 << 20).await.unwrap();
        // An image is none, and its bytes are not looked at.
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Reply { status: parts.status, headers: parts.headers, text }
    }

    /// The response without its body read.
    pub(crate) async fn open(&self, request: Request<Body>) -> Response<Body> {
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// Asks for `uri` until its JSON is as wanted.
    pub(crate) async fn until(&self, uri: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let wait = async {
            loop {
                let json = self.get(uri).await.json();
                if wanted(&json) {
                    return json;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait).await.expect("it never came to be")
    }
}

/// Puts another key on a request.
pub(crate) fn with_key(mut request: Request<Body>, key: &str) -> Request<Body> {
    request.headers_mut().insert(header::AUTHORIZATION, format!("Bearer {key}").parse().unwrap());
    request
}

impl Reply {
    /// The JSON of an answer of this status.
    #[track_caller]
    pub(crate) fn expect(&self, status: StatusCode) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        if self.text.is_empty() { Value::Null } else { self.json() }
    }

    /// Makes sure that it is this problem, in full form, and gives its pointer.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Option<String> {
        let json = self.expect(StatusCode::from_u16(status).unwrap());
        assert_eq!(self.headers[header::CONTENT_TYPE], "application/problem+json");
        assert_eq!(json["code"], code, "{json}");
        assert_eq!(json["type"], format!("urn:carillon:problem:{code}"));
        assert_eq!(json["status"], status);
        assert!(json["title"].is_string() && json["detail"].is_string());
        json["pointer"].as_str().map(str::to_owned)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The JSON of each line.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Server-Sent Events as they come.
pub(crate) struct Events {
    body: axum::body::BodyDataStream,
    rest: String,
    last_id: u64,
}

impl Events {
    pub(crate) fn of(response: Response<Body>) -> Events {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
        Events { body: response.into_body().into_data_stream(), rest: String::new(), last_id: 0 }
    }

    /// The last `id` that came.
    pub(crate) fn last_id(&self) -> u64 {
        self.last_id
    }

    /// The next event's name and data; none when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<(String, Value)> {
        tokio::time::timeout(Duration::from_secs(20), self.read()).await.expect("no event")
    }

    async fn read(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((frame, rest)) = self.rest.split_once("\n\n") {
                let member = |name: &str| frame.lines().find_map(|l| l.strip_prefix(name)).map(str::to_owned);
                let event = member("event: ").zip(member("data: "));
                self.last_id = member("id: ").map_or(self.last_id, |id| id.parse().unwrap());
                self.rest = rest.to_owned();
                if let Some((name, data)) = event {
                    return Some((name, serde_json::from_str(&data).unwrap()));
                }
                continue;
            }
            let chunk = self.body.next().await?.unwrap();
            self.rest.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}
