//! A device's secret: changed, and whether it may be used.

use super::devices::{endpoints, secret};
use crate::accounts::Account;
use crate::app::App;
use crate::auth::{Enrol, Granted};
use crate::extract::{DomainQuery, JsonBody, Named, Optional, Params};
use crate::options::Endpoints;
use crate::problem::{Code, Problem};
use crate::values::jids;
use crate::values::schema;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_core::model::AccountState;

/// How to change a device's secret.
#[derive(Debug, Default, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RotateBody {
    /// The new secret. The server makes one where none is given.
    #[serde(default)]
    secret: Option<String>,
    /// Whether its sessions may go on.
    #[serde(default)]
    keep_sessions: bool,
}

/// A device's new secret.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct Rotated {
    /// The device's id.
    id: String,
    /// Its bare JID.
    jid: String,
    /// Its new secret: shown now and never again.
    secret: String,
    /// How many of its sessions ended.
    sessions_ended: u64,
}

/// Change a device's secret
///
/// Its sessions end, unless `keep_sessions` says otherwise.
#[utoipa::path(
    post, path = "/v1/devices/{id}/rotate", operation_id = "rotateSecret", tag = "devices",
    params(DomainQuery, ("id" = String, Path, description = "The device's id")),
    request_body(content = Option<RotateBody>),
    responses((status = 200, description = "The new secret", body = Rotated), schema::Problems)
)]
pub(crate) async fn rotate(
    key: Granted<Enrol>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(id): Named<String>,
    Optional(body): Optional<RotateBody>,
) -> Result<Json<Rotated>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    let jid = jids::device(&id, &domain)?;
    let account = Account { app: &app, domain: &domain, jid: &jid, missing: Code::UnknownDevice };
    let (secret, credentials) = secret(&app, body.secret).await?;
    let sessions_ended = account.set_credentials(credentials, body.keep_sessions).await?;
    Ok(Json(Rotated { id: jids::local(&jid).into(), jid: jid.as_str().to_owned(), secret, sessions_ended }))
}

/// Disable a device
///
/// It cannot log in until it is enabled again; its sessions end. What is sent to it waits.
#[utoipa::path(
    post, path = "/v1/devices/{id}/disable", operation_id = "disableDevice", tag = "devices",
    params(DomainQuery, ("id" = String, Path, description = "The device's id")),
    responses((status = 204, description = "It is disabled"), schema::Problems)
)]
pub(crate) async fn disable(
    key: Granted<Enrol>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(id): Named<String>,
) -> Result<StatusCode, Problem> {
    set_enabled(&key, &app, &query, &id, false).await
}

/// Enable a device
#[utoipa::path(
    post, path = "/v1/devices/{id}/enable", operation_id = "enableDevice", tag = "devices",
    params(DomainQuery, ("id" = String, Path, description = "The device's id")),
    responses((status = 204, description = "It may log in"), schema::Problems)
)]
pub(crate) async fn enable(
    key: Granted<Enrol>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(id): Named<String>,
) -> Result<StatusCode, Problem> {
    set_enabled(&key, &app, &query, &id, true).await
}

/// A secret to be tried.
#[derive(serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ValidateBody {
    /// The secret.
    secret: String,
}

/// Whether a device could log in.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct Validated {
    /// Whether the secret is the device's, and the device is enabled.
    valid: bool,
    /// Addresses to connect to.
    endpoints: Endpoints,
}

/// Check a device's secret
///
/// Whether the device could log in with it, without logging in.
#[utoipa::path(
    post, path = "/v1/devices/{id}/validate", operation_id = "validateSecret", tag = "devices",
    params(DomainQuery, ("id" = String, Path, description = "The device's id")),
    request_body = ValidateBody,
    responses((status = 200, description = "Whether the device can log in with it", body = Validated), schema::Problems)
)]
pub(crate) async fn validate(
    key: Granted<Enrol>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(id): Named<String>,
    JsonBody { value: body, .. }: JsonBody<ValidateBody>,
) -> Result<Json<Validated>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    let jid = jids::device(&id, &domain)?;
    let account = Account { app: &app, domain: &domain, jid: &jid, missing: Code::UnknownDevice };
    let (credentials, state) = account.credentials().await?;
    let valid = state == AccountState::Enabled && app.derivations().verify(body.secret, credentials).await?;
    Ok(Json(Validated { valid, endpoints: endpoints(&app, &domain) }))
}

async fn set_enabled(
    key: &Granted<Enrol>,
    app: &App,
    query: &DomainQuery,
    id: &str,
    enabled: bool,
) -> Result<StatusCode, Problem> {
    let domain = key.domain(app, query.domain.as_deref())?;
    let jid = jids::device(id, &domain)?;
    let account = Account { app, domain: &domain, jid: &jid, missing: Code::UnknownDevice };
    account.set_enabled(enabled).await?;
    Ok(StatusCode::NO_CONTENT)
}
