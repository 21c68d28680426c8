//! How much of what its policy bounds a domain uses.

use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::Named;
use crate::problem::{Code, Problem};
use crate::values::schema;
use axum::Json;
use axum::extract::State;
use carillon_core::model::Domain;
use carillon_core::ports::store::domains::{DomainUsage, Usage};
use carillon_core::shard::{DomainCounters, DomainQuota};

/// The quotas of a domain and what is used of them.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct UsageView {
    /// Its XMPP host name.
    domain: String,
    /// What is bounded for the domain as a whole.
    quotas: Vec<QuotaView>,
}

/// One quota of a domain.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct QuotaView {
    /// What is counted: `accounts`, `sessions`, `topics`, `rooms`, `keys`, `stored-bytes`.
    quota: &'static str,
    /// The member of the policy that bounds it.
    member: &'static str,
    /// How much there is: of sessions, on the node that is asked; of bytes, when they were measured last, and `null` where they are not bounded. `null` where the node does not count it: sessions of a domain beyond `http.metrics_domains`.
    used: Option<u64>,
    /// How much the policy allows; `null` for any number.
    max: Option<u64>,
    /// How often clients and publishers were refused something by it since the node that is asked was started, by bounds of the domain or of one account; `null` where the
    /// node does not count it.
    refused: Option<u64>,
}

/// Read a domain's use of its quotas
///
/// What its policy bounds for the domain as a whole, and how much of it there is.
#[utoipa::path(
    get, path = "/v1/admin/domains/{domain}/usage", operation_id = "getDomainUsage", tag = "admin",
    params(("domain" = String, Path, description = "The domain's name")),
    responses((status = 200, description = "The quotas and their use", body = UsageView), schema::Problems)
)]
pub(crate) async fn usage(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(name): Named<String>,
) -> Result<Json<UsageView>, Problem> {
    let domain = key.reach(&app, &super::domains::prepare(&name)?)?;
    let Some(usage) = app.ask(DomainUsage { domain: domain.id }).await? else {
        return Err(Problem::new(Code::UnknownDomain, "the domain has just been deleted"));
    };
    let status = app.node.status();
    let counted = status.domains.iter().find(|counted| counted.name.as_deref() == Some(&*domain.name));
    let quotas = quotas(&domain, &usage, counted.map(|counted| &counted.counters));
    Ok(Json(UsageView { domain: domain.name.to_string(), quotas }))
}

fn quotas(domain: &Domain, usage: &Usage, counted: Option<&DomainCounters>) -> Vec<QuotaView> {
    let policy = &domain.policy;
    let Usage { accounts, topics, rooms, keys } = *usage;
    let quota = |quota, member, used: Option<u64>, max: u32, by: Option<DomainQuota>| QuotaView {
        quota,
        member,
        used,
        max: (max > 0).then(|| max.into()),
        refused: by.and_then(|by| counted.map(|counted| counted.refused.by(by))),
    };
    vec![
        quota(
            "accounts",
            "accounts_max",
            Some(accounts.into()),
            policy.accounts_max,
            Some(DomainQuota::Accounts),
        ),
        quota(
            "sessions",
            "sessions_total_max",
            counted.map(|counted| counted.sessions),
            policy.sessions_total_max,
            Some(DomainQuota::Sessions),
        ),
        quota("topics", "topics_max", Some(topics.into()), policy.topics_max, Some(DomainQuota::Topics)),
        quota("rooms", "rooms_max", Some(rooms.into()), policy.rooms_max, Some(DomainQuota::Rooms)),
        quota("keys", "keys_max", Some(keys.into()), policy.keys_max, None),
        QuotaView {
            quota: "stored-bytes",
            member: "stored_bytes_max",
            used: (domain.policy.stored_bytes_max > 0).then_some(domain.stored_bytes),
            max: (domain.policy.stored_bytes_max > 0).then_some(domain.policy.stored_bytes_max),
            refused: counted.map(|counted| counted.refused.by(DomainQuota::StoredBytes)),
        },
    ]
}
