//! `GET /v1/top`: the accounts that cost most.

use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::Params;
use crate::problem::{Code, Problem};
use crate::values::schema;
use axum::Json;
use axum::extract::State;
use carillon_core::machine::HeavyAccount;
use std::cmp::Reverse;

/// By what accounts are sorted.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum By {
    /// Time that the node spent on what their clients sent.
    Cpu,
    /// Elements that their clients sent.
    #[default]
    Messages,
    /// Bytes that their clients sent.
    Bytes,
    /// Bytes that wait for their clients now.
    Queue,
}

/// Which accounts.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TopQuery {
    /// By what they are sorted: `cpu`, `messages` (the default), `bytes` or `queue`.
    #[serde(default)]
    #[param(inline)]
    by: By,
    /// Number of accounts, at most.
    #[param(minimum = 1, maximum = 64, default = 10)]
    limit: Option<u16>,
}

/// An account that costs much.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct HeavyView {
    /// Its bare JID.
    account: String,
    /// Elements that its clients sent, at least.
    messages: u64,
    /// Bytes of these elements, at least.
    bytes: u64,
    /// Time that the node spent on them, in milliseconds: an estimate, as one of 17 reads is measured.
    cpu_ms: f64,
    /// Bytes that wait for its clients now.
    queue_bytes: u64,
    /// For how long this was counted, in milliseconds: for the last minute, and up to another one.
    counted_ms: u64,
}

/// The accounts that cost most.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct TopView {
    /// The accounts, those that cost most first.
    accounts: Vec<HeavyView>,
}

/// List the accounts that cost most
///
/// By what their clients sent to this node in the last one or two minutes, or by what waits for their clients. A shard counts 64 accounts at a time: one that causes little beside
/// others may be missing, and what it sent before it was counted is not in the figures. Accounts without a session are left out.
#[utoipa::path(
    get, path = "/v1/top", operation_id = "listHeaviest", tag = "admin", params(TopQuery),
    responses((status = 200, description = "The accounts", body = TopView), schema::Problems)
)]
pub(crate) async fn top(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<TopQuery>,
) -> Result<Json<TopView>, Problem> {
    let limit = match query.limit.unwrap_or(10) {
        limit @ 1..=LIMIT_MAX => usize::from(limit),
        _ => {
            let detail = format!("`limit` is an integer from 1 to {LIMIT_MAX}");
            return Err(Problem::new(Code::InvalidParameter, detail));
        }
    };
    let own = key.key.domain.map(|domain| app.domain_name(domain));
    let mut accounts = app.top().await?;
    accounts.retain(|heavy| own.as_deref().is_none_or(|own| heavy.account.domain() == own));
    accounts.retain(|heavy| query.by.of(heavy) > 0);
    accounts.sort_by_key(|heavy| Reverse(query.by.of(heavy)));
    accounts.truncate(limit);
    Ok(Json(TopView { accounts: accounts.iter().map(HeavyView::of).collect() }))
}

impl By {
    fn of(self, heavy: &HeavyAccount) -> u64 {
        match self {
            By::Cpu => heavy.cpu_ns,
            By::Messages => heavy.messages,
            By::Bytes => heavy.bytes,
            By::Queue => heavy.queue_bytes,
        }
    }
}

impl HeavyView {
    fn of(heavy: &HeavyAccount) -> HeavyView {
        HeavyView {
            account: heavy.account.as_str().to_owned(),
            messages: heavy.messages,
            bytes: heavy.bytes,
            cpu_ms: heavy.cpu_ns as f64 / 1e6,
            queue_bytes: heavy.queue_bytes,
            counted_ms: heavy.counted_ms,
        }
    }
}

const LIMIT_MAX: u16 = 64;
