//! Sending to one device or to many.

use super::body::{Draft, NotificationBody, ShortLinks};
use super::submit::{SendResult, Target, submit, target};
use super::targets::Targets;
use crate::app::App;
use crate::auth::{Granted, Send};
use crate::extract::{DomainQuery, JsonBody, Params};
use crate::links::Shortened;
use crate::problem::{Code, Problem};
use crate::provider::idempotency::{self, Answer, Identity, KeyDecision, Reserved};
use crate::values::schema;
use crate::values::time::now;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
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
/// To one device or to a list of devices. `202` says that the node has all of them: with audience `always`, on disk. With one
/// target, an error is the answer's status. With a list, each target has its own result, in the order of the request, with
/// `id` and `state` or with `error`; the status is `207` when at least one has an error, so that a sender who looks at
/// the status alone does not take a part for the whole.
#[utoipa::path(
    post, path = "/v1/notifications", operation_id = "sendNotification", tag = "notifications",
    params(
        DomainQuery,
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to send again for 24 hours: 1 to 255 printable ASCII characters"),
    ),
    request_body = NotificationBody,
    responses(
        (status = 202, description = "All are accepted", body = SendResponse,
            headers(("Idempotent-Replayed" = bool, description = "Given when the response is that of an earlier request"))),
        (status = 207, description = "A list of which at least one target was refused: see `error` in `results`", body = SendResponse,
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
    let identity = Identity::of_request(idempotency::header(&headers)?, &uri, &bytes);
    send_as(app, key, query.domain.as_deref(), body, identity).await.map(IntoResponse::into_response)
}

/// Sends a notification that came by HTTP, or as a message of a queue.
pub(crate) async fn send_as(
    app: App,
    key: Granted<Send>,
    domain: Option<&str>,
    body: NotificationBody,
    identity: Identity,
) -> Result<Answer, Problem> {
    let targets = targets(&app, &key, &body, domain)?;
    // Checked before the key is reserved: a request that cannot be done is not remembered.
    match body.draft(&app, key.key.id, identity.accepted()) {
        // Sent again, it may be after its time: what counts is when it was first accepted.
        Err(problem) if identity.is_known() && problem.pointer() == Some("/send_at") => {}
        checked => drop(checked?),
    }
    let links = short_links(&app, &key, &body, &targets).await?;
    let sender = key.key.id;
    idempotency::to_the_end(identity.is_reserved(), async move {
        let began = now();
        let reserved = match identity.begin(&app, sender).await? {
            KeyDecision::Go(reserved) => reserved,
            KeyDecision::Replay(replay) => return Ok(replay),
        };
        // Taken again at the first request's time, so that a request sent again decides the same.
        let draft = body.draft(&app, sender, reserved.since)?.with_links(links);
        let results = send_all(&app, &body, &draft, targets, &reserved).await;
        let known =
            results.iter().all(|result| result.as_ref().is_ok_and(|result| result.is_older_than(began)));
        respond(&body, results, reserved).await.map(|answer| Answer { known, ..answer })
    })
    .await
}

/// The link of the notifications to accounts of each domain among the targets: made once for all of them.
async fn short_links(
    app: &App,
    key: &Granted<Send>,
    body: &NotificationBody,
    targets: &[Result<Target, Refused>],
) -> Result<ShortLinks, Problem> {
    let mut links = ShortLinks::new();
    let Some(url) = &body.link else { return Ok(links) };
    for target in targets.iter().flatten() {
        if links.iter().all(|(domain, _)| *domain != target.domain) {
            let link = if body.dry_run {
                Shortened::rehearse(app, key, target.domain, url)?;
                continue;
            } else {
                Shortened::new(app, key, target.domain, url).await?
            };
            links.push((target.domain, link));
        }
    }
    Ok(links)
}

/// A target that was refused, as the request names it.
type Refused = (String, Problem);

/// Whom the request names, each with why it cannot be sent to.
fn targets(
    app: &App,
    key: &Granted<Send>,
    body: &NotificationBody,
    domain: Option<&str>,
) -> Result<Vec<Result<Target, Refused>>, Problem> {
    let domain = &key.domain(app, domain)?.name;
    let max = app.options.settings.targets_max;
    match &body.to {
        Targets::One(one) => Ok(vec![Ok(target(app, key, one, domain).map_err(|p| p.at("/to"))?)]),
        Targets::Many(many) if many.is_empty() => {
            Err(Problem::new(Code::InvalidValue, "`to` is an empty list: name at least one device").at("/to"))
        }
        Targets::Many(many) if many.len() > max => {
            let detail = format!("`to` names {} devices; a request may name {max}", many.len());
            Err(Problem::new(Code::TooManyTargets, detail).at("/to"))
        }
        Targets::Many(many) => {
            let read = |(i, one): (usize, &String)| {
                target(app, key, one, domain).map_err(|problem| (one.clone(), problem.at(format!("/to/{i}"))))
            };
            Ok(many.iter().enumerate().map(read).collect())
        }
    }
}

async fn send_all(
    app: &App,
    body: &NotificationBody,
    draft: &Draft,
    targets: Vec<Result<Target, Refused>>,
    reserved: &Reserved,
) -> Vec<Result<SendResult, Refused>> {
    let one = |(index, target): (usize, Result<Target, Refused>)| async move {
        let target = target?;
        let result = submit(app, body, draft, target.clone(), &reserved.ids, index as u64).await;
        result.map_err(|problem| (target.jid.as_str().to_owned(), problem))
    };
    stream::iter(targets.into_iter().enumerate())
        .map(one)
        .buffered(app.options.settings.pending_max)
        .collect()
        .await
}

async fn respond(
    body: &NotificationBody,
    mut results: Vec<Result<SendResult, Refused>>,
    reserved: Reserved,
) -> Result<Answer, Problem> {
    let single = matches!(body.to, Targets::One(_));
    if single && let Some(Err((_, problem))) = results.pop_if(|result| result.is_err()) {
        return Err(reserved.refuse(problem).await);
    }
    let problems = || results.iter().filter_map(|result| result.as_ref().err().map(|(_, problem)| problem));
    // What the node could not do now is left open: the request sent again does that part, and names the same
    // notifications for the rest.
    let open = problems().find(|problem| problem.status().is_server_error()).cloned();
    let refused = open.clone().or_else(|| problems().next().cloned());
    let status = if refused.is_some() { StatusCode::MULTI_STATUS } else { StatusCode::ACCEPTED };
    let results = results
        .into_iter()
        .map(|result| result.unwrap_or_else(|(to, problem)| SendResult::refused(to, problem)))
        .collect();
    let response = SendResponse::of(results, single, body.dry_run);
    let text = serde_json::to_string(&response).map_err(|error| Problem::unexpected(&error))?;
    let answer = match open {
        None => reserved.answer(status, text).await,
        Some(_) => Answer::new(status, text),
    };
    Ok(Answer { refused, ..answer })
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
