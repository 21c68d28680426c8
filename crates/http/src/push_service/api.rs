//! What operators see of endpoints, and that they revoke them.

use crate::accounts;
use crate::app::App;
use crate::auth::{Enrol, Granted};
use crate::extract::{DomainQuery, Named, Params, limit};
use crate::problem::{Code, Problem};
use crate::values::time::Time;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use carillon_core::model::{Endpoint, EndpointId};
use carillon_core::ports::store::endpoints::{FindEndpoint, ListEndpoints, RevokeEndpoints};

/// An endpoint of an application on a device. Its URL is told to the client that asked for it, and to nobody else.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct PushEndpointView {
    /// Its id.
    #[schema(example = "5f0c9a2be4d14c1b8f60d7a3c2e19b04")]
    id: String,
    /// The bare JID of its account.
    account: String,
    /// The resource of the client that asked for it.
    resource: String,
    /// What stands for the application: a hash that the client made.
    application: String,
    /// The same for the instance of the application.
    instance: String,
    /// Whether it takes pushes of one sender alone (RFC 8292).
    restricted: bool,
    /// When it was first asked for.
    created_at: Time,
    /// Until when it takes pushes, if its client does not ask for it again.
    expires_at: Time,
}

/// A page of endpoints.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct EndpointPage {
    /// By their ids.
    endpoints: Vec<PushEndpointView>,
    /// What to give as `after` for the next page; none on the last.
    next: Option<String>,
}

/// Which endpoints.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EndpointsQuery {
    /// Only those of this account: its bare JID or local part.
    account: Option<String>,
    /// The domain; by default the key's, or the node's first.
    domain: Option<String>,
    /// Where the page begins: `next` of the one before.
    after: Option<String>,
    /// How many, 1 to 1000.
    limit: Option<u16>,
}

/// List endpoints
///
/// Where senders of Web Push reach applications on devices, while this server is their push service (`push.service_url`). Their URLs are not told.
#[utoipa::path(
    get, path = "/v1/push/endpoints", operation_id = "listEndpoints", tag = "push", params(EndpointsQuery),
    responses((status = 200, description = "Endpoints", body = EndpointPage), crate::values::schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<Enrol>,
    State(app): State<App>,
    Params(query): Params<EndpointsQuery>,
) -> Result<Json<EndpointPage>, Problem> {
    let (domain, account) = match &query.account {
        Some(account) => {
            let (domain, jid) = accounts::find(&key, &app, account, query.domain.as_deref())?;
            (domain, jid.local().map(Box::from))
        }
        None => (key.domain(&app, query.domain.as_deref())?, None),
    };
    let after = query
        .after
        .as_deref()
        .map_or(Ok(EndpointId(0)), str::parse)
        .map_err(|_| Problem::new(Code::InvalidParameter, "`after` is `next` of the page before"))?;
    let ask = ListEndpoints { domain: domain.id, account, after, max: limit(query.limit)? };
    let found = app.ask(ask).await?;
    let next = found.entries.last().filter(|_| found.more).map(|last| last.id.to_string());
    Ok(Json(EndpointPage { endpoints: found.entries.iter().map(view).collect(), next }))
}

/// Revoke an endpoint
///
/// Nothing can be pushed to it any more; senders are told that it is gone. The domain is the key's, or the one that the query names.
#[utoipa::path(
    delete, path = "/v1/push/endpoints/{id}", operation_id = "revokeEndpoint", tag = "push",
    params(("id" = String, Path, description = "The endpoint's id"), DomainQuery),
    responses((status = 204, description = "It is gone"), crate::values::schema::Problems)
)]
pub(crate) async fn revoke(
    key: Granted<Enrol>,
    State(app): State<App>,
    Named(id): Named<String>,
    Params(query): Params<DomainQuery>,
) -> Result<StatusCode, Problem> {
    let unknown = || Problem::new(Code::UnknownEndpoint, format!("there is no endpoint `{id}`"));
    let domain = key.domain(&app, query.domain.as_deref())?.id;
    let id: EndpointId = id.parse().map_err(|_| unknown())?;
    let endpoint = app.ask(FindEndpoint { domain, id }).await?.ok_or_else(unknown)?;
    let local = endpoint.account.local().unwrap_or_default().into();
    app.ask(RevokeEndpoints { domain, local, id: Some(id) }).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) fn view(endpoint: &Endpoint) -> PushEndpointView {
    PushEndpointView {
        id: endpoint.id.to_string(),
        account: endpoint.account.to_string(),
        resource: endpoint.resource.to_string(),
        application: STANDARD.encode(endpoint.application),
        instance: STANDARD.encode(endpoint.instance),
        restricted: endpoint.sender.is_some(),
        created_at: Time(endpoint.created),
        expires_at: Time(endpoint.expires),
    }
}
