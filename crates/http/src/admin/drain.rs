//! Draining the node: its sessions end over a time, and it takes no others.

use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::JsonBody;
use crate::problem::{Code, Problem};
use crate::values::schema;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_core::model::{NoHost, OtherHost};
use carillon_server::DrainReport;
use std::time::Duration;

/// How a node is to be drained.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DrainBody {
    /// Over how many milliseconds sessions end. This or `rate` is given.
    #[schema(minimum = 0, maximum = 86_400_000)]
    over_ms: Option<u64>,
    /// How many sessions end per second.
    #[schema(minimum = 1)]
    rate: Option<u32>,
    /// Where clients are sent: a host name or an IP address (IPv6 in brackets), with or without a port. Left out: they are told that the
    /// server shuts down.
    to: Option<String>,
}

impl DrainBody {
    /// Whether it depends on how many sessions there are how long it takes.
    pub(crate) fn is_by_rate(&self) -> bool {
        self.rate.is_some()
    }

    /// What it says, if that can be, of a node with so many sessions.
    pub(crate) fn checked(&self, sessions: u64) -> Result<(Duration, Option<OtherHost>), Problem> {
        let over_ms = match (self.over_ms, self.rate) {
            (Some(over_ms), None) => over_ms,
            (None, Some(rate)) if rate > 0 => {
                (sessions.saturating_mul(1000) / u64::from(rate)).min(OVER_MAX_MS)
            }
            (None, Some(_)) => {
                let text = "`rate` is 1 or more";
                return Err(Problem::new(Code::InvalidValue, text).at("/rate"));
            }
            _ => {
                let text = "the pace is given by `over_ms` or by `rate`, and by one of them";
                return Err(Problem::new(Code::InvalidValue, text).at("/over_ms"));
            }
        };
        if over_ms > OVER_MAX_MS {
            let text = format!("`over_ms` is from 0 to {OVER_MAX_MS}");
            return Err(Problem::new(Code::InvalidValue, text).at("/over_ms"));
        }
        let to = self.to.as_deref().map(str::parse::<OtherHost>).transpose();
        let to = to.map_err(|error: NoHost| Problem::new(Code::InvalidValue, error.to_string()).at("/to"))?;
        Ok((Duration::from_millis(over_ms), to))
    }
}

/// How far a drain has come.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct DrainView {
    /// `none`, `draining`, or `drained`: nobody is left.
    state: &'static str,
    /// Connections and parked sessions when it began.
    total: u64,
    /// Of these, those that are left.
    left: u64,
    /// Milliseconds until the last of them are told to end.
    ends_in_ms: u64,
    /// Slices that were told to end, one every 100 ms at most.
    slices_done: u32,
    /// All slices.
    slices: u32,
    /// Where clients are sent.
    to: Option<String>,
}

/// Drain the node
///
/// It takes no new sessions, `/readyz` answers 503, and the present sessions end in slices over a time, those first that cost least:
/// logins that are not complete, parked sessions and those of the light protocol, sessions that nobody uses now, then the others. Clients
/// are told `<see-other-host/>` where a host is given. A drain under way is replaced. In a cell the other nodes take its homes at once. Needs a key of the whole node.
#[utoipa::path(
    put, path = "/v1/admin/drain", operation_id = "startDrain", tag = "admin",
    request_body = DrainBody,
    responses((status = 202, description = "It has begun", body = DrainView), schema::Problems)
)]
pub(crate) async fn start(
    key: Granted<Admin>,
    State(app): State<App>,
    JsonBody { value: body, .. }: JsonBody<DrainBody>,
) -> Result<(StatusCode, Json<DrainView>), Problem> {
    key.whole_node()?;
    let (over, to) = body.checked(app.node.present())?;
    let progress = app.node.start_drain(over, to);
    let progress = progress.ok_or_else(|| Problem::new(Code::Unavailable, "the node is shutting down"))?;
    Ok((StatusCode::ACCEPTED, Json(DrainView::of(Some(progress.into())))))
}

/// How far the drain has come
///
/// Needs a key of the whole node.
#[utoipa::path(
    get, path = "/v1/admin/drain", operation_id = "getDrain", tag = "admin",
    responses((status = 200, description = "How far it has come", body = DrainView), schema::Problems)
)]
pub(crate) async fn progress(
    key: Granted<Admin>,
    State(app): State<App>,
) -> Result<Json<DrainView>, Problem> {
    key.whole_node()?;
    Ok(Json(DrainView::of(app.node.drain_progress().map(Into::into))))
}

/// Cancel the drain
///
/// The node takes sessions again. Those that have ended are not brought back. Needs a key of the whole node.
#[utoipa::path(
    delete, path = "/v1/admin/drain", operation_id = "cancelDrain", tag = "admin",
    responses((status = 204, description = "The node is not drained"), schema::Problems)
)]
pub(crate) async fn cancel(key: Granted<Admin>, State(app): State<App>) -> Result<StatusCode, Problem> {
    key.whole_node()?;
    app.node.cancel_drain();
    Ok(StatusCode::NO_CONTENT)
}

impl DrainView {
    /// How far a drain has come, if there is one.
    pub(crate) fn of(drain: Option<DrainReport>) -> DrainView {
        let Some(drain) = drain else {
            return DrainView {
                state: "none",
                total: 0,
                left: 0,
                ends_in_ms: 0,
                slices_done: 0,
                slices: 0,
                to: None,
            };
        };
        let DrainReport { total, left, ends_in_ms, slices_done, slices, to } = drain;
        let state = if left == 0 { "drained" } else { "draining" };
        DrainView { state, total, left, ends_in_ms, slices_done, slices, to: to.map(Into::into) }
    }
}

/// The longest drain: a day.
const OVER_MAX_MS: u64 = 24 * 60 * 60 * 1000;
