//! Whom an account blocks (XEP-0191).

use super::act::{ask, exists};
use crate::accounts::find;
use crate::app::App;
use crate::auth::{Chat, Granted};
use crate::extract::{DomainQuery, Named, Params};
use crate::problem::{Code, Problem};
use crate::values::jids;
use crate::values::schema;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::{IqType, Stanza};
use carillon_wire::xml::Element;

/// Whom an account blocks.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct Blocked {
    /// Their addresses.
    blocked: Vec<String>,
}

/// Read whom an account blocks
#[utoipa::path(
    get, path = "/v1/accounts/{jid}/blocked", operation_id = "listBlocked", tag = "contacts",
    params(DomainQuery, ("jid" = String, Path, description = "Its bare JID or local part")),
    responses((status = 200, description = "Their addresses", body = Blocked), schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<Chat>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(jid): Named<String>,
) -> Result<Json<Blocked>, Problem> {
    let (domain, account) = find(&key, &app, &jid, query.domain.as_deref())?;
    exists(&app, &domain, &account).await?;
    Ok(Json(Blocked { blocked: list_of(&app, &account).await? }))
}

/// Whom an account blocks, which is there.
pub(super) async fn list_of(app: &App, account: &BareJid) -> Result<Vec<String>, Problem> {
    let request = Stanza::iq(IqType::Get).with_payload(Element::new("blocklist", ns::BLOCKING));
    let list = ask(app, account, request, Code::UnknownAccount).await?;
    let items = list.iter().flat_map(Element::children);
    Ok(items.filter_map(|item| item.attr("jid")).map(str::to_owned).collect())
}

/// Have an account block somebody
///
/// Nothing passes between the two from then on, and the one who is blocked does not see the account's presence any more.
#[utoipa::path(
    put, path = "/v1/accounts/{jid}/blocked/{address}", operation_id = "block", tag = "contacts",
    params(
        DomainQuery,
        ("jid" = String, Path, description = "The account's bare JID or local part"),
        ("address" = String, Path, description = "Who is blocked: a bare or full JID, or a local part")
    ),
    responses((status = 204, description = "It is blocked"), schema::Problems)
)]
pub(crate) async fn put(
    key: Granted<Chat>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(path): Named<(String, String)>,
) -> Result<StatusCode, Problem> {
    edit(&key, &app, &path, query.domain.as_deref(), "block").await
}

/// Have an account block somebody no longer
#[utoipa::path(
    delete, path = "/v1/accounts/{jid}/blocked/{address}", operation_id = "unblock", tag = "contacts",
    params(
        DomainQuery,
        ("jid" = String, Path, description = "The account's bare JID or local part"),
        ("address" = String, Path, description = "Who is blocked: a bare or full JID, or a local part")
    ),
    responses((status = 204, description = "It is not blocked"), schema::Problems)
)]
pub(crate) async fn delete(
    key: Granted<Chat>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(path): Named<(String, String)>,
) -> Result<StatusCode, Problem> {
    edit(&key, &app, &path, query.domain.as_deref(), "unblock").await
}

async fn edit(
    key: &Granted<Chat>,
    app: &App,
    (jid, address): &(String, String),
    domain: Option<&str>,
    what: &'static str,
) -> Result<StatusCode, Problem> {
    let (domain, account) = find(key, app, jid, domain)?;
    let address = jids::session(address, &domain.name).map_err(|problem| problem.at("address"))?;
    exists(app, &domain, &account).await?;
    let item = Element::new("item", ns::BLOCKING).with_attr("jid", address.as_str());
    let request = Stanza::iq(IqType::Set).with_payload(Element::new(what, ns::BLOCKING).with_child(item));
    ask(app, &account, request, Code::UnknownAccount).await?;
    Ok(StatusCode::NO_CONTENT)
}
