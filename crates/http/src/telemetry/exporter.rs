//! The thread that makes batches of spans and sends them.

use super::notification::Ways;
use super::otlp;
use super::recent::Recent;
use super::span::{Span, Value};
use carillon_core::model::NodeId;
use carillon_server::HopSeen;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::oneshot;
use ureq::Agent;
use ureq::http::Uri;
use ureq::tls::{RootCerts, TlsConfig};

/// What the thread is given.
pub(super) enum Item {
    /// A span that has ended.
    Span(Box<Span>),
    /// A followed notification reached a step.
    Hop(Box<HopSeen>),
}

/// What was exported.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    /// Spans that the receiver took.
    pub(crate) exported: AtomicU64,
    /// Spans, and steps of notifications, for which there was no room.
    pub(crate) dropped: AtomicU64,
    /// Spans that the receiver did not take.
    pub(crate) failed: AtomicU64,
}

/// Gives spans to the thread.
pub(super) struct Exporter {
    items: Mutex<Option<SyncSender<Item>>>,
    ended: Mutex<Option<oneshot::Receiver<()>>>,
    figures: Arc<Figures>,
}

/// What waits for the thread at most: spans, and steps of notifications.
const QUEUE_MAX: usize = 8192;
/// Spans of one request at most.
const BATCH_MAX: usize = 512;
/// How long a span waits for others.
const GATHER: Duration = Duration::from_secs(1);
/// How long a request may take as a whole.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long is waited before a request that failed is sent once more.
const PAUSE: Duration = Duration::from_millis(500);
/// How much of an answer is read.
const ANSWER_BYTES_MAX: u64 = 4096;

/// Checks where spans are to go, as a setting.
///
/// # Errors
/// What is wrong with it.
pub fn check(endpoint: &str) -> Result<(), String> {
    if endpoint.is_empty() {
        return Ok(());
    }
    let uri: Uri = endpoint.parse().map_err(|error| format!("it is not a URL: {error}"))?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http" | "https"), Some(host)) if !host.is_empty() => Ok(()),
        _ => Err("it is a URL such as http://127.0.0.1:4318".to_owned()),
    }
}

impl Exporter {
    /// Starts the thread.
    pub(super) fn start(endpoint: &str, own: NodeId, recent: Arc<Recent>) -> io::Result<Exporter> {
        let (sender, items) = sync_channel(QUEUE_MAX);
        let (end, ended) = oneshot::channel();
        let figures = Arc::new(Figures::default());
        let mut sending = Sending {
            url: format!("{}/v1/traces", endpoint.trim_end_matches('/')),
            resource: vec![
                ("service.name", Value::Text("carillon".into())),
                ("service.version", Value::Text(env!("CARGO_PKG_VERSION").into())),
                ("service.instance.id", Value::Text(own.0.to_string().into())),
            ],
            agent: agent(),
            figures: Arc::clone(&figures),
            recent,
            ways: Ways::default(),
            spans: Vec::new(),
            is_down: false,
        };
        thread::Builder::new().name("otel".into()).spawn(move || {
            sending.run(&items);
            drop(end);
        })?;
        Ok(Exporter { items: Mutex::new(Some(sender)), ended: Mutex::new(Some(ended)), figures })
    }

    /// Gives the thread something, or counts it.
    pub(super) fn take(&self, item: Item) {
        let items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sender) = &*items else { return };
        if let Err(TrySendError::Full(_)) = sender.try_send(item) {
            self.figures.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What was exported.
    pub(super) fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Takes no more, and waits until the thread has sent what it has.
    pub(super) async fn close(&self) {
        drop(self.items.lock().unwrap_or_else(PoisonError::into_inner).take());
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ended) = ended {
            // It ends by dropping the other end.
            drop(ended.await);
        }
    }
}

/// What the thread has.
struct Sending {
    url: String,
    resource: Vec<(&'static str, Value)>,
    agent: Agent,
    figures: Arc<Figures>,
    recent: Arc<Recent>,
    ways: Ways,
    spans: Vec<Span>,
    /// The last request failed: of those that follow only the first is told to the log.
    is_down: bool,
}

impl Sending {
    fn run(&mut self, items: &Receiver<Item>) {
        let mut due = Instant::now() + GATHER;
        loop {
            match items.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(item) => self.take(item),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.spans.len() >= BATCH_MAX || Instant::now() >= due {
                self.ways.expire(SystemTime::now(), &mut self.spans);
                self.send();
                due = Instant::now() + GATHER;
            }
        }
        self.ways.close(&mut self.spans);
        self.send();
    }

    fn take(&mut self, item: Item) {
        match item {
            Item::Span(span) => self.spans.push(*span),
            Item::Hop(seen) => {
                if !self.ways.step(*seen, &self.recent, &mut self.spans) {
                    self.figures.dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Sends what was gathered. What cannot be sent is counted, and forgotten.
    fn send(&mut self) {
        while !self.spans.is_empty() {
            let batch: Vec<Span> = self.spans.drain(..self.spans.len().min(BATCH_MAX)).collect();
            let body = otlp::request(&self.resource, &batch);
            let sent = self.post(&body).or_else(|error| match error {
                Refusal::ForGood(_) => Err(error),
                Refusal::ForNow(_) if self.is_down => Err(error),
                Refusal::ForNow(_) => {
                    thread::sleep(PAUSE);
                    self.post(&body)
                }
            });
            let count = batch.len() as u64;
            match sent {
                Ok(()) => {
                    self.figures.exported.fetch_add(count, Ordering::Relaxed);
                    self.is_down = false;
                }
                Err(Refusal::ForGood(error) | Refusal::ForNow(error)) => {
                    self.figures.failed.fetch_add(count, Ordering::Relaxed);
                    if !self.is_down {
                        tracing::warn!(
                            url = self.url,
                            error,
                            "spans were not taken, and are lost until they are again"
                        );
                    }
                    self.is_down = true;
                }
            }
        }
    }

    fn post(&self, body: &[u8]) -> Result<(), Refusal> {
        let request = self.agent.post(&self.url).header("content-type", "application/x-protobuf");
        let mut response = request.send(body).map_err(|error| Refusal::ForNow(error.to_string()))?;
        let status = response.status().as_u16();
        // A connection whose answer was read to its end is used again.
        let _ = response.body_mut().as_reader().take(ANSWER_BYTES_MAX).read_to_end(&mut Vec::new());
        match status {
            200..=299 => Ok(()),
            // OTLP/HTTP: these may be sent again.
            429 | 502 | 503 | 504 => Err(Refusal::ForNow(status.to_string())),
            _ => Err(Refusal::ForGood(status.to_string())),
        }
    }
}

/// Why a request was not taken.
enum Refusal {
    ForNow(String),
    ForGood(String),
}

fn agent() -> Agent {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let roots = rustls_native_certs::load_native_certs().certs;
    let roots = roots.iter().map(|der| ureq::tls::Certificate::from_der(der).to_owned());
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::from(roots.collect::<Vec<_>>()))
        .unversioned_rustls_crypto_provider(provider)
        .build();
    Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .tls_config(tls)
        .timeout_global(Some(TIMEOUT))
        .user_agent(concat!("carillon/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent()
}
