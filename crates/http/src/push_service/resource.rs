//! What senders do: they push to an endpoint, and take a push back.

use super::{headers, receipt, sender};
use crate::app::App;
use crate::auth::quota;
use crate::extract::Named;
use crate::problem::{Code, Problem};
use crate::random;
use crate::values::time::now;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use carillon_core::command::{Command, Outcome};
use carillon_core::model::{DropReason, Endpoint, NotificationId, NotificationState, PushedMessage, bucket};
use carillon_core::ports::store::endpoints::FindEndpoint;
use std::time::Duration;

/// What an endpoint says of itself.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct UnifiedPush {
    /// That it is one of UnifiedPush.
    unifiedpush: UnifiedPushVersion,
}

/// The version of UnifiedPush that an endpoint follows.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct UnifiedPushVersion {
    version: u8,
}

/// Ask what an endpoint is
///
/// Senders of UnifiedPush look whether a URL is that of a push server.
#[utoipa::path(
    get, path = "/push/{token}", operation_id = "discoverEndpoint", tag = "push",
    params(("token" = String, Path, description = "The endpoint's token")),
    responses((status = 200, description = "It is one of UnifiedPush", body = UnifiedPush), crate::values::schema::Problems)
)]
pub(crate) async fn discover(State(app): State<App>) -> Result<Json<UnifiedPush>, Problem> {
    app.push_service().url.as_ref().ok_or_else(unknown)?;
    Ok(Json(UnifiedPush { unifiedpush: UnifiedPushVersion { version: 1 } }))
}

/// Push to an endpoint
///
/// As RFC 8030 §5 has it, by senders of Web Push and UnifiedPush: the URL is that which a client was given over XMPP, and no key is needed. `TTL` is
/// required; `Urgency` and `Topic` are followed. The body is what the application is given, at most 4,096 bytes, encrypted by its sender (RFC 8291).
#[utoipa::path(
    post, path = "/push/{token}", operation_id = "pushToEndpoint", tag = "push",
    params(
        ("token" = String, Path, description = "The endpoint's token"),
        ("TTL" = u64, Header, description = "Seconds that it may wait for the client; with 0 it is for a client that is there"),
        ("Urgency" = Option<String>, Header, description = "`very-low`, `low`, `normal` or `high`"),
        ("Topic" = Option<String>, Header, description = "It replaces an undelivered push of the same topic: 1 to 32 characters of base64url"),
        ("Prefer" = Option<String>, Header, description = "`respond-async`: the sender wants a receipt"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 201, description = "It was taken. `Location` is its URL, at which it is taken back, and `TTL` how long it waits"),
        (status = 202, description = "The same, for a sender that wants a receipt, which is at the URL of `Link`"),
        crate::values::schema::Problems
    )
)]
pub(crate) async fn push(
    State(app): State<App>,
    Named(token): Named<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let body = read(&app, body).await;
    let came = take(&app, &token, &headers, body).await;
    app.push_service().count(came.as_ref().err().map(Problem::code));
    came
}

async fn take(
    app: &App,
    token: &str,
    headers: &HeaderMap,
    body: Result<Bytes, Problem>,
) -> Result<Response, Problem> {
    let service = app.push_service();
    service.url.as_ref().ok_or_else(unknown)?;
    // What was not signed here is not asked for.
    let (domain, id) = service.key.read_endpoint(token).ok_or_else(unknown)?;
    let now = now();
    let endpoint = app.ask(FindEndpoint { domain, id }).await?.filter(|found| found.expires > now);
    let endpoint = endpoint.ok_or_else(gone)?;
    if let Some(key) = &endpoint.sender {
        sender::check(headers, key, service.origin(), now)?;
    }
    let wanted = headers::read(headers)?;
    quota::charge_domain(app, domain)?;
    let body = body?;
    let ttl_ms = wanted.ttl.saturating_mul(1000).min(app.options.core.notification_ttl_max_ms);
    let message =
        PushedMessage { body: &body, ttl_ms, priority: wanted.priority, topic: wanted.topic.as_deref() };
    let id = NotificationId::new(now, bucket(endpoint.account.as_str()), random::number());
    send(app, &endpoint, &message, id).await?;
    let url = service.message_url(domain, id);
    let no_url = || Problem::new(Code::Internal, "the URL of the push service is not one");
    let location = HeaderValue::from_str(&url).map_err(|_| no_url())?;
    let ttl = (HeaderName::from_static("ttl"), HeaderValue::from(ttl_ms / 1000));
    let said = [(header::LOCATION, location), ttl];
    if wanted.wants_receipt {
        let receipt = receipt::headers_of(&url).ok_or_else(no_url)?;
        return Ok((StatusCode::ACCEPTED, said, receipt).into_response());
    }
    Ok((StatusCode::CREATED, said).into_response())
}

