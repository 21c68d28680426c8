//! Requests counted by route, method and status, and timed by route and method, for `/metrics`.

use crate::app::App;
use crate::request_id;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use carillon_core::model::Durations;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Requests counted. Its size is bounded by the routes, methods and statuses there are.
#[derive(Default)]
pub(crate) struct Requests(Mutex<BTreeMap<Endpoint, Answered>>);

/// What requests are counted by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Endpoint {
    /// The route's pattern; empty where none matched.
    pub(crate) route: String,
    /// The method; `OTHER` for one that HTTP does not define.
    pub(crate) method: &'static str,
}

/// The requests that an endpoint answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answered {
    /// Number of requests by status.
    pub(crate) by_status: BTreeMap<u16, u64>,
    /// How long each took until its response began.
    pub(crate) took: Durations,
}

/// Counts and times a request when its response begins.
pub(crate) async fn count(
    State(app): State<App>,
    route: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let method = method_name(request.method());
    let began = Instant::now();
    let response = next.run(request).await;
    let route = route.map_or_else(String::new, |path| path.as_str().to_owned());
    app.requests().add(Endpoint { route, method }, response.status(), began.elapsed());
    if response.status() == StatusCode::INTERNAL_SERVER_ERROR {
        tracing::error!(method, request_id = request_id::current().as_deref(), "a request failed");
    }
    response
}

impl App {
    /// Requests counted by route and status.
    pub(crate) fn requests(&self) -> &Requests {
        self.part()
    }
}

impl Requests {
    /// What was counted so far.
    pub(crate) fn answered(&self) -> BTreeMap<Endpoint, Answered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn add(&self, endpoint: Endpoint, status: StatusCode, took: Duration) {
        let mut endpoints = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let answered = endpoints.entry(endpoint).or_default();
        *answered.by_status.entry(status.as_u16()).or_default() += 1;
        answered.took.record(took);
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
