//! How many requests per second the keys of a domain may make together (`requests_per_second` of its policy). Keys of the whole node are the
//! operator's, and not counted.

use crate::app::App;
use crate::problem::{Code, Problem};
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use carillon_core::model::{ApiKey, DomainId};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What each domain with a quota has used of it: when its requests so far, at the pace of the quota, are worked off.
#[derive(Default)]
pub(crate) struct Quotas(Mutex<HashMap<DomainId, Instant>>);

/// What is left of a quota after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    per_second: u32,
    /// Requests that may follow at once; none where this one was too many.
    requests: Option<u32>,
    /// Until the whole quota is there again; of a request that was too many, until it may be repeated.
    after: Duration,
}

/// As many requests as this is worth may come at once.
const BURST: Duration = Duration::from_secs(1);

tokio::task_local! {
    /// What is left of the quota that the request being answered counts towards.
    static LEFT: Cell<Option<Left>>;
}

impl App {
    /// What domains have used of their quotas of requests.
    pub(crate) fn quotas(&self) -> &Quotas {
        self.part()
    }
}

impl Quotas {
    /// Counts a request of this domain.
    fn take(&self, domain: DomainId, per_second: u32, now: Instant) -> Left {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let each = BURST / per_second.max(1);
        let until = used.entry(domain).or_insert(now);
        let waiting = until.saturating_duration_since(now);
        let Some(free) = BURST.checked_sub(waiting + each) else {
            return Left { per_second, requests: None, after: waiting + each - BURST };
        };
        *until = now + waiting + each;
        let requests = free.as_nanos() / each.as_nanos().max(1);
        Left {
            per_second,
            requests: Some(u32::try_from(requests).unwrap_or(u32::MAX)),
            after: waiting + each,
        }
    }

    /// Forgets a domain that was removed.
    pub(crate) fn forget(&self, domain: DomainId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&domain);
    }
}

/// Counts a request by this key towards the quota of its domain, or refuses it.
pub(super) fn charge(app: &App, key: &ApiKey) -> Result<(), Problem> {
    key.domain.map_or(Ok(()), |domain| charge_domain(app, domain))
}

/// Counts a request towards the quota of this domain, or refuses it.
pub(crate) fn charge_domain(app: &App, domain: DomainId) -> Result<(), Problem> {
    let per_second =
        app.node.domains().numbered(domain).map_or(0, |domain| domain.policy.requests_per_second);
    if per_second == 0 {
        return Ok(());
    }
    let left = app.quotas().take(domain, per_second, Instant::now());
    // Whoever is asked without the routes' middleware, as a form of the links' page is, is not told.
    let _ = LEFT.try_with(|cell| cell.set(Some(left)));
    if left.requests.is_some() {
        return Ok(());
    }
    let detail = format!("the keys of the domain make at most {per_second} requests per second together");
    Err(Problem::new(Code::TooManyRequests, detail).retry_after(left.seconds()))
}

impl Left {
    /// Whole seconds, as headers have them.
    fn seconds(self) -> u32 {
        u32::try_from(self.after.as_millis().div_ceil(1000)).unwrap_or(u32::MAX)
    }
}

/// Tells in the headers of the response what is left of a quota (draft-ietf-httpapi-ratelimit-headers).
pub(crate) async fn tell(request: Request, next: Next) -> Response {
    let answering = async {
        let response = next.run(request).await;
        (response, LEFT.with(Cell::get))
    };
    let (mut response, left) = LEFT.scope(Cell::new(None), answering).await;
    if let Some(left) = left {
        let (limit, remaining) = (left.per_second, left.requests.unwrap_or(0));
        let values = [
            ("ratelimit-policy", format!("\"domain\";q={limit};w={}", BURST.as_secs())),
            ("ratelimit", format!("\"domain\";r={remaining};t={}", left.seconds())),
        ];
        for (name, value) in values {
            let value = HeaderValue::from_str(&value).expect("a word and numbers are ASCII");
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: DomainId = DomainId(1);

    #[test]
    fn as_many_come_at_once_as_in_a_second_and_then_one_after_the_other() {
        let (quotas, now) = (Quotas::default(), Instant::now());
        let left: Vec<_> = (0..5).map(|_| quotas.take(HERE, 4, now).requests).collect();
        assert_eq!(left, [Some(3), Some(2), Some(1), Some(0), None]);
        let refused = quotas.take(HERE, 4, now);
        assert_eq!((refused.after, refused.seconds()), (Duration::from_millis(250), 1));
        assert_eq!(quotas.take(DomainId(2), 4, now).requests, Some(3), "of another domain");
        let later = now + Duration::from_millis(250);
        assert_eq!(quotas.take(HERE, 4, later).requests, Some(0));
        assert_eq!(quotas.take(HERE, 4, later).requests, None);
        assert_eq!(quotas.take(HERE, 4, later + BURST).requests, Some(3), "what was refused is not counted");
        quotas.forget(HERE);
        assert_eq!(quotas.take(HERE, 4, later + BURST).requests, Some(3));
    }
}
