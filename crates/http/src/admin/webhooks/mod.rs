//! Webhooks: created, changed and removed; how they fare; and a request to try one.

pub(crate) mod dead_letters;

use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::{JsonBody, Named};
use crate::problem::{Code, Problem};
use crate::provider::events::newest;
use crate::random;
use crate::values::schema;
use crate::values::time::{Time, now};
use crate::webhooks::{Attempt, new_secret, read_secret, write_secret};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_core::model::{
    EventFilter, EventType, EventTypes, NotificationState, Scope, States, Webhook, WebhookId, WebhookSecret,
    WebhookStatus,
};
use carillon_core::ports::Missing;
use carillon_core::ports::store::webhooks::{
    self, CreateWebhook, CreateWebhookAnswer, DeleteWebhook, UpdateWebhook, WEBHOOKS_MAX,
    WEBHOOKS_PER_DOMAIN_MAX, Webhooks,
};
use serde::{Deserialize, Deserializer};

/// A webhook to be created.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebhookBody {
    /// Where requests go: `https://`, to a public address. A node may be set to allow others.
    #[schema(max_length = 2048, format = "uri")]
    url: String,
    /// The ends of notifications that it is told of: `acknowledged`, `expired`, `replaced`, `cancelled`, `dropped`. All of them by default.
    #[serde(default)]
    #[schema(value_type = Option<Vec<schema::NotificationState>>, min_items = 1)]
    states: Option<Vec<NotificationState>>,
    /// The types of events that it is told of; `notification` by default. Of rooms there are events in domains whose policy `room_events` says so.
    #[serde(default)]
    #[schema(value_type = Option<Vec<schema::EventType>>, min_items = 1)]
    types: Option<Vec<EventType>>,
    /// Whether it is told the text of messages and subjects of rooms: that takes scope `read_messages`, too.
    #[serde(default)]
    contents: bool,
    /// What requests are signed with: `whsec_` and the base64 of 24 to 64 bytes. By default the node makes one.
    #[serde(default)]
    secret: Option<String>,
    /// The domain whose notifications it is told of. Left out: those of the whole node, or of the domain of the key that creates it.
    #[serde(default)]
    domain: Option<String>,
}

/// What is to be changed of a webhook, as a JSON merge patch (RFC 7396): what is left out stays as it is. `states` may be `null`, for all.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebhookChange {
    /// Where requests go.
    #[serde(default, deserialize_with = "given")]
    #[schema(max_length = 2048, format = "uri")]
    url: Option<String>,
    /// The ends that it is told of.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<schema::NotificationState>>, min_items = 1)]
    states: Option<Option<Vec<NotificationState>>>,
    /// The types of events that it is told of. `null` for `notification` alone.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<schema::EventType>>, min_items = 1)]
    types: Option<Option<Vec<EventType>>>,
    /// Whether it is told the text of messages and subjects of rooms. Of a webhook that is, this, `url` and `types` take scope `read_messages`, too.
    #[serde(default, deserialize_with = "given")]
    contents: Option<bool>,
    /// Whether events are sent. What ends while it is disabled is sent once it is enabled again.
    #[serde(default, deserialize_with = "given")]
    enabled: Option<bool>,
    /// Another secret.
    #[serde(default, deserialize_with = "given")]
    secret: Option<String>,
    /// Whether the node makes another secret.
    #[serde(default)]
    rotate_secret: bool,
}

/// Takes a member that is there: `null` is a value of its own, or none that it may have.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A webhook, and how it fares.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct WebhookView {
    /// Its number.
    id: u32,
    /// The domain whose notifications it is told of; none for the whole node.
    domain: Option<String>,
    /// Where requests go.
    url: String,
    /// The ends that it is told of.
    #[schema(value_type = Vec<schema::NotificationState>)]
    states: Vec<NotificationState>,
    /// The types of events that it is told of.
    #[schema(value_type = Vec<schema::EventType>)]
    types: Vec<EventType>,
    /// Whether it is told the text of messages and subjects of rooms.
    contents: bool,
    /// Whether events are sent: `enabled`; or not, because an operator has `disabled` it, or its receiver answered `410` and is `gone`.
    #[schema(value_type = schema::WebhookStatus)]
    status: &'static str,
    /// When it was created.
    created_at: Time,
    /// The number of the last event that is dealt with: taken by the receiver, of no interest to it, or a dead letter.
    cursor: u64,
    /// Events after that one, of interest or not.
    behind: u64,
    /// Requests that failed since the last success.
    failures: u32,
    /// When the next attempt is made, after a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<Time>,
    /// The last request that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<ErrorView>,
    /// Events that its receiver did not accept.
    dead_letters: DeadLettersView,
}

