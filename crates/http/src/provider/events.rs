//! Receipts as they happen, as Server-Sent Events.

use super::notifications::NotificationView;
use crate::app::App;
use crate::auth::{Granted, Send};
use crate::extract::Params;
use crate::problem::{Code, Problem};
use crate::schema;
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use carillon_core::command::StateChange;
use carillon_core::model::{DomainId, KeyId, NotificationState, States, Trace};
use carillon_server::node::Node;
use futures_util::stream;
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Where receipts come out: one feed for each topic that is followed, shared by its streams.
pub(crate) struct Feeds {
    open: Mutex<HashMap<Topic, Arc<Feed>>>,
    streams: Arc<Semaphore>,
    events_max: usize,
}

type Feed = broadcast::Sender<Arc<Trace>>;

/// What a feed is about: the receipts of a domain, or of all, that reach one of these states.
type Topic = (Option<DomainId>, States);

impl Feeds {
    /// Feeds for at most `streams_max` streams, each of which may be `events_max` events behind.
    pub(crate) fn new(events_max: usize, streams_max: usize) -> Feeds {
        Feeds { open: Mutex::default(), streams: Arc::new(Semaphore::new(streams_max)), events_max }
    }

    /// The receipts of a topic from now on.
    fn subscribe(&self, node: &Node, topic: Topic) -> broadcast::Receiver<Arc<Trace>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = open.get(&topic) {
            let receipts = feed.subscribe();
            // Alone on the feed, this stream cannot tell whether the node has dropped its sink already.
            if feed.receiver_count() > 1 {
                return receipts;
            }
        }
        open.retain(|_, feed| feed.receiver_count() > 0);
        let (feed, receipts) = broadcast::channel(self.events_max);
        let feed = Arc::new(feed);
        let weak = Arc::downgrade(&feed);
        open.insert(topic, feed);
        let (domain, states) = topic;
        let sink = move |change: &StateChange| weak.upgrade().is_some_and(|feed| publish(&feed, change));
        node.watch(domain, states, Box::new(sink));
        receipts
    }

    /// Ends the feeds of a domain that is gone.
    pub(crate) fn forget(&self, domain: DomainId) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(of, _), _| *of != Some(domain));
    }
}

/// Whether anyone listens still. Never blocks: a stream that is too far behind loses the oldest events, and is told how
/// many.
fn publish(feed: &Feed, change: &StateChange) -> bool {
    feed.receiver_count() > 0 && feed.send(Arc::clone(&change.trace)).is_ok()
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
}

/// Follow receipts
///
/// `text/event-stream`: an `event: notification` whenever a notification reaches a state, its data the same JSON as that
/// of `GET /v1/notifications/{id}`; comments keep the connection alive. A reader that is too slow gets `event: lagged`
/// with the `count` of events it lost, and never slows the node.
#[utoipa::path(
    get, path = "/v1/events", operation_id = "followEvents", tag = "notifications",
    params(EventsQuery),
    responses(
        (status = 200, description = "Receipts as they happen", body = NotificationView, content_type = "text/event-stream"),
        schema::Problems
    )
)]
pub(crate) async fn events(
    key: Granted<Send>,
    State(app): State<App>,
    Params(query): Params<EventsQuery>,
) -> Result<Response, Problem> {
    let states = query.state.as_deref().map_or(Ok(States::ALL), read_states)?;
    let domain = match (query.domain.as_deref(), key.key.domain) {
        (None, own) => own,
        (Some(name), _) => Some(key.reach(&app, name)?.id),
    };
    let permit = app.feeds.streams.clone().try_acquire_owned().map_err(|_| {
        Problem::new(Code::TooManyStreams, "as many event streams are open as this node serves")
            .retry_after(10)
    })?;
    let reader = Reader {
        traces: app.feeds.subscribe(&app.node, (domain, states)),
        key: key.key.id,
        deletions: app.keys.deletions(),
        closing: app.closing.subscribe(),
        _permit: permit,
    };
    let frames = stream::unfold(reader, |mut reader| async move {
        let frames = reader.next().await?;
        Some((Ok::<Bytes, Infallible>(frames), reader))
    });
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    Ok((headers, Body::from_stream(frames)).into_response())
}

/// One open stream.
struct Reader {
    traces: broadcast::Receiver<Arc<Trace>>,
    key: KeyId,
    deletions: broadcast::Receiver<KeyId>,
    closing: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
}

impl Reader {
    /// The next frames, as many as are there; none when the node closes, the key is deleted or the domain is gone.
    async fn next(&mut self) -> Option<Bytes> {
        let Reader { traces, key, deletions, closing, .. } = self;
        loop {
            tokio::select! {
                trace = traces.recv() => {
                    let mut frames = Vec::new();
                    frame(&mut frames, &trace)?;
                    for _ in 1..FRAMES_MAX {
                        let trace = match traces.try_recv() {
                            Ok(trace) => Ok(trace),
                            Err(TryRecvError::Lagged(count)) => Err(RecvError::Lagged(count)),
                            // That nothing more will come is found out the next time.
                            Err(TryRecvError::Empty | TryRecvError::Closed) => break,
                        };
                        frame(&mut frames, &trace)?;
                    }
                    return Some(frames.into());
                },
                deleted = deletions.recv() => match deleted {
                    Ok(deleted) if deleted != *key => {}
                    // Its own key; or it lost count of the deletions, and ends rather than outlive its key.
                    _ => return None,
                },
                _ = closing.wait_for(|closing| *closing) => return None,
                () = tokio::time::sleep(KEEP_ALIVE) => return Some(Bytes::from_static(b": still here\n\n")),
            }
        }
    }
}

/// Appends what a feed says; none when it is at its end.
fn frame(frames: &mut Vec<u8>, said: &Result<Arc<Trace>, RecvError>) -> Option<()> {
    match said {
        Ok(trace) => {
            frames.extend_from_slice(b"event: notification\ndata: ");
            // JSON as it is written here has no line ends.
            serde_json::to_writer(&mut *frames, &NotificationView::from(&**trace)).ok()?;
        }
        Err(RecvError::Lagged(count)) => {
            let lagged = format!("event: lagged\ndata: {{\"count\":{count}}}");
            frames.extend_from_slice(lagged.as_bytes());
        }
        Err(RecvError::Closed) => return None,
    }
    frames.extend_from_slice(b"\n\n");
    Some(())
}

/// The states that a parameter names.
pub(crate) fn read_states(text: &str) -> Result<States, Problem> {
    let states = |word: &str| {
        let json = format!("\"{word}\"");
        serde_json::from_str::<NotificationState>(&json).map(States::from).ok()
    };
    text.split(',').map(states).try_fold(States::NONE, |all, one| Some(all.with(one?))).ok_or_else(|| {
        let words = schema::NotificationState::WORDS.join(",");
        Problem::new(Code::InvalidParameter, format!("`state` is one or more of {words}"))
    })
}

const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Frames that travel together when they are there together.
const FRAMES_MAX: usize = 256;
