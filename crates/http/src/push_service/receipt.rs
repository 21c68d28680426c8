//! Receipts: whether the client has acknowledged a push (RFC 8030 §5.1, §6.3).
//!
//! The RFC has a push service promise to the sender, by server push of HTTP/2, the answers to requests that were made to the push's URL. Here the sender makes these
//! requests, which wait for their answers.

use super::headers;
use crate::app::App;
use crate::auth::quota;
use crate::extract::Named;
use crate::problem::{Code, Problem};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use carillon_core::command::{Command, Outcome, StateChange};
use carillon_core::model::{DomainId, NotificationId, NotificationState, States};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// What a link from a push to its receipt is (RFC 8030 §6.3).
const RELATION: &str = "urn:ietf:params:push:receipt";

/// Wait for the receipt of a push
///
/// By the push's URL, which is `Location` of the answer to it, and `Link` where the sender asked for a receipt. It waits for the client to acknowledge
/// the push: 30 seconds, or as many as `Prefer: wait=…` says, at most 60.
#[utoipa::path(
    get, path = "/push/messages/{token}", operation_id = "awaitReceipt", tag = "push",
    params(
        ("token" = String, Path, description = "The push's token"),
        ("Prefer" = Option<String>, Header, description = "`wait=` and seconds; 0 is answered at once"),
    ),
    responses(
        (status = 202, description = "The client has not acknowledged it yet: ask again"),
        (status = 204, description = "The client has acknowledged it"),
        (status = 410, description = "It has ended without that: it expired, was replaced or taken back, or there was no client for it"),
        crate::values::schema::Problems
    )
)]
pub(crate) async fn receipt(
    State(app): State<App>,
    Named(token): Named<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let missing = || Problem::new(Code::UnknownNotification, "there is no such push, or it is forgotten");
    let service = app.push_service();
    service.url.as_ref().ok_or_else(missing)?;
    let (domain, id) = service.key.read_message(&token).ok_or_else(missing)?;
    quota::charge_domain(&app, domain)?;
    let wait = headers::wait(&headers)?.unwrap_or(WAIT).min(WAIT_MAX);
    let place = service.receipts.place(&app, domain, id).ok_or_else(|| {
        Problem::new(Code::TooManyRequests, "too many senders wait for receipts").retry_after(FULL_S)
    })?;
    let (until, mut closing) = (Instant::now() + wait, app.closing.subscribe());
    loop {
        match state(&app, id).await?.ok_or_else(missing)? {
            NotificationState::Acknowledged | NotificationState::Opened => {
                return Ok(StatusCode::NO_CONTENT.into_response());
            }
            state if state.is_end() => {
                let detail = "the client has not acknowledged the push, and will not be given it any more";
                return Err(Problem::new(Code::PushGone, detail));
            }
            _ if until <= Instant::now() || *closing.borrow() => {
                return Ok((StatusCode::ACCEPTED, [(header::RETRY_AFTER, "0")]).into_response());
            }
            _ => {}
        }
        tokio::select! {
            () = place.ended.notified() => {}
            () = tokio::time::sleep_until(until.min(Instant::now() + LOOK_EVERY)) => {}
            _ = closing.wait_for(|closing| *closing) => {}
        }
    }
}

/// What the sender of a push is answered that wants a receipt, beside what others are.
pub(super) fn headers_of(url: &str) -> Option<[(HeaderName, HeaderValue); 2]> {
    let link = HeaderValue::from_str(&format!("<{url}>; rel=\"{RELATION}\"")).ok()?;
    let applied = HeaderValue::from_static("respond-async");
    Some([(header::LINK, link), (HeaderName::from_static("preference-applied"), applied)])
}

/// The state of a push, if it is known.
async fn state(app: &App, id: NotificationId) -> Result<Option<NotificationState>, Problem> {
    match app.command(Command::Trace { id }).await? {
        Outcome::Trace(trace) => Ok(Some(trace.state)),
        Outcome::Missing => Ok(None),
        other => Err(Problem::unexpected(&other)),
    }
}

/// Senders that wait for receipts at this node.
#[derive(Default)]
pub(super) struct Receipts(Arc<Mutex<ReceiptWaiters>>);

#[derive(Default)]
struct ReceiptWaiters {
    /// Whether the node tells of pushes that end.
    is_told: bool,
    /// Who waits for a push, by the number of the place.
    by_push: BTreeMap<(NotificationId, u64), Arc<Notify>>,
    by_domain: BTreeMap<DomainId, usize>,
    /// Places that were given.
    given: u64,
}