/// Has the node take the notification that brings the push to the client.
async fn send(
    app: &App,
    endpoint: &Endpoint,
    message: &PushedMessage<'_>,
    id: NotificationId,
) -> Result<(), Problem> {
    let notification = endpoint.notification(id, message, now());
    let trace = match app.command(Command::Notify(notification.into())).await? {
        Outcome::Notified(trace) => trace,
        Outcome::Missing => return Err(gone()),
        other => return Err(Problem::unexpected(&other)),
    };
    match trace.reason {
        Some(DropReason::UnknownDevice | DropReason::DeviceDeleted) => Err(gone()),
        Some(DropReason::QueueFull) => {
            let detail = "as much waits for the account, or is stored of its domain, as may";
            Err(Problem::new(Code::TooManyPushes, detail).retry_after(FULL_S))
        }
        Some(DropReason::Module) => {
            Err(Problem::new(Code::Forbidden, "the operator's rules refuse the push"))
        }
        // With a TTL of 0 it is for a client that is there (RFC 8030 §5.2).
        Some(DropReason::NotConnected | DropReason::NotActive | DropReason::ConnectionLost) | None => Ok(()),
    }
}

/// Take a push back
///
/// By its URL, which is `Location` of the answer to it, while the client was not given it.
#[utoipa::path(
    delete, path = "/push/messages/{token}", operation_id = "cancelPush", tag = "push",
    params(("token" = String, Path, description = "The push's token")),
    responses((status = 204, description = "The client is not given it"), crate::values::schema::Problems)
)]
pub(crate) async fn cancel(
    State(app): State<App>,
    Named(token): Named<String>,
) -> Result<StatusCode, Problem> {
    let missing = || Problem::new(Code::UnknownNotification, "there is no such push, or it has ended");
    app.push_service().url.as_ref().ok_or_else(missing)?;
    let (_, id) = app.push_service().key.read_message(&token).ok_or_else(missing)?;
    match app.command(Command::Cancel { id }).await? {
        Outcome::Trace(trace) if trace.state == NotificationState::Cancelled => Ok(StatusCode::NO_CONTENT),
        Outcome::Trace(trace) if trace.state == NotificationState::Sent => {
            Err(Problem::new(Code::TooLate, "the client was given it already"))
        }
        Outcome::Trace(_) | Outcome::Missing => Err(missing()),
        other => Err(Problem::unexpected(&other)),
    }
}

/// The body of a push. What is a little too large is read, too, so that its sender's connection goes on after the answer.
async fn read(app: &App, body: Body) -> Result<Bytes, Problem> {
    let too_large =
        || Problem::new(Code::PayloadTooLarge, format!("a push has at most {BODY_BYTES_MAX} bytes"));
    let limit = Duration::from_millis(app.options.settings.read_timeout_ms);
    match tokio::time::timeout(limit, axum::body::to_bytes(body, READ_BYTES_MAX)).await {
        Ok(Ok(bytes)) if bytes.len() <= BODY_BYTES_MAX => Ok(bytes),
        // It is longer than it may be, or broke off, which nobody is told.
        Ok(_) => Err(too_large()),
        Err(_) => Err(Problem::new(Code::SlowBody, "the body did not arrive in time")),
    }
}

fn unknown() -> Problem {
    Problem::new(Code::UnknownEndpoint, "there is no such endpoint")
}

fn gone() -> Problem {
    Problem::new(Code::EndpointGone, "the endpoint was revoked, or has expired")
}

/// The largest push (RFC 8030 §7.2).
const BODY_BYTES_MAX: usize = 4096;
/// What is read of a body: as much as bodies have that take no place among those in memory.
const READ_BYTES_MAX: usize = 16 * 1024;
/// After how many seconds a sender whose push found no room may try again.
const FULL_S: u32 = 60;
