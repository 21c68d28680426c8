//! Sending to one device or to many.

use super::body::{Draft, NotificationBody};
use super::idempotency::{self, Reserved, Turn};
use super::submit::{SendResult, Target, submit, target};
use super::targets::Targets;
use crate::app::App;
use crate::auth::{Granted, Send};
use crate::extract::{DomainQuery, JsonBody, Params};
use crate::problem::{Code, Problem};
use crate::schema;
use crate::time::now;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use carillon_core::model::{DropReason, NotificationState};
use futures_util::stream::{self, StreamExt};

/// What became of a request to send.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct SendResponse {
    /// What became of each target, in the order of the request.
    results: Vec<SendResult>,
    /// With one target: the same as in `results`.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    /// With one target: the notification's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// With one target: how far it has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::NotificationState>)]
    state: Option<NotificationState>,
    /// With one target: why it was dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::DropReason>)]
    reason: Option<DropReason>,
    /// Whether this was only a rehearsal.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
}

/// Send a notification
///
/// To one device or to many. `202` says that the node has it: with audience `always` it is on disk. One target that is
/// not there is a `404`; among many, each has its own result.
#[utoipa::path(
    post, path = "/v1/notifications", tag = "notifications",
    params(
        DomainQuery,
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to send again for 24 hours: 1 to 255 printable ASCII characters"),
    ),
    request_body = NotificationBody,
    responses(
        (status = 202, description = "Accepted", body = SendResponse,
            headers(("Idempotent-Replayed" = bool, description = "Given when the response is that of an earlier request"))),
        schema::Problems
    )
)]
pub(crate) async fn send(
    key: Granted<Send>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    uri: Uri,
    headers: HeaderMap,
    JsonBody { value: body, bytes, .. }: JsonBody<NotificationBody>,
) -> Result<Response, Problem> {
    let idempotency_key = idempotency::header(&headers)?;
    let targets = targets(&app, &key, &body, query.domain.as_deref())?;
    // Checked before the key is reserved: a request that cannot be done is not remembered.
    let at = now();
    body.draft(&app, key.key.id, at)?;
    let hash = idempotency::body_hash(&uri, &bytes);
    let reserved = match idempotency::reserve(&app, key.key.id, idempotency_key, hash, at).await? {
        Turn::Go(reserved) => reserved,
        Turn::Replay { status, response } => return Ok(replay(status, response)),
    };
    // Taken again at the first request's time, so that a request sent again decides the same.
    let draft = body.draft(&app, key.key.id, reserved.since)?;
    let results = send_all(&app, &body, &draft, targets, &reserved).await;
    respond(&app, &body, results, reserved).await
}

fn targets(
    app: &App,
    key: &Granted<Send>,
    body: &NotificationBody,
    domain: Option<&str>,
) -> Result<Vec<Target>, Problem> {
    let domain = &key.domain(app, domain)?.name;
    let max = app.options.targets_max;
    match &body.to {
        Targets::One(one) => Ok(vec![target(app, key, one, domain).map_err(|p| p.at("/to"))?]),
        Targets::Many(many) if (1..=max).contains(&many.len()) => many
            .iter()
            .enumerate()
            .map(|(i, one)| target(app, key, one, domain).map_err(|p| p.at(format!("/to/{i}"))))
            .collect(),
        Targets::Many(_) => {
            Err(Problem::new(Code::TooManyTargets, format!("one request names 1 to {max} targets")).at("/to"))
        }
    }
}

async fn send_all(
    app: &App,
    body: &NotificationBody,
    draft: &Draft,
    targets: Vec<Target>,
    reserved: &Reserved,
) -> Vec<Result<SendResult, (Target, Problem)>> {
    let one = |(index, target): (usize, Target)| async move {
        let result = submit(app, body, draft, target.clone(), &reserved.ids, index as u64).await;
        result.map_err(|problem| (target, problem))
    };
    stream::iter(targets.into_iter().enumerate()).map(one).buffered(app.options.pending_max).collect().await
}

async fn respond(
    app: &App,
    body: &NotificationBody,
    mut results: Vec<Result<SendResult, (Target, Problem)>>,
    reserved: Reserved,
) -> Result<Response, Problem> {
    let single = matches!(body.to, Targets::One(_));
    if single && let Some(Err((_, problem))) = results.pop_if(|result| result.is_err()) {
        if problem.status().is_client_error() {
            let text = serde_json::to_string(&problem).map_err(|error| Problem::unexpected(&error))?;
            reserved.remember(app, problem.status().as_u16(), &text).await;
        }
        return Err(problem);
    }
    // What the node could not do now is left open: the request sent again does that part, and names the same
    // notifications for the rest.
    let settled = results.iter().all(|r| !matches!(r, Err((_, p)) if p.status().is_server_error()));
    let results = results
        .into_iter()
        .map(|result| result.unwrap_or_else(|(target, problem)| SendResult::refused(&target.jid, &problem)))
        .collect();
    let response = SendResponse::of(results, single, body.dry_run);
    let text = serde_json::to_string(&response).map_err(|error| Problem::unexpected(&error))?;
    if settled {
        reserved.remember(app, StatusCode::ACCEPTED.as_u16(), &text).await;
    }
    Ok((StatusCode::ACCEPTED, [(header::CONTENT_TYPE, "application/json")], text).into_response())
}

fn replay(status: u16, response: Box<str>) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::ACCEPTED);
    let kind = if status.is_success() { "application/json" } else { "application/problem+json" };
    let headers = [(header::CONTENT_TYPE.as_str(), kind), ("idempotent-replayed", "true")];
    (status, headers, response.into_string()).into_response()
}

impl SendResponse {
    fn of(results: Vec<SendResult>, single: bool, dry_run: bool) -> SendResponse {
        let one = results.first().filter(|_| single);
        SendResponse {
            to: one.map(|r| r.to.clone()),
            id: one.and_then(|r| r.id.clone()),
            state: one.and_then(|r| r.state),
            reason: one.and_then(|r| r.reason),
            results,
            dry_run,
        }
    }
}
