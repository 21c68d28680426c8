//! A receiver of webhooks: a real HTTP server on loopback that answers as it is told.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// Requests that nobody has looked at; more wait for their answer.
const REQUESTS_MAX: usize = 1024;

/// A receiver of webhooks.
pub(crate) struct Receiver {
    pub url: String,
    requests: mpsc::Receiver<Request>,
    answer: Shared,
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    headers: HeaderMap,
    body: Bytes,
}

type Answer = Box<dyn Fn(&Value) -> (StatusCode, HeaderMap, &'static str) + Send>;
type Shared = Arc<Mutex<Answer>>;

impl Receiver {
    /// One that takes everything.
    pub(crate) async fn start() -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://127.0.0.1:{}/hook", listener.local_addr().unwrap().port());
        let (sender, requests) = mpsc::channel(REQUESTS_MAX);
        let taken: Answer = Box::new(|_| (StatusCode::NO_CONTENT, HeaderMap::new(), ""));
        let answer = Arc::new(Mutex::new(taken));
        let router = Router::new().route("/hook", post(receive)).with_state((answer.clone(), sender));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Receiver { url, requests, answer }
    }

    /// Answers every request like this from now on.
    pub(crate) fn answers(&self, status: u16) {
        self.answers_by(move |_| (StatusCode::from_u16(status).unwrap(), HeaderMap::new(), "so it is"));
    }

    /// Answers by the body of the request.
    pub(crate) fn answers_by(
        &self,
        answer: impl Fn(&Value) -> (StatusCode, HeaderMap, &'static str) + Send + 'static,
    ) {
        *self.answer.lock().unwrap() = Box::new(answer);
    }

    /// The next request.
    pub(crate) async fn next(&mut self) -> Request {
        let request = tokio::time::timeout(Duration::from_secs(20), self.requests.recv()).await;
        request.expect("no request came").expect("the receiver runs")
    }

    /// The next events, in as many requests as they come: their numbers, notifications and states.
    pub(crate) async fn events(&mut self, count: usize) -> Vec<(u64, Value, Value)> {
        let mut events = Vec::new();
        while events.len() < count {
            events.extend(self.next().await.events());
        }
        events
    }

    /// Whether no request has come.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.requests.try_recv().is_err()
    }
}

async fn receive(
    State((answer, sender)): State<(Shared, mpsc::Sender<Request>)>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, HeaderMap, &'static str) {
    let request = Request { headers, body };
    let answer = (answer.lock().unwrap())(&request.json());
    // A test that has seen enough does not listen any more.
    let _ = sender.send(request).await;
    answer
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn events(&self) -> Vec<(u64, Value, Value)> {
        let json = self.json();
        let events = json["events"].as_array().unwrap().iter();
        let event = |event: &Value| {
            let notification = &event["notification"];
            (event["id"].as_u64().unwrap(), notification["id"].clone(), notification["state"].clone())
        };
        events.map(event).collect()
    }

    /// Whether it was signed with this secret.
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        let head = format!("{}.{}.", self.header("webhook-id"), self.header("webhook-timestamp"));
        mac.update(head.as_bytes());
        mac.update(&self.body);
        let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
        self.header("webhook-signature") == expected
    }
}
