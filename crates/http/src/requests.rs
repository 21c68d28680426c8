//! Requests counted by route, method and status, for `/metrics`.

use crate::app::App;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Requests counted. Its size is bounded by the routes, methods and statuses there are.
#[derive(Default)]
pub(crate) struct Requests(Mutex<BTreeMap<Kind, u64>>);

/// What requests are counted by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    /// The route's pattern; empty where none matched.
    pub(crate) route: String,
    /// The method; `OTHER` for one that HTTP does not define.
    pub(crate) method: &'static str,
    /// The status.
    pub(crate) status: u16,
}

/// Counts a request when its response begins.
pub(crate) async fn count(
    State(app): State<App>,
    route: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let method = method_name(request.method());
    let response = next.run(request).await;
    let route = route.map_or_else(String::new, |path| path.as_str().to_owned());
    app.requests.add(Kind { route, method, status: response.status().as_u16() });
    if response.status() == StatusCode::INTERNAL_SERVER_ERROR {
        tracing::error!(method, "a request failed");
    }
    response
}

impl Requests {
    /// What was counted so far.
    pub(crate) fn counts(&self) -> BTreeMap<Kind, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, kind: Kind) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default() += 1;
    }
}

fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::PATCH => "PATCH",
        Method::OPTIONS => "OPTIONS",
        _ => "OTHER",
    }
}
