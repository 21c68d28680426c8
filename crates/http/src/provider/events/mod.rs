//! Events, as Server-Sent Events: the ends of stored notifications and what happens to rooms, which are events of the store and can be read again, and
//! receipts that are told once, as they happen.

mod feeds;
mod room;
mod stream;
mod tail;

pub(crate) use feeds::Feeds;
pub(crate) use room::RoomEventView;
pub(crate) use tail::{Numbered, Tail, newest};

use super::notifications::{NotificationView, read_states};
use crate::app::App;
use crate::auth::{Granted, Send};
use crate::extract::Params;
use crate::problem::{Code, Problem};
use crate::values::schema;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use carillon_core::model::{EventFilter, EventType, EventTypes, Scope, States};
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

/// Which events to stream.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// For a key of the whole node: only this domain's. All domains' by default.
    domain: Option<String>,
    /// The types of events, with commas between them; `notification` by default. Those of rooms take scope `rooms`.
    #[serde(rename = "type")]
    #[param(example = "notification,room_message")]
    types: Option<String>,
    /// Of notifications, only these states, with commas between them.
    #[param(example = "acknowledged,expired")]
    state: Option<String>,
    /// Begins with the first event after this number; 0 for all that are kept. The header `Last-Event-ID` counts more. With neither,
    /// the stream begins now.
    after: Option<u64>,
}

/// Follow events
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
///
/// What happens to rooms is told to who asks for it by `type`, of domains whose policy `room_events` says so: an `event: room_created`,
/// `room_destroyed`, `room_members`, `room_subject`, `room_message` or `room_moderated`, whose data is a `RoomEventView`. Each has an `id` and was stored in
/// the commit of what it tells. The text of messages and subjects is in it for keys with scope `read_messages`.
#[utoipa::path(
    get, path = "/v1/events", operation_id = "followEvents", tag = "notifications",
    params(
        EventsQuery,
        ("Last-Event-ID" = Option<u64>, Header, description = "The number of the last event that was seen: the stream goes on after it"),
    ),
    responses(
        (status = 200, description = "Events as they happen", body = EventData, content_type = "text/event-stream"),
        schema::Problems
    )
)]
pub(crate) async fn events(
    key: Granted<Send>,
    State(app): State<App>,
    Params(query): Params<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let types = query.types.as_deref().map_or(Ok(EventTypes::NOTIFICATIONS), read_types)?;
    if types.has_rooms() {
        key.needs(Scope::Rooms)?;
    }
    let states = query.state.as_deref().map_or(Ok(States::ALL), read_states)?;
    // What is told once is of notifications.
    let told = if types.contains(EventType::Notification) { states } else { States::NONE };
    let after = last_seen(&headers)?.or(query.after);
    let domain = match (query.domain.as_deref(), key.key.domain) {
        (None, own) => own.map(|own| (own, app.domain_name(own))),
        (Some(name), _) => Some(key.reach(&app, name)?).map(|domain| (domain.id, domain.name.clone())),
    };
    let permit = app.feeds().streams().ok_or_else(|| {
        Problem::new(Code::TooManyStreams, "the node serves as many event streams as it is allowed to")
            .retry_after(10)
    })?;
    let feed = app.feeds().subscribe(&app.node, (domain.as_ref().map(|(id, _)| *id), told));
    let tail = Tail::follow(&app);
    let newest = newest(&app).await.ok_or_else(Problem::busy)?;
    let reader = Reader {
        domain,
        wanted: EventFilter { types, states },
        contents: key.needs(Scope::ReadMessages).is_ok(),
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

/// The data of an event: what a notification has come to, or what happened to a room.
#[derive(serde::Serialize, utoipa::ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) enum EventData {
    /// Of an `event: notification`.
    Notification(NotificationView),
    /// Of the events of rooms.
    Room(RoomEventView),
}

/// Types of events, with commas between them.
fn read_types(text: &str) -> Result<EventTypes, Problem> {
    let kind = |word: &str| EventType::ALL.into_iter().find(|kind| kind.as_str() == word);
    let all = text.split(',').try_fold(EventTypes::NONE, |all, word| Some(all.with(kind(word)?.into())));
    all.ok_or_else(|| {
        let words = schema::EventType::WORDS.join(",");
        Problem::new(Code::InvalidParameter, format!("`type` is one or more of {words}"))
    })
}

/// The number of the last event that the client saw.
fn last_seen(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    let problem = || Problem::new(Code::InvalidHeader, "`Last-Event-ID` is the `id` of an event: a number");
    number.map(Some).ok_or_else(problem)
}
