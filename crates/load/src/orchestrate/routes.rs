//! What the orchestrator answers over HTTP.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, Request as HttpRequest, State as Shared};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::id::new_id;
use super::problem::Problem;
use super::request::{PlannedTest, Request};
use super::runner::unix_ns;
use super::state::SharedState;
use crate::control::{ClockReading, NumberedOrder, Progress, Registration, RegistrationAccepted};
use crate::report::Report;

/// How long a request for orders is held open.
const ORDERS_WAIT: Duration = Duration::from_secs(20);
/// How long a request for a report may wait for its end.
const REPORT_WAIT_MAX: Duration = Duration::from_secs(300);
/// The largest body taken: scenarios are small, progress has a few digests.
const BODY_BYTES_MAX: usize = 16 << 20;

/// What all handlers share.
#[derive(Clone, Debug)]
pub(super) struct App {
    pub(super) shared: Arc<SharedState>,
    pub(super) key: Option<Arc<str>>,
    pub(super) sessions_command: Option<Arc<str>>,
    pub(super) boot_id: Arc<str>,
}

/// All routes.
pub(super) fn routes(app: App) -> Router {
    Router::new()
        .route("/v1/clock", get(clock))
        .route("/v1/workers", post(register))
        .route("/v1/workers/{id}/orders", get(orders))
        .route("/v1/workers/{id}/progress", post(progress))
        .route("/loadtests", post(submit).get(list))
        .route("/loadtests/{id}", get(report).delete(abort))
        .route("/loadtests/{id}/report.html", get(page))
        .fallback(|| async { Problem::missing("No route has this path.") })
        .layer(middleware::from_fn_with_state(app.clone(), check_key))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(app)
}

async fn check_key(Shared(app): Shared<App>, request: HttpRequest, next: Next) -> Response {
    let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.strip_prefix("Bearer "));
    match &app.key {
        Some(key) if !given.is_some_and(|given| is_same(given, key)) => Problem::key().into_response(),
        _ => next.run(request).await,
    }
}

/// Compares without telling by its duration where the difference is.
fn is_same(given: &str, key: &str) -> bool {
    let difference = given.bytes().zip(key.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == key.len() && difference == 0
}

async fn clock(Shared(app): Shared<App>) -> Json<ClockReading> {
    Json(ClockReading { unix_ns: unix_ns(SystemTime::now()), boot_id: app.boot_id.to_string() })
}

async fn register(Shared(app): Shared<App>, body: Bytes) -> Result<Response, Problem> {
    let registration: Registration = read(&body)?;
    let id = app.shared.lock().workers.register(registration);
    app.shared.notify();
    let id = id.ok_or_else(|| Problem::full("The orchestrator has its maximum number of workers."))?;
    Ok((StatusCode::CREATED, Json(RegistrationAccepted { id })).into_response())
}

#[derive(Deserialize)]
struct After {
    #[serde(default)]
    after: u64,
}

async fn orders(
    Shared(app): Shared<App>,
    Path(id): Path<u32>,
    Query(After { after }): Query<After>,
) -> Result<Json<Vec<NumberedOrder>>, Problem> {
    let deadline = tokio::time::Instant::now() + ORDERS_WAIT;
    loop {
        let (orders, new_orders) = app.shared.lock().workers.orders(id, after).ok_or_else(no_worker)?;
        // Registers before it checks again: no notification in between is missed.
        let notified = new_orders.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        if !orders.is_empty() {
            return Ok(Json(orders));
        }
        let (orders, _) = app.shared.lock().workers.orders(id, after).ok_or_else(no_worker)?;
        if !orders.is_empty() || tokio::time::timeout_at(deadline, notified).await.is_err() {
            return Ok(Json(orders));
        }
    }
}

async fn progress(Shared(app): Shared<App>, Path(id): Path<u32>, body: Bytes) -> Result<StatusCode, Problem> {
    let progress: Progress = read(&body)?;
    {
        let mut state = app.shared.lock();
        if !state.workers.heard(id) {
            return Err(no_worker());
        }
        if let Some((_, current)) = state.running.as_mut().filter(|(test, _)| *test == progress.test) {
            current.take(id, &progress);
        }
    }
    app.shared.notify();
    Ok(StatusCode::NO_CONTENT)
}

async fn submit(Shared(app): Shared<App>, body: Bytes) -> Result<Response, Problem> {
    let request: Request = read(&body)?;
    let command = app.sessions_command.clone();
    // Who may submit a test over HTTP may not run commands here.
    let planned = tokio::task::spawn_blocking(move || PlannedTest::new(request, command.as_deref(), None));
    let planned = planned.await.map_err(|error| Problem::request(error.to_string()))?;
    let planned = planned.map_err(|error| Problem::request(error.to_string()))?;
    let id = new_id().map_err(Problem::request)?;
    if !app.shared.lock().submit(id.clone(), planned) {
        return Err(Problem::full("One test runs at a time, and the queue is full."));
    }
    app.shared.notify();
    let location = format!("/loadtests/{id}");
    let body = json!({ "loadTestId": id, "status": "queued" });
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(body)).into_response())
}

async fn list(Shared(app): Shared<App>) -> Json<Value> {
    let tests = app.shared.lock().list();
    let tests = tests.into_iter();
    let tests = tests
        .map(|(id, status, scenario)| json!({ "loadTestId": id, "status": status, "scenario": scenario }));
    Json(json!({ "loadTests": tests.collect::<Vec<_>>() }))
}

#[derive(Deserialize)]
struct Wait {
    #[serde(default)]
    wait: f64,
}

async fn report(
    Shared(app): Shared<App>,
    Path(id): Path<String>,
    Query(Wait { wait }): Query<Wait>,
) -> Result<Json<Report>, Problem> {
    let wait = Duration::try_from_secs_f64(wait).unwrap_or_default().min(REPORT_WAIT_MAX);
    let deadline = Instant::now() + wait;
    loop {
        let changed = app.shared.next_change();
        tokio::pin!(changed);
        changed.as_mut().enable();
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || app.shared.lock().is_over(&id) {
            break;
        }
        let _ = tokio::time::timeout(left, changed).await;
    }
    find(&app, &id).map(|report| Json((*report).clone()))
}

async fn page(Shared(app): Shared<App>, Path(id): Path<String>) -> Result<Html<String>, Problem> {
    find(&app, &id).map(|report| Html(report.html()))
}

async fn abort(Shared(app): Shared<App>, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    let known = app.shared.lock().abort(&id);
    app.shared.notify();
    if known { Ok(StatusCode::NO_CONTENT) } else { Err(no_test()) }
}

fn find(app: &App, id: &str) -> Result<Arc<Report>, Problem> {
    app.shared.lock().report(id).ok_or_else(no_test)
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| Problem::not_json(&error))
}

fn no_worker() -> Problem {
    Problem::missing("There is no worker with this number; register again.")
}

fn no_test() -> Problem {
    Problem::missing("There is no test with this id, or its report is no longer kept.")
}
