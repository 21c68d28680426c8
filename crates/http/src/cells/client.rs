//! The HTTP client of a front: requests to its cells, so many at a time to each, and what is known of whether each answers.

use crate::options::{CellsSettings, WebhookRoots};
use crate::provider::idempotency::GIVEN_ID;
use axum::http::StatusCode;
use bytes::Bytes;
use carillon_core::model::{CellRecord, NotificationId};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use ureq::http::{Request, header};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};

/// Makes requests to cells.
pub(crate) struct Client {
    /// Made for the first request: until then nobody reads the system's certificates.
    agent: OnceLock<Agent>,
    roots: WebhookRoots,
    settings: CellsSettings,
    cells: Mutex<HashMap<Box<str>, Arc<Cell>>>,
}

/// What is known of a cell in memory.
pub(crate) struct Cell {
    /// Room for requests.
    room: Semaphore,
    /// Since when it does not answer, and why.
    away: Mutex<Option<(Instant, Box<str>)>>,
    /// Whether it is being found out that it answers again.
    is_probed: AtomicBool,
    counts: Mutex<Counts>,
}

/// What was counted of a cell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Requests that it answered.
    pub(crate) answered: u64,
    /// Requests that it did not answer.
    pub(crate) failed: u64,
    /// Requests that were held for it.
    pub(crate) held: u64,
    /// Requests that it took after they had been held.
    pub(crate) given: u64,
    /// Requests that it refused after they had been held.
    pub(crate) refused: u64,
    /// Devices that moved away from it.
    pub(crate) moved: u64,
}

/// A request to a cell.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: &'static str,
    /// Path and query.
    pub(crate) path: String,
    /// JSON, if there is any.
    pub(crate) body: Option<Bytes>,
    /// The id by which the cell knows the request when it comes again.
    pub(crate) id: Option<NotificationId>,
}

/// What a cell answered.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) content_type: Option<Box<str>>,
    pub(crate) body: Bytes,
}

/// A cell did not answer, or cannot do anything now: it is unknown whether the request was done.
#[derive(Clone, Debug)]
pub(crate) struct Away(pub(crate) Box<str>);

impl Call {
    /// A request without a body.
    pub(crate) fn new(method: &'static str, path: impl Into<String>) -> Call {
        Call { method, path: path.into(), body: None, id: None }
    }

    /// The same with a JSON body.
    pub(crate) fn with(self, body: impl Into<Bytes>) -> Call {
        Call { body: Some(body.into()), ..self }
    }

    /// The same with an id.
    pub(crate) fn known_as(self, id: NotificationId) -> Call {
        Call { id: Some(id), ..self }
    }
}

impl Client {
    pub(crate) fn new(settings: CellsSettings, roots: WebhookRoots) -> Client {
        Client { agent: OnceLock::new(), roots, settings, cells: Mutex::default() }
    }

    /// What is known of a cell.
    pub(crate) fn cell(&self, name: &str) -> Arc<Cell> {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Cell {
            room: Semaphore::new(self.settings.requests_max),
            away: Mutex::default(),
            is_probed: AtomicBool::new(false),
            counts: Mutex::default(),
        };
        cells.entry(name.into()).or_insert_with(|| Arc::new(new())).clone()
    }