/// A place of one that waits, given up when it is dropped.
struct Place {
    waiting: Arc<Mutex<ReceiptWaiters>>,
    domain: DomainId,
    key: (NotificationId, u64),
    /// The push has ended.
    ended: Arc<Notify>,
}

impl Receipts {
    /// A place for one who waits for a push, if there is one.
    fn place(&self, app: &App, domain: DomainId, id: NotificationId) -> Option<Place> {
        let place = self.enter(domain, id)?;
        let is_first = !std::mem::replace(&mut lock(&self.0).is_told, true);
        if is_first {
            let waiting = Arc::downgrade(&self.0);
            let sink = move |change: &StateChange| {
                waiting.upgrade().is_some_and(|waiting| lock(&waiting).tell(change.trace.id))
            };
            app.node.watch(None, States::ENDS, Box::new(sink));
        }
        Some(place)
    }

    fn enter(&self, domain: DomainId, id: NotificationId) -> Option<Place> {
        let mut waiting = lock(&self.0);
        let of_domain = waiting.by_domain.get(&domain).copied().unwrap_or(0);
        let of_push = waiting.by_push.range((id, 0)..=(id, u64::MAX)).count();
        if waiting.by_push.len() >= ALL_MAX || of_domain >= OF_DOMAIN_MAX || of_push >= OF_PUSH_MAX {
            return None;
        }
        waiting.given += 1;
        let (key, ended) = ((id, waiting.given), Arc::new(Notify::new()));
        waiting.by_push.insert(key, ended.clone());
        waiting.by_domain.insert(domain, of_domain + 1);
        Some(Place { waiting: self.0.clone(), domain, key, ended })
    }
}

impl ReceiptWaiters {
    /// A push has ended. Whether to be told of others.
    fn tell(&mut self, id: NotificationId) -> bool {
        self.by_push.range((id, 0)..=(id, u64::MAX)).for_each(|(_, ended)| ended.notify_one());
        self.is_told = !self.by_push.is_empty();
        self.is_told
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiting = lock(&self.waiting);
        waiting.by_push.remove(&self.key);
        if let Some(count) = waiting.by_domain.get_mut(&self.domain) {
            *count -= 1;
            if *count == 0 {
                waiting.by_domain.remove(&self.domain);
            }
        }
    }
}

fn lock(waiting: &Mutex<ReceiptWaiters>) -> MutexGuard<'_, ReceiptWaiters> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long a request waits that does not say so, and at most.
const WAIT: Duration = Duration::from_secs(30);
const WAIT_MAX: Duration = Duration::from_secs(60);
/// How often it is looked though nothing was told: the push may have ended at another node.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Requests that wait at once: at this node, of a domain, and for one push.
const ALL_MAX: usize = 1024;
const OF_DOMAIN_MAX: usize = 256;
const OF_PUSH_MAX: usize = 4;
/// After how many seconds one may try again for which there was no place.
const FULL_S: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_wait_for_a_push_and_of_a_domain() {
        let receipts = Receipts::default();
        let (domain, other) = (DomainId(1), DomainId(2));
        let enter = |domain, id| receipts.enter(domain, NotificationId(id));
        let mut places: Vec<Place> = (0..OF_PUSH_MAX).filter_map(|_| enter(domain, 1)).collect();
        assert_eq!(places.len(), OF_PUSH_MAX);
        assert!(enter(domain, 1).is_none());
        places.extend((2..2000).filter_map(|id| enter(domain, id)));
        assert_eq!(places.len(), OF_DOMAIN_MAX);
        places.extend((2000..2010).filter_map(|id| enter(other, id)));
        assert_eq!(places.len(), OF_DOMAIN_MAX + 10, "another domain has room");
        // Whoever goes leaves nothing.
        drop(places);
        let waiting = lock(&receipts.0);
        assert!(waiting.by_push.is_empty() && waiting.by_domain.is_empty());
    }

    #[test]
    fn who_waits_for_a_push_is_told_and_others_are_not() {
        let receipts = Receipts::default();
        let enter = |id| receipts.enter(DomainId(1), NotificationId(id)).expect("a place");
        let (one, other) = (enter(1), enter(2));
        assert!(lock(&receipts.0).tell(NotificationId(1)));
        let is_told = |place: &Place| {
            let told = std::pin::pin!(place.ended.notified());
            told.poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_ready()
        };
        assert!(is_told(&one) && !is_told(&other));
        drop((one, other));
        assert!(!lock(&receipts.0).tell(NotificationId(1)), "nobody waits: nothing is to be told");
    }
}
