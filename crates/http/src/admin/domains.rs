//! Domains: made and removed while the node runs.

use crate::accounts::kick;
use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::{JsonBody, Named};
use crate::problem::{Code, Problem};
use crate::schema;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_core::command::{Command, KickReason};
use carillon_core::model::{Domain, Policy};
use carillon_core::ports::store::domains::{DOMAIN_PART_ROWS, DeleteDomain, PutDomain};
use carillon_core::ports::{Missing, Part};
use carillon_wire::jid::BareJid;

/// A domain.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct DomainView {
    /// Its XMPP host name.
    domain: String,
    /// Its policy.
    #[schema(value_type = schema::Policy)]
    policy: Policy,
}

/// The domains that the key reaches.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct DomainList {
    /// In the order of their names.
    domains: Vec<DomainView>,
    /// The one that a key of the whole node acts in when the request names none.
    default_domain: String,
}

/// List domains
#[utoipa::path(
    get, path = "/v1/admin/domains", operation_id = "listDomains", tag = "admin",
    responses((status = 200, description = "The domains that the key reaches", body = DomainList), schema::Problems)
)]
pub(crate) async fn list(key: Granted<Admin>, State(app): State<App>) -> Json<DomainList> {
    let domains = app.node.domains();
    let reached = domains.iter().filter(|d| key.key.domain.is_none_or(|own| own == d.id));
    let mut domains: Vec<DomainView> = reached.map(|d| DomainView::of(d)).collect();
    domains.sort_unstable_by(|a, b| a.domain.cmp(&b.domain));
    Json(DomainList { domains, default_domain: app.options.default_domain.clone() })
}

/// Read a domain
#[utoipa::path(
    get, path = "/v1/admin/domains/{domain}", operation_id = "getDomain", tag = "admin",
    params(("domain" = String, Path, description = "The domain's name")),
    responses((status = 200, description = "The domain", body = DomainView), schema::Problems)
)]
pub(crate) async fn get(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(name): Named<String>,
) -> Result<Json<DomainView>, Problem> {
    Ok(Json(DomainView::of(&*key.reach(&app, &prepare(&name)?)?)))
}

/// Create a domain or change its policy
///
/// Members that are left out have their defaults, also when the domain is there already. A key of a domain may change
/// its own.
#[utoipa::path(
    put, path = "/v1/admin/domains/{domain}", operation_id = "putDomain", tag = "admin",
    params(("domain" = String, Path, description = "The domain's name")),
    request_body = schema::Policy,
    responses(
        (status = 200, description = "It was changed", body = DomainView),
        (status = 201, description = "It was created", body = DomainView),
        schema::Problems
    )
)]
pub(crate) async fn put(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(name): Named<String>,
    JsonBody { value: policy, .. }: JsonBody<Policy>,
) -> Result<(StatusCode, Json<DomainView>), Problem> {
    let name = prepare(&name)?;
    if key.key.domain.is_some() {
        key.reach(&app, &name)?;
    }
    if !(1..=1000).contains(&policy.sessions_max) {
        return Err(Problem::new(Code::InvalidValue, "`sessions_max` is from 1 to 1000").at("/sessions_max"));
    }
    if policy.resumption_ms_max > Policy::RESUMPTION_MS_MAX {
        let text = format!("`resumption_ms_max` is from 0 to {}", Policy::RESUMPTION_MS_MAX);
        return Err(Problem::new(Code::InvalidValue, text).at("/resumption_ms_max"));
    }
    if policy.archive_days > Policy::ARCHIVE_DAYS_MAX {
        let text = format!("`archive_days` is from 0 to {}", Policy::ARCHIVE_DAYS_MAX);
        return Err(Problem::new(Code::InvalidValue, text).at("/archive_days"));
    }
    if i64::try_from(policy.archive_bytes_max).is_err() {
        return Err(
            Problem::new(Code::InvalidValue, "`archive_bytes_max` is too large").at("/archive_bytes_max")
        );
    }
    let put = app.ask(PutDomain { name: name.into(), policy }).await?;
    app.reload_domains().await?;
    let status = if put.created { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(DomainView::of(&put.domain))))
}

/// Remove a domain
///
/// With its accounts, topics, notifications, webhooks and keys; its sessions end, and rosters in other domains lose the subscriptions to its accounts. A large
/// domain is removed in parts: where that fails half way, it is still there without what was removed, and the same request goes on. Needs a key of the whole node.
#[utoipa::path(
    delete, path = "/v1/admin/domains/{domain}", operation_id = "deleteDomain", tag = "admin",
    params(("domain" = String, Path, description = "The domain's name")),
    responses((status = 204, description = "It is gone"), schema::Problems)
)]
pub(crate) async fn delete(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(name): Named<String>,
) -> Result<StatusCode, Problem> {
    key.whole_node()?;
    let domain = key.reach(&app, &prepare(&name)?)?;
    // Those who see them are told by their homes, which know them as long as the domain is there.
    let all = BareJid::from_parts(None, &domain.name).map_err(|_| Problem::unavailable())?;
    kick(&app, all.to_jid(), KickReason::Gone).await?;
    loop {
        let part = DeleteDomain { domain: domain.id, rows_max: DOMAIN_PART_ROWS };
        // Missing: another node, or a request at the same time, was first.
        let Part { entries: changes, more } = match app.ask(part).await? {
            Ok(part) => part,
            Err(Missing) => Part::default(),
        };
        if !changes.is_empty() {
            app.command(Command::ContactsRemoved { changes }).await?;
        }
        if !more {
            break;
        }
    }
    app.reload_domains().await?;
    app.feeds.forget(domain.id);
    app.webhooks.changed();
    Ok(StatusCode::NO_CONTENT)
}

/// The name as the store keeps it.
fn prepare(name: &str) -> Result<String, Problem> {
    let jid = BareJid::from_parts(None, name)
        .map_err(|error| Problem::new(Code::InvalidJid, format!("no domain has this name: {error}")))?;
    Ok(jid.as_str().to_owned())
}

impl DomainView {
    fn of(domain: &Domain) -> DomainView {
        DomainView { domain: domain.name.to_string(), policy: domain.policy }
    }
}