/// Why a request failed, and when.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct ErrorView {
    /// When.
    at: Time,
    /// Why, for people.
    error: String,
}

/// How many events a webhook's receiver did not take.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct DeadLettersView {
    /// Those that are kept: 10,000 and 16 MiB at most.
    count: u64,
    /// What they take up, in bytes.
    bytes: u64,
    /// Those that were dropped because there was no room for them.
    dropped: u64,
}

/// A webhook, with its secret if that is new.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct WebhookAndSecret {
    /// The secret: shown now and never again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "whsec_MfKQ9r8G…")]
    secret: Option<String>,
    /// The webhook without its secret.
    #[serde(flatten)]
    view: WebhookView,
}

/// The webhooks that the key reaches.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct WebhookList {
    /// By their numbers.
    webhooks: Vec<WebhookView>,
}

/// What came of a request that was sent to try a webhook.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct TestView {
    /// Whether the receiver took it: it answered `2xx`.
    taken: bool,
    /// The status of its response, if there was one.
    status: Option<u16>,
    /// How long it took, in milliseconds.
    took_ms: u64,
    /// Why it was not taken.
    error: Option<String>,
}

/// List webhooks
#[utoipa::path(
    get, path = "/v1/webhooks", operation_id = "listWebhooks", tag = "webhooks",
    responses((status = 200, description = "The webhooks that the key reaches", body = WebhookList), schema::Problems)
)]
pub(crate) async fn list(key: Granted<Admin>, State(app): State<App>) -> Result<Json<WebhookList>, Problem> {
    let cursors = app.webhooks().cursors();
    let webhooks = app.ask(Webhooks { domain: key.key.domain }).await?;
    let newest = newest_event(&app).await?;
    let views = webhooks.iter().map(|webhook| view(&app, webhook, cursors.of(webhook), newest));
    Ok(Json(WebhookList { webhooks: views.collect() }))
}

/// Create a webhook
///
/// From now on the URL is told how stored notifications end, and of `types` that name them what happens to rooms, in batches, by signed requests that are repeated until it answers `2xx`:
/// see `docs/book/webhooks.md`. At most 100 per domain and 1,000 per node.
#[utoipa::path(
    post, path = "/v1/webhooks", operation_id = "createWebhook", tag = "webhooks", request_body = WebhookBody,
    responses((status = 201, description = "The new webhook with its secret", body = WebhookAndSecret), schema::Problems)
)]
pub(crate) async fn create(
    key: Granted<Admin>,
    State(app): State<App>,
    JsonBody { value: body, .. }: JsonBody<WebhookBody>,
) -> Result<(StatusCode, Json<WebhookAndSecret>), Problem> {
    app.webhooks().check_url(&body.url)?;
    let states = body.states.as_deref().map_or(Ok(States::ENDS), ends)?;
    let types = body.types.as_deref().map_or(Ok(EventTypes::NOTIFICATIONS), types_of)?;
    if body.contents {
        key.needs(Scope::ReadMessages)?;
    }
    let wanted = EventFilter { types, states };
    let secret = body.secret.as_deref().map_or_else(|| Ok(new_secret()), checked_secret)?;
    let domain = match &body.domain {
        Some(name) => Some(key.reach(&app, name).map_err(|problem| problem.at("/domain"))?.id),
        None => key.key.domain,
    };
    let create = CreateWebhook {
        domain,
        url: body.url.into(),
        wanted,
        contents: body.contents,
        secret: secret.clone(),
        now: now(),
    };
    let created = match app.ask(create).await? {
        CreateWebhookAnswer::Created(created) => created,
        CreateWebhookAnswer::NoDomain => {
            return Err(Problem::new(Code::UnknownDomain, "the domain has just been deleted").at("/domain"));
        }
        CreateWebhookAnswer::TooMany => {
            let detail =
                format!("a domain has at most {WEBHOOKS_PER_DOMAIN_MAX} webhooks, and a node {WEBHOOKS_MAX}");
            return Err(Problem::new(Code::TooManyWebhooks, detail));
        }
    };
    app.webhooks().changed();
    let cursor = created.progress.cursor;
    let view = view(&app, &created, cursor, cursor);
    Ok((StatusCode::CREATED, Json(WebhookAndSecret { secret: Some(write_secret(&secret)), view })))
}

