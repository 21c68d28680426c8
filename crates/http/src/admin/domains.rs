//! Domains: made and removed while the node runs.

use crate::accounts::kick;
use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::{Members, Named, Patch, Wanted};
use crate::problem::{Code, Problem};
use crate::values::schema;
use crate::values::time::now;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_core::command::{Command, KickReason};
use carillon_core::model::{Domain, Policy};
use carillon_core::ports::Part;
use carillon_core::ports::store::domains::{ChangePolicy, DOMAIN_PART_ROWS, DeleteDomain, Overtaken};
use carillon_wire::jid::BareJid;

/// A domain.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct DomainView {
    /// Its XMPP host name.
    domain: String,
    /// Its policy.
    #[schema(value_type = schema::Policy)]
    policy: Policy,
    /// What the operator grants it: a key of the domain may choose a policy within this.
    #[schema(value_type = schema::Policy)]
    granted: Policy,
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

/// Create a domain
///
/// Members of the policy that are left out have their defaults. A domain that exists is left as it is: `200` when its policy has all that
/// the request names, else `409` with the names of the members that differ. `PATCH` changes a policy. While a
/// domain of the name is being removed, it is `409`, too. Needs a key of the whole node.
#[utoipa::path(
    put, path = "/v1/admin/domains/{domain}", operation_id = "putDomain", tag = "admin",
    params(("domain" = String, Path, description = "The domain's name")),
    request_body = schema::Policy,
    responses(
        (status = 200, description = "It exists as the request wants it, and was not changed", body = DomainView),
        (status = 201, description = "It was created", body = DomainView),
        schema::Problems
    )
)]
pub(crate) async fn put(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(name): Named<String>,
    Wanted(wanted): Wanted<Policy>,
) -> Result<(StatusCode, Json<DomainView>), Problem> {
    let name = prepare(&name)?;
    if key.key.domain.is_some() {
        key.reach(&app, &name)?;
    }
    let policy = wanted.over(&Policy::default())?;
    check(&policy)?;
    if let Some(known) = app.domain(&name) {
        return is_there(&wanted, &known);
    }
    let create = ChangePolicy { name: (&*name).into(), was: None, granted: policy, policy };
    let created = app.ask(create).await?;
    app.reload_domains().await?;
    match created {
        Ok(domain) => Ok((StatusCode::CREATED, Json(DomainView::of(&domain)))),
        // Another request was first.
        Err(Overtaken) => is_there(&wanted, &*key.reach(&app, &name)?),
    }
}

/// The answer to a request to create a domain that there is.
fn is_there(wanted: &Members<Policy>, known: &Domain) -> Result<(StatusCode, Json<DomainView>), Problem> {
    stays(known)?;
    wanted.is_met_by(&known.policy, &format!("the domain `{}`", known.name))?;
    Ok((StatusCode::OK, Json(DomainView::of(known))))
}

/// Refuses a domain that is being removed.
fn stays(domain: &Domain) -> Result<(), Problem> {
    if domain.is_being_removed {
        let detail = format!("the domain `{}` is being removed; try again in a minute", domain.name);
        return Err(Problem::new(Code::AlreadyExists, detail));
    }
    Ok(())
}

/// Change a domain's policy
///
/// A JSON merge patch (RFC 7396): what is left out stays as it is, and what is `null` gets its default. Also taken as `application/json`. A
/// key of the whole node changes what the domain is granted, and its policy with it. A key of the domain changes its policy within what is
/// granted: to more it is answered `403` with code `not-granted`.
#[utoipa::path(
    patch, path = "/v1/admin/domains/{domain}", operation_id = "updateDomain", tag = "admin",
    params(("domain" = String, Path, description = "The domain's name")),
    request_body(content = schema::Policy, content_type = "application/merge-patch+json"),
    responses((status = 200, description = "The domain as it is now", body = DomainView), schema::Problems)
)]
pub(crate) async fn update(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(name): Named<String>,
    Patch(patch): Patch<Policy>,
) -> Result<Json<DomainView>, Problem> {
    let name = prepare(&name)?;
    let is_operator = key.key.domain.is_none();
    for _ in 0..TRIES {
        let known = key.reach(&app, &name)?;
        stays(&known)?;
        let policy = patch.over(&known.policy)?;
        check(&policy)?;
        let granted = if is_operator { patch.over(&known.granted)? } else { known.granted };
        within(&policy, &granted)?;
        let was = Some(Box::new((known.granted, known.policy)));
        let changed = app.ask(ChangePolicy { name: (&*name).into(), was, granted, policy }).await?;
        app.reload_domains().await?;
        if let Ok(domain) = changed {
            return Ok(Json(DomainView::of(&domain)));
        }
    }
    Err(Problem::unavailable("the domain's policy is being changed by others"))
}

