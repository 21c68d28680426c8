//! Receipts, as Server-Sent Events: the ends of stored notifications, which are events of the store and can be read again, and what is
//! told once, as it happens.

mod feeds;
mod stream;
mod tail;

pub(crate) use feeds::Feeds;
pub(crate) use tail::{Event, Tail, newest};

use super::notifications::{NotificationView, read_states};
use crate::app::App;
use crate::auth::{Granted, Send};
use crate::extract::Params;
use crate::problem::{Code, Problem};
use crate::schema;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use carillon_core::model::States;
use futures_util::stream::{self as futures, StreamExt};
use std::convert::Infallible;
use std::sync::Arc;
use stream::Reader;

impl App {
    /// Receipts on their way to event streams.
    pub(crate) fn feeds(&self) -> &Feeds {
        self.part()
    }

    /// The newest events of the store.
    pub(crate) fn tail(&self) -> &Arc<Tail> {
        self.part()
    }
}

/// Which receipts to stream.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// For a key of the whole node: only this domain's. All domains' by default.
    domain: Option<String>,
    /// Only these states, with commas between them.
    #[param(example = "acknowledged,expired")]
    state: Option<String>,
    /// Begins with the first event after this number; 0 for all that are kept. The header `Last-Event-ID` counts more. With neither,
    /// the stream begins now.
    after: Option<u64>,
}

/// Follow receipts
///
/// `text/event-stream`: an `event: notification` whenever a notification reaches a state, its data the same JSON as that
/// of `GET /v1/notifications/{id}`; comments keep the connection alive.
///
/// How a stored notification ended (`acknowledged`, `expired`, `replaced`, `cancelled`, `dropped`) is an event with an `id`, told after it is on
/// disk. Events are kept as long as traces, a million at most. A client that sends the last `id` that it saw as `Last-Event-ID` is given all
/// that came since, also after the node was restarted, and may be given some once more. If events were forgotten meanwhile, it gets
/// `event: gap` with `after` and `next`, the numbers between which they are missing. Other states, and ends of notifications that are not
/// stored, are told once, without `id`: a reader that is too slow for those gets `event: lagged` with the `count` of what it lost. No
/// reader slows the node.
#[utoipa::path(
    get, path = "/v1/events", operation_id = "followEvents", tag = "notifications",
    params(
        EventsQuery,
        ("Last-Event-ID" = Option<u64>, Header, description = "The number of the last event that was seen: the stream goes on after it"),
    ),
    responses(
        (status = 200, description = "Receipts as they happen", body = NotificationView, content_type = "text/event-stream"),
        schema::Problems
    )
)]
pub(crate) async fn events(
    key: Granted<Send>,
    State(app): State<App>,
    Params(query): Params<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let states = query.state.as_deref().map_or(Ok(States::ALL), read_states)?;
    let after = last_seen(&headers)?.or(query.after);
    let domain = match (query.domain.as_deref(), key.key.domain) {
        (None, own) => own.map(|own| (own, app.domain_name(own))),
        (Some(name), _) => Some(key.reach(&app, name)?).map(|domain| (domain.id, domain.name.clone())),
    };
    let permit = app.feeds().streams().ok_or_else(|| {
        Problem::new(Code::TooManyStreams, "the node serves as many event streams as it is allowed to")
            .retry_after(10)
    })?;
    let feed = app.feeds().subscribe(&app.node, (domain.as_ref().map(|(id, _)| *id), states));
    let tail = Tail::follow(&app);
    let newest = newest(&app).await.ok_or_else(Problem::busy)?;
    let reader = Reader {
        domain,
        states,
        feed,
        tail,
        after: after.unwrap_or(newest).min(newest),
        key: key.key.id,
        deletions: app.keys().deletions(),
        expires: key.key.expires,
        closing: app.closing.subscribe(),
        _permit: permit,
        app,
    };
    let mut opening = reader.opening();
    // A number that there never was is of another store.
    if let Some(after) = after.filter(|after| *after > newest) {
        stream::gap(&mut opening, after, newest + 1);
    }
    let opening = futures::iter([Ok::<Bytes, Infallible>(opening.into())]);
    let frames = futures::unfold(reader, |mut reader| async move {
        let frames = reader.next().await?;
        Some((Ok::<Bytes, Infallible>(frames), reader))
    });
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    Ok((headers, Body::from_stream(opening.chain(frames))).into_response())
}

/// The number of the last event that the client saw.
fn last_seen(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    let problem = || Problem::new(Code::InvalidHeader, "`Last-Event-ID` is the `id` of an event: a number");
    number.map(Some).ok_or_else(problem)
}
