//! Receipts as they happen, as Server-Sent Events.

use super::notifications::{NotificationView, state_word};
use crate::app::App;
use crate::auth::{Granted, Send};
use crate::extract::Params;
use crate::problem::{Code, Problem};
use crate::schema;
use axum::extract::State;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use carillon_core::command::Event;
use carillon_core::model::{DomainId, KeyId, Trace};
use carillon_server::node::Node;
use futures_util::stream::{self, Stream};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Where receipts come out: one feed a domain that is watched, one for all, shared by their streams.
pub(crate) struct Feeds {
    open: Mutex<HashMap<Option<DomainId>, Arc<Feed>>>,
    streams: Arc<Semaphore>,
    events_max: usize,
}

type Feed = broadcast::Sender<Arc<Trace>>;

impl Feeds {
    /// Feeds for at most `streams_max` streams, each of which may be `events_max` events behind.
    pub(crate) fn new(events_max: usize, streams_max: usize) -> Feeds {
        Feeds { open: Mutex::default(), streams: Arc::new(Semaphore::new(streams_max)), events_max }
    }

    /// The receipts of a domain, or of all, from now on.
    fn subscribe(&self, node: &Node, domain: Option<DomainId>) -> broadcast::Receiver<Arc<Trace>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = open.get(&domain) {
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
        open.insert(domain, feed);
        node.watch(domain, Box::new(move |event| weak.upgrade().is_some_and(|feed| publish(&feed, event))));
        receipts
    }

    /// Ends the feed of a domain that is gone.
    pub(crate) fn forget(&self, domain: DomainId) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&Some(domain));
    }
}

/// Whether anyone listens still. Never blocks: a stream that is too far behind loses the oldest events, and is told how
/// many.
fn publish(feed: &Feed, event: &Event) -> bool {
    let Event::Notification { trace, .. } = event;
    feed.receiver_count() > 0 && feed.send(Arc::new(Trace::clone(trace))).is_ok()
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
    get, path = "/v1/events", tag = "notifications",
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
) -> Result<Sse<impl Stream<Item = Result<Frame, Infallible>>>, Problem> {
    let states = query.state.as_deref().map(read_states).transpose()?;
    let domain = match (query.domain.as_deref(), key.key.domain) {
        (None, own) => own,
        (Some(name), _) => Some(key.reach(&app, name)?.id),
    };
    let permit = app.feeds.streams.clone().try_acquire_owned().map_err(|_| {
        Problem::new(Code::TooManyStreams, "as many event streams are open as this node serves")
            .retry_after(10)
    })?;
    let reader = Reader {
        traces: app.feeds.subscribe(&app.node, domain),
        states,
        key: key.key.id,
        deletions: app.keys.deletions(),
        closing: app.closing.subscribe(),
        _permit: permit,
    };
    let frames = stream::unfold(reader, |mut reader| async move {
        let frame = reader.next().await?;
        Some((Ok(frame), reader))
    });
    Ok(Sse::new(frames).keep_alive(KeepAlive::new().interval(KEEP_ALIVE).text("still here")))
}

/// One open stream.
struct Reader {
    traces: broadcast::Receiver<Arc<Trace>>,
    states: Option<Vec<&'static str>>,
    key: KeyId,
    deletions: broadcast::Receiver<KeyId>,
    closing: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
}

impl Reader {
    /// The next frame; none when the node closes, the key is deleted or the domain is gone.
    async fn next(&mut self) -> Option<Frame> {
        let Reader { traces, states, key, deletions, closing, .. } = self;
        loop {
            tokio::select! {
                trace = traces.recv() => match trace {
                    Ok(trace) if wants(states.as_deref(), &trace) => return frame(&trace),
                    Ok(_) => {}
                    Err(RecvError::Lagged(count)) => {
                        return Some(Frame::default().event("lagged").data(format!("{{\"count\":{count}}}")));
                    }
                    Err(RecvError::Closed) => return None,
                },
                deleted = deletions.recv() => match deleted {
                    Ok(deleted) if deleted != *key => {}
                    // Its own key; or it lost count of the deletions, and ends rather than outlive its key.
                    _ => return None,
                },
                _ = closing.wait_for(|closing| *closing) => return None,
            }
        }
    }
}

fn wants(states: Option<&[&'static str]>, trace: &Trace) -> bool {
    states.is_none_or(|states| states.contains(&state_word(trace.state)))
}

fn frame(trace: &Trace) -> Option<Frame> {
    Frame::default().event("notification").json_data(NotificationView::from(trace)).ok()
}

fn read_states(text: &str) -> Result<Vec<&'static str>, Problem> {
    let words = schema::NotificationState::WORDS;
    text.split(',')
        .map(|word| words.iter().copied().find(|known| *known == word))
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| {
            Problem::new(Code::InvalidParameter, format!("`state` is one or more of {}", words.join(",")))
        })
}

const KEEP_ALIVE: Duration = Duration::from_secs(15);
