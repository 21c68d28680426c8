//! The rest of a request's body that its handler did not read. Refusals come before the body does: of a key that is unknown, of a quota that
//! is used up, of a route that is not there.
//!
//! hyper ends the connection of a request whose body is dropped before its end. Here the rest of a small one is read and discarded, behind the
//! answer, and the connection serves its next request. Where more is to come than that, or it comes too late, the connection ends after the
//! answer, and [`Lingering`](super::linger::Lingering) sees to it that the answer arrives.

use axum::body::HttpBody;
use axum::http::{HeaderValue, Request, Response, header};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};
use tower_service::Service;

/// Serves the requests of one connection of HTTP/1.1, and reads what is left of their bodies. A connection of HTTP/2 needs none of this: a
/// stream ends alone.
#[derive(Clone)]
pub(super) struct ReadsRest<S> {
    service: S,
    /// How long a body may take, from the head of its request on.
    patience: Duration,
    gave_up: GaveUp,
}

/// Whether a body of this connection was not read to its end, so that bytes may come that nobody reads.
#[derive(Clone, Default)]
pub(super) struct GaveUp(Arc<AtomicBool>);

/// A body whose rest is read when it is dropped.
pub(super) struct Body<B: Incoming> {
    /// `None` once it has ended.
    body: Option<B>,
    /// The client sends it only when it is asked to (RFC 9110 §10.1.1), which happens with the first read.
    is_held_back: bool,
    until: Instant,
    gave_up: GaveUp,
}

/// An answer, which says if the connection ends with it.
pub(super) struct Answer<F> {
    answer: F,
    gave_up: GaveUp,
}

/// What comes from a connection as the body of a request.
pub(super) trait Incoming: HttpBody<Data = Bytes> + Send + Unpin + 'static {}

impl<B: HttpBody<Data = Bytes> + Send + Unpin + 'static> Incoming for B {}

/// Bytes that are read of a body after its request was answered.
pub(super) const REST_BYTES_MAX: u64 = 64 * 1024;

impl<S> ReadsRest<S> {
    /// Around what serves a connection.
    pub(super) fn new(service: S, patience: Duration, gave_up: GaveUp) -> ReadsRest<S> {
        ReadsRest { service, patience, gave_up }
    }
}

impl GaveUp {
    /// Whether it was.
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<S, B, R> Service<Request<B>> for ReadsRest<S>
where
    S: Service<Request<Body<B>>, Response = Response<R>>,
    S::Future: Unpin,
    B: Incoming,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Answer<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let is_held_back = request.headers().contains_key(header::EXPECT);
        let (until, gave_up) = (Instant::now() + self.patience, self.gave_up.clone());
        let request = request.map(|body| Body { body: Some(body), is_held_back, until, gave_up });
        Answer { answer: self.service.call(request), gave_up: self.gave_up.clone() }
    }
}

impl<F, R, E> Future for Answer<F>
where
    F: Future<Output = Result<Response<R>, E>> + Unpin,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.answer).poll(cx).map_ok(|mut response| {
            if self.gave_up.is_set() {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            response
        })
    }
}

impl<B: Incoming> HttpBody for Body<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        self.is_held_back = false;
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = Pin::new(body).poll_frame(cx);
        if let Poll::Ready(None | Some(Err(_))) = frame {
            self.body = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl<B: Incoming> Drop for Body<B> {
    fn drop(&mut self) {
        let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) else { return };
        let is_awaited =
            !self.is_held_back && body.size_hint().lower() <= REST_BYTES_MAX && Instant::now() < self.until;
        match Handle::try_current() {
            Ok(runtime) if is_awaited => {
                runtime.spawn(discard(body, self.until, self.gave_up.clone()));
            }
            // Before `body` is dropped, which ends the connection.
            _ => self.gave_up.set(),
        }
    }
}

/// Reads what is left of a body.
async fn discard(mut body: impl Incoming, until: Instant, gave_up: GaveUp) {
    let rest = async {
        let mut left = REST_BYTES_MAX;
        while let Some(Ok(frame)) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            left = left.checked_sub(frame.data_ref().map_or(0, Bytes::len) as u64)?;
        }
        Some(())
    };
    if !matches!(timeout_at(until, rest).await, Ok(Some(()))) {
        // Before `body` is dropped, which ends the connection.
        gave_up.set();
    }
}