/// How often a change is tried that others overtake.
const TRIES: usize = 8;

/// Refuses a policy beyond what is granted.
fn within(policy: &Policy, granted: &Policy) -> Result<(), Problem> {
    let Some(member) = policy.beyond(granted) else { return Ok(()) };
    let most = serde_json::to_value(granted).map_err(|error| Problem::unexpected(&error))?;
    let detail = format!(
        "the operator of the node grants the domain no more than {} for `{member}`",
        most.get(member).unwrap_or_default()
    );
    Err(Problem::new(Code::NotGranted, detail).at(format!("/{member}")))
}

fn check(policy: &Policy) -> Result<(), Problem> {
    let bounds = [
        ("sessions_max", u64::from(policy.sessions_max), 1, 1000),
        ("resumption_ms_max", policy.resumption_ms_max.into(), 0, Policy::RESUMPTION_MS_MAX.into()),
        ("archive_days", policy.archive_days.into(), 0, Policy::ARCHIVE_DAYS_MAX.into()),
        ("room_archive_days", policy.room_archive_days.into(), 0, Policy::ARCHIVE_DAYS_MAX.into()),
        ("archive_bytes_max", policy.archive_bytes_max, 0, i64::MAX.cast_unsigned()),
        ("keys_max", policy.keys_max.into(), 1, Policy::KEYS_MAX.into()),
        ("requests_per_second", policy.requests_per_second.into(), 0, Policy::RATE_MAX.into()),
        ("stanzas_per_second", policy.stanzas_per_second.into(), 0, Policy::RATE_MAX.into()),
        ("rooms_owned_max", policy.rooms_owned_max.into(), 0, Policy::ROOMS_MAX.into()),
        ("rooms_max", policy.rooms_max.into(), 0, Policy::ROOMS_MAX.into()),
        ("stored_bytes_max", policy.stored_bytes_max, 0, i64::MAX.cast_unsigned()),
        ("accounts_max", policy.accounts_max.into(), 0, Policy::ACCOUNTS_MAX.into()),
        ("topics_max", policy.topics_max.into(), 0, Policy::TOPICS_MAX.into()),
        ("topics_owned_max", policy.topics_owned_max.into(), 0, Policy::TOPICS_MAX.into()),
        ("subscriptions_max", policy.subscriptions_max.into(), 0, Policy::TOPICS_MAX.into()),
        ("sessions_total_max", policy.sessions_total_max.into(), 0, Policy::SESSIONS_TOTAL_MAX.into()),
    ];
    let Some((member, _, least, most)) =
        bounds.into_iter().find(|(_, value, least, most)| !(*least..=*most).contains(value))
    else {
        return Ok(());
    };
    let detail = format!("`{member}` is from {least} to {most}");
    Err(Problem::new(Code::InvalidValue, detail).at(format!("/{member}")))
}

/// Remove a domain
///
/// With its accounts, topics, notifications, webhooks and keys; its sessions end, and rosters in other domains lose the subscriptions to its accounts. A large
/// domain is removed in parts: where a request fails half way, the node removes the rest within some minutes, whatever ends it meanwhile. Needs a key of the whole node.
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
    let all = BareJid::from_parts(None, &domain.name)
        .map_err(|_| Problem::unavailable("the domain has no address"))?;
    kick(&app, all.to_jid(), KickReason::DomainGone).await?;
    let mut is_known = domain.is_being_removed;
    loop {
        let part = DeleteDomain { domain: domain.id, now: now(), rows_max: DOMAIN_PART_ROWS };
        // Missing: another node, or a request at the same time, was first.
        let Part { entries: changes, more } = app.ask(part).await?.unwrap_or_default();
        if !changes.is_empty() {
            app.command(Command::ContactsRemoved { changes }).await?;
        }
        if !more {
            break;
        }
        // Whoever creates it or changes its policy meanwhile is told.
        if !std::mem::replace(&mut is_known, true) {
            app.reload_domains().await?;
        }
    }
    app.reload_domains().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The name as the store keeps it.
pub(super) fn prepare(name: &str) -> Result<String, Problem> {
    let jid = BareJid::from_parts(None, name)
        .map_err(|error| Problem::new(Code::InvalidJid, format!("not the name of a domain: {error}")))?;
    Ok(jid.as_str().to_owned())
}

impl DomainView {
    fn of(domain: &Domain) -> DomainView {
        DomainView { domain: domain.name.to_string(), policy: domain.policy, granted: domain.granted }
    }
}
