//! Sending a stream of notifications: a line in, a line out, in order.

use super::body::NotificationBody;
use super::idempotency::{self, Ids, Reserved, Turn};
use super::submit::{SendResult, submit, target};
use super::targets::Targets;
use crate::app::App;
use crate::auth::{Granted, Send};
use crate::extract::{DomainQuery, Format, Line, LineStream, Params, content_type, parse};
use crate::problem::{Code, Problem};
use crate::schema;
use crate::time::now;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::StreamExt;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What became of a line of a batch: either of its parts.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct BatchLine {
    /// The line's number, counted from 1.
    line: u64,
    /// What became of it.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    result: Option<SendResult>,
    /// Why it could not be sent.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    problem: Option<LineProblem>,
}

/// Why a line could not be sent.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct LineProblem {
    /// The problem's code.
    code: &'static str,
    /// What is wrong with this very line.
    detail: String,
    /// The member of the line it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
}

/// What all lines of a batch have in common.
struct Batch {
    app: App,
    key: Granted<Send>,
    domain: Arc<str>,
    reserved: Option<Reserved>,
}

/// Send a batch
///
/// NDJSON: each line is the body of `POST /v1/notifications` with one target; for each line a line comes back, in the
/// same order, as soon as the node has it. The stream may go on for ever. A line that cannot be sent gives a line with
/// `code` and `detail`, and the rest goes on. With an `Idempotency-Key` the `n`th line names the same notification each
/// time the batch is sent.
#[utoipa::path(
    post, path = "/v1/notifications/batch", tag = "notifications",
    params(
        DomainQuery,
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the batch safe to send again for 24 hours, not sooner than a minute after it began"),
    ),
    request_body(content = NotificationBody, content_type = "application/x-ndjson"),
    responses(
        (status = 200, description = "A result for each line", body = BatchLine, content_type = "application/x-ndjson"),
        schema::Problems
    )
)]
pub(crate) async fn send_batch(
    key: Granted<Send>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    content_type(&headers, &[Format::Ndjson])?;
    let idempotency_key = idempotency::header(&headers)?;
    let domain = key.domain(&app, query.domain.as_deref())?.name.clone();
    let reserved = match idempotency_key {
        None => None,
        // The body is not there yet; that lines differ from last time only shows in their results.
        Some(k) => {
            match idempotency::reserve(&app, key.key.id, Some(k), idempotency::body_hash(&uri, b""), now())
                .await?
            {
                Turn::Go(reserved) => Some(reserved),
                Turn::Replay { .. } => {
                    return Err(Problem::new(
                        Code::IdempotencyMismatch,
                        "the idempotency key was used with another request",
                    ));
                }
            }
        }
    };
    let timeout = Duration::from_millis(app.options.read_timeout_ms);
    let lines = LineStream::new(body, app.options.batch_line_bytes_max, timeout);
    let (window, room) = (app.options.pending_max, Room::new(app.options.body_bytes_max));
    let batch = Arc::new(Batch { app, key, domain, reserved });
    let results = lines
        .into_stream()
        .then(move |line| room.clone().hold(line))
        .map(move |(line, held)| process(batch.clone(), line, held))
        .buffered(window)
        .ready_chunks(CHUNK_LINES)
        .map(|chunk| Ok::<Bytes, Infallible>(chunk.concat().into()));
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(results)).into_response())
}

/// Bounds what the lines of a request hold that are under way: as much as the body of any other request may.
#[derive(Clone)]
struct Room {
    bytes: Arc<Semaphore>,
    bytes_max: usize,
}

impl Room {
    fn new(bytes_max: usize) -> Room {
        Room { bytes: Arc::new(Semaphore::new(bytes_max)), bytes_max }
    }

    /// Waits until there is room for a line. It is given back when what comes with the line is dropped.
    async fn hold(self, line: Line) -> (Line, OwnedSemaphorePermit) {
        let bytes = line.text.as_ref().map_or(0, Bytes::len).min(self.bytes_max);
        let held = self.bytes.acquire_many_owned(bytes as u32).await;
        (line, held.expect("nobody closes it"))
    }
}

/// The result of a line. `_held` is the room it takes until then.
async fn process(batch: Arc<Batch>, line: Line, _held: OwnedSemaphorePermit) -> Vec<u8> {
    let number = line.number;
    let result = send_line(&batch, line).await;
    let out = match result {
        Ok(result) => BatchLine { line: number, result: Some(result), problem: None },
        Err(problem) => BatchLine { line: number, result: None, problem: Some(LineProblem::of(&problem)) },
    };
    let mut text = serde_json::to_vec(&out).expect("a result is strings and numbers");
    text.push(b'\n');
    text
}

async fn send_line(batch: &Batch, line: Line) -> Result<SendResult, Problem> {
    let body: NotificationBody = parse(&line.text?)?;
    let Targets::One(to) = &body.to else {
        return Err(Problem::new(Code::WrongType, "a line of a batch has one target").at("/to"));
    };
    let target = target(&batch.app, &batch.key, to, &batch.domain).map_err(|p| p.at("/to"))?;
    let (at, ids) = match &batch.reserved {
        Some(reserved) => (reserved.since, &reserved.ids),
        None => (now(), &Ids::Random),
    };
    let draft = body.draft(&batch.app, at)?;
    for _ in 0..TRIES {
        match submit(&batch.app, &body, &draft, target.clone(), ids, line.number).await {
            // Too much waits at the shard: this line waits here, and the sender with it.
            Err(problem) if problem.code() == Code::Unavailable => tokio::time::sleep(PAUSE).await,
            result => return result,
        }
    }
    submit(&batch.app, &body, &draft, target, ids, line.number).await
}

impl LineProblem {
    fn of(problem: &Problem) -> LineProblem {
        LineProblem {
            code: problem.code().as_str(),
            detail: problem.detail().to_owned(),
            pointer: problem.pointer().map(str::to_owned),
        }
    }
}

/// How often, and after how long, a line is offered again to a shard that has too much to do.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);
/// Results that travel together when they are ready together.
const CHUNK_LINES: usize = 512;
