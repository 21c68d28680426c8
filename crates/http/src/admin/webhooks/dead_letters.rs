//! Events that a webhook's receiver did not take: listed, sent again, removed.

use super::{find, unknown};
use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::{Named, Params, limit};
use crate::problem::{Code, Problem};
use crate::values::schema;
use crate::values::time::Time;
use crate::webhooks::Outcome;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_core::model::{DeadLetter, Scope, Webhook};
use carillon_core::ports::store::webhooks::{self, DeadLetters, DeleteDeadLetters};
use carillon_core::ports::{Page, Part};
use serde_json::value::RawValue;
use std::time::{Duration, Instant};

/// Which dead letters.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LettersQuery {
    /// Those of later events than this one.
    after: Option<u64>,
    /// How many at most, 1 to 1000; 100 by default.
    limit: Option<u16>,
}

/// An event that was not taken.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct LetterView {
    /// The number of the event.
    event: u64,
    /// When it was last tried.
    at: Time,
    /// Why it was not taken, for people.
    error: String,
    /// The event, as it stands in a request.
    #[schema(value_type = Object)]
    body: Box<RawValue>,
}

/// A page of dead letters.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct LetterList {
    /// In the order of their events.
    dead_letters: Vec<LetterView>,
    /// The value of `after` for the next page; none when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// What came of sending dead letters again.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct ResendView {
    /// Those that the receiver took; they are no dead letters any more.
    taken: u64,
    /// Those that are left.
    left: u64,
    /// Why the last one that was sent was not taken.
    error: Option<String>,
}

/// List dead letters
///
/// The events that the receiver refused or could not take in time, in the order of their numbers. Of a webhook that is told contents this takes scope
/// `read_messages`.
#[utoipa::path(
    get, path = "/v1/webhooks/{id}/dead-letters", operation_id = "listDeadLetters", tag = "webhooks",
    params(LettersQuery, ("id" = u32, Path, description = "The webhook's number")),
    responses((status = 200, description = "A page of them", body = LetterList), schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(id): Named<u32>,
    Params(query): Params<LettersQuery>,
) -> Result<Json<LetterList>, Problem> {
    let webhook = find(&app, &key, id).await?;
    if webhook.contents {
        key.needs(Scope::ReadMessages)?;
    }
    let page = Page { entries: limit(query.limit)?, bytes: PAGE_BYTES };
    let after = query.after.unwrap_or(0);
    let Part { entries, more } = app.ask(DeadLetters { webhook: webhook.id, after, page }).await?;
    let next = entries.last().filter(|_| more).map(|last| last.event.to_string());
    let dead_letters = entries.into_iter().map(view).collect::<Result<_, _>>()?;
    Ok(Json(LetterList { dead_letters, next }))
}

/// Send dead letters again
///
/// At once, beside all other requests of the webhook: the oldest, 100 at most, in one request; if the receiver refuses that, one by one, as
/// many as can be tried in 20 seconds. Those that it takes are removed.
#[utoipa::path(
    post, path = "/v1/webhooks/{id}/dead-letters/resend", operation_id = "resendDeadLetters", tag = "webhooks",
    params(("id" = u32, Path, description = "The webhook's number")),
    responses((status = 200, description = "What came of it", body = ResendView), schema::Problems)
)]
pub(crate) async fn resend_all(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(id): Named<u32>,
) -> Result<Json<ResendView>, Problem> {
    let webhook = find(&app, &key, id).await?;
    let page = Page { entries: RESENT_MAX, bytes: RESENT_BYTES_MAX };
    let mut letters = app.ask(DeadLetters { webhook: webhook.id, after: 0, page }).await?.entries;
    if letters.is_empty() {
        return sent(&app, &webhook, 0, None).await;
    }
    let began = Instant::now();
    let (count, attempt) = app.webhooks().send_again(&webhook, letters.clone()).await;
    letters.truncate(count);
    if attempt.outcome == Outcome::Taken {
        remove(&app, &webhook, letters.iter().map(|letter| letter.event).collect()).await?;
        return sent(&app, &webhook, count, None).await;
    }
    let mut error = attempt.outcome.error().map(str::to_owned);
    let (mut taken, is_one) = (0, letters.len() == 1);
    if matches!(attempt.outcome, Outcome::Refused(_)) && !is_one {
        for letter in letters {
            if began.elapsed() > RESENDING_MAX {
                break;
            }
            let event = letter.event;
            let (_, attempt) = app.webhooks().send_again(&webhook, vec![letter]).await;
            match attempt.outcome {
                Outcome::Taken => {
                    remove(&app, &webhook, vec![event]).await?;
                    taken += 1;
                }
                outcome => {
                    error = outcome.error().map(str::to_owned);
                    if !matches!(outcome, Outcome::Refused(_)) {
                        break;
                    }
                }
            }
        }
    }
    sent(&app, &webhook, taken, error).await
}