/// Read a webhook
#[utoipa::path(
    get, path = "/v1/webhooks/{id}", operation_id = "getWebhook", tag = "webhooks",
    params(("id" = u32, Path, description = "The webhook's number")),
    responses((status = 200, description = "The webhook, and how it fares", body = WebhookView), schema::Problems)
)]
pub(crate) async fn get(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(id): Named<u32>,
) -> Result<Json<WebhookView>, Problem> {
    let cursors = app.webhooks().cursors();
    let webhook = find(&app, &key, id).await?;
    Ok(Json(view(&app, &webhook, cursors.of(&webhook), newest_event(&app).await?)))
}

/// Change a webhook
///
/// With another URL, or when it is enabled, its failures are forgotten and events are sent at once. A new secret counts from the next
/// request on. Also taken as `application/json`.
#[utoipa::path(
    patch, path = "/v1/webhooks/{id}", operation_id = "updateWebhook", tag = "webhooks", 
    request_body(content = WebhookChange, content_type = "application/merge-patch+json"),
    params(("id" = u32, Path, description = "The webhook's number")),
    responses((status = 200, description = "The webhook as it is now, with its secret if that is new", body = WebhookAndSecret), schema::Problems)
)]
pub(crate) async fn update(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(id): Named<u32>,
    JsonBody { value: change, .. }: JsonBody<WebhookChange>,
) -> Result<Json<WebhookAndSecret>, Problem> {
    let webhook = find(&app, &key, id).await?;
    change.url.as_deref().map_or(Ok(()), |url| app.webhooks().check_url(url))?;
    let secret = match (change.secret.as_deref(), change.rotate_secret) {
        (None, false) => None,
        (None, true) => Some(new_secret()),
        (Some(secret), false) => Some(checked_secret(secret)?),
        (Some(_), true) => {
            let detail = "either `secret` or `rotate_secret`";
            return Err(Problem::new(Code::InvalidValue, detail).at("/rotate_secret"));
        }
    };
    let is_about_contents = change.contents.is_some() || change.url.is_some() || change.types.is_some();
    if is_about_contents && (webhook.contents || change.contents == Some(true)) {
        key.needs(Scope::ReadMessages)?;
    }
    let types = change.types.map(|types| types.as_deref().map_or(Ok(EventTypes::NOTIFICATIONS), types_of));
    let update = UpdateWebhook {
        id: webhook.id,
        url: change.url.map(Into::into),
        types: types.transpose()?,
        contents: change.contents,
        states: change.states.map(|states| states.as_deref().map_or(Ok(States::ENDS), ends)).transpose()?,
        secret: secret.clone(),
        status: change.enabled.map(|on| if on { WebhookStatus::Enabled } else { WebhookStatus::Disabled }),
    };
    let cursors = app.webhooks().cursors();
    let updated = app.ask(update).await?.ok_or_else(|| unknown(id))?;
    app.webhooks().changed();
    let view = view(&app, &updated, cursors.of(&updated), newest_event(&app).await?);
    Ok(Json(WebhookAndSecret { secret: secret.as_ref().map(write_secret), view }))
}

/// Remove a webhook
///
/// With its dead letters. A request that is under way is not taken back.
#[utoipa::path(
    delete, path = "/v1/webhooks/{id}", operation_id = "deleteWebhook", tag = "webhooks",
    params(("id" = u32, Path, description = "The webhook's number")),
    responses((status = 204, description = "It is gone"), schema::Problems)
)]
pub(crate) async fn delete(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(id): Named<u32>,
) -> Result<StatusCode, Problem> {
    let webhook = find(&app, &key, id).await?;
    app.ask(DeleteWebhook { id: webhook.id }).await?.map_err(|Missing| unknown(id))?;
    app.webhooks().changed();
    Ok(StatusCode::NO_CONTENT)
}