    /// Forgets a cell.
    pub(crate) fn forget(&self, name: &str) {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    /// Makes a request, unless the cell is known not to answer or too many are under way there. What others ask other cells does not wait for it.
    pub(crate) async fn call(self: &Arc<Self>, to: &CellRecord, call: Call) -> Result<Reply, Away> {
        let cell = self.cell(&to.name);
        if let Some((_, why)) = cell.away() {
            return Err(Away(why));
        }
        let wait = Duration::from_millis(self.settings.timeout_ms);
        let Ok(Ok(_room)) = tokio::time::timeout(wait, cell.room.acquire()).await else {
            return Err(Away("too many requests are under way at the cell".into()));
        };
        // Those that were under way may have found out that it is away.
        match cell.away() {
            Some((_, why)) => Err(Away(why)),
            None => self.try_call(to, call).await,
        }
    }

    /// The same whether or not the cell is known to answer, which is found out by that.
    pub(crate) async fn try_call(self: &Arc<Self>, to: &CellRecord, call: Call) -> Result<Reply, Away> {
        let (client, cell, to) = (Arc::clone(self), self.cell(&to.name), to.clone());
        let calling = tokio::task::spawn_blocking(move || client.exchange(&to, &call));
        let answered = calling.await.unwrap_or_else(|_| Err(Away("the request was not made".into())));
        cell.note(answered.as_ref().err());
        answered
    }

    /// Finds out whether a cell that is away answers again. Nobody waits for that.
    pub(crate) fn probe(self: &Arc<Self>, to: &CellRecord) {
        let cell = self.cell(&to.name);
        if cell.is_probed.swap(true, Ordering::Relaxed) {
            return;
        }
        let (client, to) = (Arc::clone(self), to.clone());
        tokio::spawn(async move {
            // What comes of it is noted there.
            let _ = client.try_call(&to, Call::new("GET", "/healthz")).await;
            cell.is_probed.store(false, Ordering::Relaxed);
        });
    }

    fn exchange(&self, to: &CellRecord, call: &Call) -> Result<Reply, Away> {
        let away = |error: &dyn std::fmt::Display| Away(error.to_string().into());
        let mut request = Request::builder()
            .method(call.method)
            .uri(format!("{}{}", to.url, call.path))
            .header(header::AUTHORIZATION, format!("Bearer {}", to.key.0));
        if let Some(id) = call.id {
            request = request.header(GIVEN_ID, id.to_string());
        }
        let response = match &call.body {
            Some(body) => {
                let request = request.header(header::CONTENT_TYPE, "application/json");
                self.agent().run(request.body(&body[..]).map_err(|error| away(&error))?)
            }
            None => self.agent().run(request.body(()).map_err(|error| away(&error))?),
        };
        let mut response = response.map_err(|error| away(&error))?;
        let status = StatusCode::from_u16(response.status().as_u16()).map_err(|error| away(&error))?;
        let content_type = response.headers().get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| Some(value.to_str().ok()?.into()));
        let body = read(response.body_mut()).map_err(|error| away(&error))?;
        if status.is_server_error() {
            return Err(Away(
                format!("{status}: {}", String::from_utf8_lossy(&body[..body.len().min(200)])).into(),
            ));
        }
        Ok(Reply { status, content_type, body })
    }

    fn agent(&self) -> &Agent {
        self.agent.get_or_init(|| {
            let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
            let roots = self.roots.certificates().map(|der| Certificate::from_der(&der).to_owned());
            let tls = TlsConfig::builder()
                .root_certs(RootCerts::from(roots.collect::<Vec<_>>()))
                .unversioned_rustls_crypto_provider(provider)
                .build();
            Agent::config_builder()
                .http_status_as_error(false)
                .max_redirects(0)
                .proxy(None)
                .tls_config(tls)
                .timeout_global(Some(Duration::from_millis(self.settings.timeout_ms)))
                .max_idle_connections_per_host(self.settings.requests_max)
                .user_agent(concat!("carillon/", env!("CARGO_PKG_VERSION")))
                .build()
                .new_agent()
        })
    }
}

fn read(body: &mut Body) -> Result<Bytes, ureq::Error> {
    body.with_config().limit(REPLY_BYTES_MAX).read_to_vec().map(Bytes::from)
}

impl Cell {
    /// Since when it does not answer, and why; none while it answers.
    pub(crate) fn away(&self) -> Option<(Instant, Box<str>)> {
        self.away.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was counted.
    pub(crate) fn counts(&self) -> Counts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts.
    pub(crate) fn count(&self, add: impl FnOnce(&mut Counts)) {
        add(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn note(&self, failure: Option<&Away>) {
        self.count(|counts| match failure {
            Some(_) => counts.failed += 1,
            None => counts.answered += 1,
        });
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        *away = match (failure, away.take()) {
            (Some(Away(why)), Some((since, _))) => Some((since, why.clone())),
            (Some(Away(why)), None) => Some((Instant::now(), why.clone())),
            (None, _) => None,
        };
    }
}

/// The largest answer that is read, in bytes.
const REPLY_BYTES_MAX: u64 = 64 << 20;
