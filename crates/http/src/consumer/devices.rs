//! Devices: enrolled, read, listed, removed.

use crate::accounts::{self, Account};
use crate::app::App;
use crate::auth::scram;
use crate::auth::{Enrol, Granted};
use crate::extract::{DomainQuery, Named, Optional, PageQuery, Params, limit};
use crate::options::Endpoints;
use crate::problem::{Code, Problem};
use crate::random;
use crate::values::jids;
use crate::values::schema;
use crate::values::time::Time;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_core::model::{AccountState, Domain, Moving, Placement};
use carillon_core::ports::store::accounts::Enrolment;
use carillon_wire::jid::BareJid;

/// A device to be enrolled.
#[derive(Debug, Default, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeviceBody {
    /// Its id, the local part of its JID. The server makes one where none is given.
    #[serde(default)]
    id: Option<String>,
    /// Its secret, the password it logs in with. The server makes one where none is given.
    #[serde(default)]
    secret: Option<String>,
}

/// A device that was enrolled, with all it needs to connect.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct Enrolled {
    /// Its id.
    id: String,
    /// Its bare JID.
    jid: String,
    /// Its secret: shown now and never again.
    secret: String,
    /// Addresses to connect to.
    endpoints: Endpoints,
}

/// A device.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct DeviceView {
    /// Its id.
    id: String,
    /// Its bare JID.
    jid: String,
    /// `enabled` or `disabled`.
    state: &'static str,
    /// When it was disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled_at: Option<Time>,
    /// When it was enrolled.
    created_at: Time,
    /// How many notifications wait for it.
    pending: u32,
    /// How many sessions it has now; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<usize>,
    /// The topics it follows; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    topics: Option<Vec<String>>,
}

/// Where a device connects.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct EndpointView {
    /// Its id.
    id: String,
    /// Its bare JID.
    jid: String,
    /// The cell that it is in, at a front.
    #[serde(skip_serializing_if = "Option::is_none")]
    cell: Option<String>,
    /// Whether it is moving to another cell.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    moving: bool,
    /// Addresses to connect to.
    endpoints: Endpoints,
}

/// A page of devices, in the order of their ids.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct DevicePage {
    /// The devices.
    devices: Vec<DeviceView>,
    /// What to give as `after` for the next page; none on the last.
    next: Option<String>,
}

/// Enrol a device
#[utoipa::path(
    post, path = "/v1/devices", operation_id = "enrolDevice", tag = "devices", params(DomainQuery),
    request_body(content = Option<DeviceBody>),
    responses((status = 201, description = "It is enrolled", body = Enrolled), schema::Problems)
)]
pub(crate) async fn enrol(
    key: Granted<Enrol>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Optional(body): Optional<DeviceBody>,
) -> Result<(StatusCode, Json<Enrolled>), Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    let id = body.id.unwrap_or_else(random::local_part);
    let jid = jids::device(&id, &domain).map_err(|problem| problem.at("/id"))?;
    let (secret, credentials) = secret(&app, body.secret).await?;
    Account { app: &app, domain: &domain, jid: &jid, missing: Code::UnknownDevice }
        .create(credentials)
        .await?;
    let enrolled = Enrolled {
        id: jids::local(&jid).into(),
        jid: jid.as_str().to_owned(),
        secret,
        endpoints: endpoints(&app, &domain),
    };
    Ok((StatusCode::CREATED, Json(enrolled)))
}

/// List devices
#[utoipa::path(
    get, path = "/v1/devices", operation_id = "listDevices", tag = "devices", params(PageQuery),
    responses((status = 200, description = "A page of devices", body = DevicePage), schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<Enrol>,
    State(app): State<App>,
    Params(query): Params<PageQuery>,
) -> Result<Json<DevicePage>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    let (enrolments, next) = accounts::list(&app, &domain, query.after, limit(query.limit)?).await?;
    Ok(Json(DevicePage { devices: enrolments.iter().map(DeviceView::brief).collect(), next }))
}

