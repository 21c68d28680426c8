//! A name for each request: in the response's header, in its problem, and in the log.

use crate::random;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use std::sync::Arc;
use std::time::SystemTime;

/// The header, of requests and of responses.
const HEADER: HeaderName = HeaderName::from_static("x-request-id");

tokio::task_local! {
    static CURRENT: Current;
}

/// The request that is being answered.
#[derive(Clone)]
struct Current {
    id: Arc<str>,
    taken_at: SystemTime,
}

/// The id of the request that is being answered; none outside of one.
pub(crate) fn current() -> Option<Arc<str>> {
    CURRENT.try_with(|current| Arc::clone(&current.id)).ok()
}

/// When the request that is being answered was taken, before its body was read.
pub(crate) fn taken_at() -> Option<SystemTime> {
    CURRENT.try_with(|current| current.taken_at).ok()
}

/// `work` as a part of the request that is being answered, also where it goes on in a task of its own.
pub(crate) fn kept<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let current = CURRENT.try_with(Current::clone).ok();
    async move {
        match current {
            Some(current) => CURRENT.scope(current, work).await,
            None => work.await,
        }
    }
}

/// Gives the request the id that it came with, or a new one, and the response the same.
pub(crate) async fn tag(request: Request, next: Next) -> Response {
    let id: Arc<str> = taken(&request).unwrap_or_else(made);
    let current = Current { id: Arc::clone(&id), taken_at: SystemTime::now() };
    let mut response = CURRENT.scope(current, next.run(request)).await;
    let value = HeaderValue::from_str(&id).expect("it is printable ASCII");
    response.headers_mut().insert(HEADER, value);
    response
}

/// The id that a request came with, if it is one: 1 to 128 printable ASCII characters, no space.
fn taken(request: &Request) -> Option<Arc<str>> {
    let text = request.headers().get(HEADER)?.to_str().ok()?;
    let is_good = (1..=128).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_graphic());
    is_good.then(|| text.into())
}

fn made() -> Arc<str> {
    format!("{:016x}{:016x}", random::number(), random::number()).into()
}
