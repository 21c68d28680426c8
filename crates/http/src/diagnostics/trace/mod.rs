//! `GET /v1/trace`: what happens to the sessions of one account, as lines of JSON.
//!
//! ```text
//!  shard ──sink, never waits──► queue, bounded in bytes ──► pump ──► body
//!            └─ no room: counted ─────────────────────────► {"kind":"missed"}
//! ```

mod count;
mod line;
mod pump;
mod queue;
#[cfg(test)]
mod tests;

pub(crate) use count::{TRACES_MAX, Traces};

pub(crate) use line::TraceLine;

use crate::app::App;
use crate::auth::{Admin, Granted, acts};
use crate::extract::Params;
use crate::problem::{Code, Problem};
use crate::values::jids;
use crate::values::schema;
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use carillon_core::model::Scope;
use carillon_core::tap::{Kind, Kinds};
use carillon_server::TapRequest;
use pump::{Bounds, Pump};
use std::time::Duration;

/// What to trace, and how far.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TraceQuery {
    /// The account: its bare JID or local part.
    #[param(example = "alice")]
    account: String,
    /// For a key of the whole node: the domain of a local part; by default the node's first.
    domain: Option<String>,
    /// What is told, with commas between: `in` (what its clients send), `out` (what they are sent), `route` (where stanzas go, and what becomes of them), `store` (what
    /// is settled, acknowledged, kept), `session` (opened, closed, parked, resumed). All by default.
    #[param(example = "in,out")]
    kinds: Option<String>,
    /// When it ends, in seconds.
    #[serde(rename = "for")]
    #[param(minimum = 1, maximum = 3600, default = 60)]
    seconds: Option<u32>,
    /// After how many entries it ends.
    #[param(minimum = 1, maximum = 100_000, default = 1000)]
    count: Option<u32>,
    /// Entries per second, at most.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    rate: Option<u32>,
    /// Whether elements are told whole, as `xml`. Takes scope `trace_payload`, which `admin` does not include.
    #[serde(default)]
    payloads: bool,
}

/// Trace an account
///
/// `application/x-ndjson`: one line for each thing that happens to the account's sessions on this node, the first of which has the kind `begun`. Elements are told by their
/// names, addresses and sizes. Nothing waits for the reader: what it does not take in time, and what exceeds `rate`, is counted, and told as a line of the kind
/// `missed`. The trace ends after `for` seconds or `count` entries with a line of the kind `ended`, or without one if the reader goes, or does not read for five
/// seconds. A node has 16 traces at most.
///
/// In a cell it tells what the node that is asked sees: everything, if the account is at home there. `begun` says in `home` which node that is.
#[utoipa::path(
    get, path = "/v1/trace", operation_id = "traceAccount", tag = "admin", params(TraceQuery),
    responses(
        (status = 200, description = "What happens, line by line", body = TraceLine, content_type = "application/x-ndjson"),
        schema::Problems
    )
)]
pub(crate) async fn trace(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<TraceQuery>,
) -> Result<Response, Problem> {
    if query.payloads {
        key.needs(Scope::TracePayload)?;
    }
    let account = jids::account(&query.account, &key.domain(&app, query.domain.as_deref())?.name)?;
    key.reach(&app, account.domain())?;
    let kinds = query.kinds.as_deref().map_or(Ok(Kinds::ALL), read_kinds)?;
    let seconds = within("for", query.seconds, 60, SECONDS_MAX)?;
    let count = within("count", query.count, 1000, COUNT_MAX)?;
    let rate = within("rate", query.rate, 100, RATE_MAX)?;
    let permit = app.traces().begin().ok_or_else(|| {
        let detail = format!("{TRACES_MAX} traces are under way; wait until one ends");
        Problem::new(Code::TooManyStreams, detail).retry_after(10)
    })?;
    tracing::info!(
        key = &*key.key.name,
        key_id = key.key.id.0,
        account = account.as_str(),
        payloads = query.payloads,
        "an account is traced"
    );
    acts::note_read();
    let for_ms = u64::from(seconds) * 1000;
    let request = TapRequest { account, kinds, for_ms, count, rate, payloads: query.payloads };
    let bounds = Bounds { until: Duration::from_millis(for_ms), count, stall: STALL };
    let body = Pump::begin(app, &key.key, request, bounds, permit).await?;
    let headers = [(header::CONTENT_TYPE, "application/x-ndjson"), (header::CACHE_CONTROL, "no-cache")];
    Ok((headers, Body::from_stream(body)).into_response())
}

fn read_kinds(text: &str) -> Result<Kinds, Problem> {
    let find = |word: &str| Kind::ALL.into_iter().find(|kind| kind.word() == word);
    let kinds = text.split(',').map(|word| find(word).ok_or(word));
    kinds
        .collect::<Result<Vec<_>, _>>()
        .map(|kinds| kinds.into_iter().fold(Kinds::default(), Kinds::with))
        .map_err(|word| {
            let known = Kind::ALL.map(Kind::word).join("`, `");
            Problem::new(Code::InvalidParameter, format!("`kinds`: `{word}` is none; known: `{known}`"))
        })
}

fn within(name: &str, asked: Option<u32>, default: u32, max: u32) -> Result<u32, Problem> {
    match asked.unwrap_or(default) {
        value if (1..=max).contains(&value) => Ok(value),
        _ => Err(Problem::new(Code::InvalidParameter, format!("`{name}` is an integer from 1 to {max}"))),
    }
}

const SECONDS_MAX: u32 = 3600;
const COUNT_MAX: u32 = 100_000;
const RATE_MAX: u32 = 1000;
/// How long a reader may take no line that is there for it.
const STALL: Duration = Duration::from_secs(5);