/// Send a dead letter again
///
/// At once, beside all other requests of the webhook. It is removed if the receiver takes it.
#[utoipa::path(
    post, path = "/v1/webhooks/{id}/dead-letters/{event}/resend", operation_id = "resendDeadLetter", tag = "webhooks",
    params(("id" = u32, Path, description = "The webhook's number"), ("event" = u64, Path, description = "The number of the event")),
    responses((status = 200, description = "What came of it", body = ResendView), schema::Problems)
)]
pub(crate) async fn resend(
    key: Granted<Admin>,
    State(app): State<App>,
    Named((id, event)): Named<(u32, u64)>,
) -> Result<Json<ResendView>, Problem> {
    let webhook = find(&app, &key, id).await?;
    let letter = letter(&app, &webhook, event).await?;
    let (_, attempt) = app.webhooks().send_again(&webhook, vec![letter]).await;
    if attempt.outcome != Outcome::Taken {
        return sent(&app, &webhook, 0, attempt.outcome.error().map(str::to_owned)).await;
    }
    remove(&app, &webhook, vec![event]).await?;
    sent(&app, &webhook, 1, None).await
}

/// Remove a dead letter
#[utoipa::path(
    delete, path = "/v1/webhooks/{id}/dead-letters/{event}", operation_id = "deleteDeadLetter", tag = "webhooks",
    params(("id" = u32, Path, description = "The webhook's number"), ("event" = u64, Path, description = "The number of the event")),
    responses((status = 204, description = "It is gone"), schema::Problems)
)]
pub(crate) async fn delete(
    key: Granted<Admin>,
    State(app): State<App>,
    Named((id, event)): Named<(u32, u64)>,
) -> Result<StatusCode, Problem> {
    let webhook = find(&app, &key, id).await?;
    letter(&app, &webhook, event).await?;
    remove(&app, &webhook, vec![event]).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn letter(app: &App, webhook: &Webhook, event: u64) -> Result<DeadLetter, Problem> {
    let unknown = || Problem::new(Code::UnknownDeadLetter, format!("event {event} is no dead letter"));
    let after = event.checked_sub(1).ok_or_else(unknown)?;
    let page = Page { entries: 1, bytes: 0 };
    let found = app.ask(DeadLetters { webhook: webhook.id, after, page }).await?.entries.pop();
    found.filter(|letter| letter.event == event).ok_or_else(unknown)
}

async fn remove(app: &App, webhook: &Webhook, events: Vec<u64>) -> Result<(), Problem> {
    app.ask(DeleteDeadLetters { webhook: webhook.id, events }).await
}

/// What is left now.
async fn sent(
    app: &App,
    webhook: &Webhook,
    taken: usize,
    error: Option<String>,
) -> Result<Json<ResendView>, Problem> {
    let now = app.ask(webhooks::Webhook { id: webhook.id }).await?.ok_or_else(|| unknown(webhook.id.0))?;
    Ok(Json(ResendView { taken: taken as u64, left: now.dead_letters.count, error }))
}

fn view(letter: DeadLetter) -> Result<LetterView, Problem> {
    let body = String::from_utf8(letter.body.into()).ok().and_then(|text| RawValue::from_string(text).ok());
    let body = body.ok_or_else(|| Problem::new(Code::Internal, "a dead letter is not JSON"))?;
    Ok(LetterView {
        event: letter.event,
        at: Time(letter.failure.at),
        error: letter.failure.error.into(),
        body,
    })
}

/// What the letters of a page take up at most, in bytes.
const PAGE_BYTES: usize = 4 << 20;
/// Dead letters that one request has sent again at most, and what they take up, in bytes.
const RESENT_MAX: u16 = 100;
const RESENT_BYTES_MAX: usize = 256 * 1024;
/// How long they are sent one by one.
const RESENDING_MAX: Duration = Duration::from_secs(20);
