//! Spans of OpenTelemetry: from the HTTP request of a sender to the acknowledgement of the device, exported by OTLP over HTTP.
//!
//! ```text
//!  request ─► middleware ──────┐
//!  shard ──step of a followed ─┼─try_send─► thread: spans of notifications ─► batches ─► POST /v1/traces
//!  webhook ─► delivery ────────┘   └─ no room: counted
//! ```
//!
//! Nobody waits for the exporter. Only what is sampled costs anything: by the decision of whoever called ([`context`]), or by a ratio.

mod context;
mod exporter;
mod notification;
mod otlp;
mod recent;
mod span;

pub(crate) use exporter::Figures;
pub(crate) use span::{Span, SpanKind, Value};

use crate::app::App;
use crate::options::OtelSettings;
use crate::random;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, Method};
use axum::middleware::Next;
use axum::response::Response;
use carillon_core::model::{NodeId, NotificationId, TraceContext};
use carillon_server::HopSeen;
use exporter::{Exporter, Item};
use recent::Recent;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub use exporter::check;

/// The header of W3C Trace Context.
pub(crate) const TRACEPARENT: &str = "traceparent";

/// Routes whose requests are traced.
const ROUTES: [(&str, &str); 2] = [
    ("/v1/notifications", "POST /v1/notifications"),
    ("/v1/topics/{topic}/items", "POST /v1/topics/{topic}/items"),
];

/// One in so many requests is what a ratio is given in.
const MILLION: u64 = 1_000_000;

tokio::task_local! {
    static CURRENT: TraceContext;
}

/// What exports spans; nothing of it where that is not wanted.
pub(crate) struct Telemetry(Option<On>);

struct On {
    exporter: Exporter,
    /// Of a million requests that do not say whether they are sampled, so many are.
    per_million: u64,
    recent: Arc<Recent>,
}

impl App {
    /// What exports spans.
    pub(crate) fn telemetry(&self) -> &Arc<Telemetry> {
        self.part()
    }
}

/// The trace of the request that is being answered, and its span; none if it is not sampled.
pub(crate) fn current() -> Option<TraceContext> {
    CURRENT.try_with(|context| *context).ok()
}

/// `work` as a part of the request that is being answered, also where it goes on in a task of its own.
pub(crate) fn kept<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let context = current();
    async move {
        match context {
            Some(context) => CURRENT.scope(context, work).await,
            None => work.await,
        }
    }
}

/// Makes a span of a request that is sampled.
pub(crate) async fn trace(
    State(app): State<App>,
    route: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let Some(on) = &app.telemetry().0 else { return next.run(request).await };
    let Some((route, name)) = traced(request.method(), route.as_ref()) else {
        return next.run(request).await;
    };
    let Some((context, parent)) = on.begin(request.headers()) else { return next.run(request).await };
    let start = SystemTime::now();
    let response = CURRENT.scope(context, next.run(request)).await;
    let status = response.status();
    on.exporter.take(Item::Span(Box::new(Span {
        name: name.into(),
        kind: SpanKind::Server,
        context,
        parent,
        start,
        end: SystemTime::now(),
        attributes: vec![
            ("http.request.method", Value::Text("POST".into())),
            ("http.route", Value::Text(route.into())),
            ("http.response.status_code", Value::Number(status.as_u16().into())),
        ],
        links: Vec::new(),
        // By the conventions for spans of servers, what the client did wrong is no error.
        error: status.is_server_error().then(|| status.as_u16().to_string().into()),
    })));
    response
}

fn traced(method: &Method, route: Option<&MatchedPath>) -> Option<(&'static str, &'static str)> {
    let route = route.filter(|_| method == Method::POST)?.as_str();
    ROUTES.into_iter().find(|(path, _)| *path == route)
}

impl Telemetry {
    /// The exporter of a node, with its thread, if the settings want one.
    pub(crate) fn new(settings: &OtelSettings, own: NodeId) -> Telemetry {
        if settings.endpoint.is_empty() {
            return Telemetry(None);
        }
        let recent = Arc::new(Recent::default());
        let exporter = Exporter::start(&settings.endpoint, own, Arc::clone(&recent));
        match exporter {
            Ok(exporter) => {
                Telemetry(Some(On { exporter, per_million: settings.sample_per_million, recent }))
            }
            Err(error) => {
                tracing::error!(%error, "no spans are exported: a thread cannot be started");
                Telemetry(None)
            }
        }
    }

    /// A followed notification reached a step. It does not wait.
    pub(crate) fn hop(&self, seen: &HopSeen) {
        if let Some(on) = &self.0 {
            on.exporter.take(Item::Hop(Box::new(seen.clone())));
        }
    }

    /// A span has ended. It does not wait.
    pub(crate) fn export(&self, span: Span) {
        if let Some(on) = &self.0 {
            on.exporter.take(Item::Span(Box::new(span)));
        }
    }

    /// The spans of these notifications, as far as they are sampled and of the recent past.
    pub(crate) fn spans_of(&self, ids: impl Iterator<Item = NotificationId>) -> Vec<TraceContext> {
        self.0.as_ref().map_or_else(Vec::new, |on| on.recent.of(ids))
    }

    /// What was exported; none where nothing is.
    pub(crate) fn figures(&self) -> Option<&Figures> {
        self.0.as_ref().map(|on| on.exporter.figures())
    }

    /// Exports what waits, for a second at most.
    pub(crate) async fn close(&self) {
        if let Some(on) = &self.0 {
            drop(tokio::time::timeout(Duration::from_secs(1), on.exporter.close()).await);
        }
    }
}

impl On {
    /// The context of a new request with its own span, and the span that it follows from, 0 for none; nothing if it is not sampled.
    fn begin(&self, headers: &HeaderMap) -> Option<(TraceContext, u64)> {
        let header = headers.get(HeaderName::from_static(TRACEPARENT));
        let caller = header.and_then(|header| header.to_str().ok()).and_then(context::read);
        let span = random::number().max(1);
        match caller {
            Some(caller) if caller.is_sampled => {
                Some((TraceContext { trace: caller.trace, span }, caller.span))
            }
            Some(_) => None,
            None if random::number() % MILLION >= self.per_million => None,
            None => Some((TraceContext { trace: new_trace(), span }, 0)),
        }
    }
}

/// The name of a new trace.
pub(crate) fn new_trace() -> u128 {
    u128::from(random::number()) << 64 | u128::from(random::number().max(1))
}

/// The header for a request that belongs to a trace and is sampled.
pub(crate) fn traceparent(context: TraceContext) -> String {
    context::write(context)
}