/// Try a webhook
///
/// Sends a signed request `{"type": "test", …}` without events at once, also when the webhook is disabled or waits after a failure,
/// and says what came of it. It changes nothing.
#[utoipa::path(
    post, path = "/v1/webhooks/{id}/test", operation_id = "testWebhook", tag = "webhooks",
    params(("id" = u32, Path, description = "The webhook's number")),
    responses((status = 200, description = "What came of it", body = TestView), schema::Problems)
)]
pub(crate) async fn test(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(id): Named<u32>,
) -> Result<Json<TestView>, Problem> {
    let webhook = find(&app, &key, id).await?;
    let Attempt { outcome, status, took } =
        app.webhooks().test(&webhook, format!("test_{:016x}", random::number())).await;
    let error = outcome.error().map(str::to_owned);
    Ok(Json(TestView { taken: error.is_none(), status, took_ms: took.as_millis() as u64, error }))
}

/// The webhook of this number, if the key reaches it.
async fn find(app: &App, key: &Granted<Admin>, id: u32) -> Result<Webhook, Problem> {
    let found = app.ask(webhooks::Webhook { id: WebhookId(id) }).await?;
    let reached = found.filter(|webhook| key.key.domain.is_none() || webhook.domain == key.key.domain);
    reached.map(|webhook| *webhook).ok_or_else(|| unknown(id))
}

fn unknown(id: u32) -> Problem {
    Problem::new(Code::UnknownWebhook, format!("there is no webhook {id}"))
}

async fn newest_event(app: &App) -> Result<u64, Problem> {
    newest(app).await.ok_or_else(Problem::busy)
}

fn ends(states: &[NotificationState]) -> Result<States, Problem> {
    let problem = |detail| Problem::new(Code::InvalidValue, detail).at("/states");
    if states.is_empty() {
        return Err(problem("a webhook is told of one end at least"));
    }
    if !states.iter().all(|state| state.is_end()) {
        return Err(problem(
            "webhooks are told of ends: acknowledged, expired, replaced, cancelled, dropped; and of opened",
        ));
    }
    Ok(states.iter().fold(States::NONE, |all, state| all.with((*state).into())))
}

fn types_of(types: &[EventType]) -> Result<EventTypes, Problem> {
    if types.is_empty() {
        let detail = "a webhook is told of one type of events at least";
        return Err(Problem::new(Code::InvalidValue, detail).at("/types"));
    }
    Ok(types.iter().fold(EventTypes::NONE, |all, kind| all.with((*kind).into())))
}

fn checked_secret(text: &str) -> Result<WebhookSecret, Problem> {
    let detail = "a secret is `whsec_` and the base64 of 24 to 64 bytes";
    read_secret(text).ok_or_else(|| Problem::new(Code::InvalidSecret, detail).at("/secret"))
}

/// The webhook, when these are the numbers of the last event that it was dealt with and of the newest.
fn view(app: &App, webhook: &Webhook, cursor: u64, newest: u64) -> WebhookView {
    let (progress, dead_letters) = (&webhook.progress, &webhook.dead_letters);
    WebhookView {
        id: webhook.id.0,
        domain: webhook.domain.map(|id| app.domain_name(id).to_string()),
        url: webhook.url.to_string(),
        states: webhook.wanted.states.iter().collect(),
        types: webhook.wanted.types.iter().collect(),
        contents: webhook.contents,
        status: match webhook.status {
            WebhookStatus::Enabled => "enabled",
            WebhookStatus::Disabled => "disabled",
            WebhookStatus::Gone => "gone",
        },
        created_at: Time(webhook.created),
        cursor,
        behind: newest.saturating_sub(cursor),
        failures: progress.failures,
        next_attempt_at: progress.next_attempt.map(Time),
        last_error: progress
            .last_failure
            .as_ref()
            .map(|failure| ErrorView { at: Time(failure.at), error: failure.error.to_string() }),
        dead_letters: DeadLettersView {
            count: dead_letters.count,
            bytes: dead_letters.bytes,
            dropped: dead_letters.dropped,
        },
    }
}