/// Read a device
#[utoipa::path(
    get, path = "/v1/devices/{id}", operation_id = "getDevice", tag = "devices",
    params(DomainQuery, ("id" = String, Path, description = "The device's id")),
    responses((status = 200, description = "The device", body = DeviceView), schema::Problems)
)]
pub(crate) async fn get(
    key: Granted<Enrol>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(id): Named<String>,
) -> Result<Json<DeviceView>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    let jid = jids::device(&id, &domain)?;
    let account = Account { app: &app, domain: &domain, jid: &jid, missing: Code::UnknownDevice };
    let enrolment = account.read().await?;
    let sessions = account.sessions().await?;
    Ok(Json(DeviceView::full(&enrolment, sessions)))
}

/// Find out where a device connects
///
/// At a front, where its cell is: this changes when it moves, so a client asks again when it is not let in. Without a host, connect to the domain.
#[utoipa::path(
    get, path = "/v1/devices/{id}/endpoint", operation_id = "getEndpoint", tag = "devices",
    params(DomainQuery, ("id" = String, Path, description = "The device's id")),
    responses((status = 200, description = "Where it connects", body = EndpointView), schema::Problems)
)]
pub(crate) async fn endpoint(
    key: Granted<Enrol>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(id): Named<String>,
) -> Result<Json<EndpointView>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    let jid = jids::device(&id, &domain)?;
    Account { app: &app, domain: &domain, jid: &jid, missing: Code::UnknownDevice }.read().await?;
    Ok(Json(EndpointView::of(&jid, None, endpoints(&app, &domain))))
}

/// Remove a device
///
/// With all that waits for it; its sessions end.
#[utoipa::path(
    delete, path = "/v1/devices/{id}", operation_id = "deleteDevice", tag = "devices",
    params(DomainQuery, ("id" = String, Path, description = "The device's id")),
    responses((status = 204, description = "It is gone"), schema::Problems)
)]
pub(crate) async fn delete(
    key: Granted<Enrol>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(id): Named<String>,
) -> Result<StatusCode, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    let jid = jids::device(&id, &domain)?;
    Account { app: &app, domain: &domain, jid: &jid, missing: Code::UnknownDevice }.delete().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A device's secret and its keys: the secret that was chosen for it, or a new one.
pub(super) async fn secret(
    app: &App,
    chosen: Option<String>,
) -> Result<(String, carillon_core::model::Credentials), Problem> {
    let (secret, iterations) = match chosen {
        Some(secret) => (secret, app.options.core.scram_iterations),
        None => (random::secret(), scram::ITERATIONS_OF_RANDOM),
    };
    let keys = app.derivations().derive(secret.clone(), iterations).await.map_err(|p| p.at("/secret"))?;
    Ok((secret, keys))
}

/// Where the devices of a domain connect.
pub(super) fn endpoints(app: &App, domain: &Domain) -> Endpoints {
    let mut endpoints = app.options.endpoints.clone();
    endpoints.host.get_or_insert_with(|| domain.name.to_string());
    endpoints
}

impl EndpointView {
    /// Where a device connects; at a front, with where it is.
    pub(crate) fn of(device: &BareJid, placement: Option<Placement>, endpoints: Endpoints) -> EndpointView {
        EndpointView {
            id: jids::local(device).into(),
            jid: device.as_str().to_owned(),
            moving: placement.as_ref().is_some_and(|at| at.moving != Moving::No),
            cell: placement.map(|at| at.cell.into()),
            endpoints,
        }
    }
}

impl DeviceView {
    fn brief(enrolment: &Enrolment) -> DeviceView {
        let (state, disabled_at) = match enrolment.state {
            AccountState::Enabled => ("enabled", None),
            AccountState::Disabled(at) => ("disabled", Some(Time(at))),
        };
        DeviceView {
            id: jids::local(&enrolment.jid).into(),
            jid: enrolment.jid.as_str().to_owned(),
            state,
            disabled_at,
            created_at: Time(enrolment.created),
            pending: enrolment.pending,
            sessions: None,
            topics: None,
        }
    }

    fn full(enrolment: &Enrolment, sessions: usize) -> DeviceView {
        let topics = enrolment.topics.iter().map(ToString::to_string).collect();
        DeviceView { sessions: Some(sessions), topics: Some(topics), ..DeviceView::brief(enrolment) }
    }
}
