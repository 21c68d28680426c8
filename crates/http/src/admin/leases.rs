//! Leases: that one of several programs has something to itself until a time.

use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::{JsonBody, Named, Params, cut, limit};
use crate::problem::{Code, Problem};
use crate::values::schema;
use crate::values::text::fits;
use crate::values::time::{Time, now};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_core::ports::store::leases::{
    Held, LEASES_MAX, Lease, ListLeases, Refused, ReleaseLease, STATE_MAX, TakeLease,
};
use serde_json::{Map, Value};

/// Who takes a lease, and for how long.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LeaseBody {
    /// Who takes it: a name that nobody else uses.
    #[schema(min_length = 1, max_length = 256)]
    holder: String,
    /// For how many milliseconds.
    #[schema(minimum = 1000, maximum = 86_400_000)]
    ttl_ms: u64,
    /// What it says of itself, for whoever reads the lease: at most 4,096 bytes of JSON. Without it, what it said before stays.
    state: Option<Map<String, Value>>,
}

/// A lease that somebody holds.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct LeaseView {
    /// Its name.
    name: String,
    /// Who holds it.
    holder: String,
    /// Until when.
    until: Time,
    /// What its holder last said of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Map<String, Value>>,
}

impl LeaseView {
    fn of(name: String, held: Held) -> LeaseView {
        let Held { holder, until, state } = held;
        // What is kept was an object.
        let state = state.and_then(|state| serde_json::from_str(&state).ok());
        LeaseView { name, holder: holder.into(), until: Time(until), state }
    }
}

/// A page of leases, in the order of their names.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct LeasePage {
    /// Those that are held.
    leases: Vec<LeaseView>,
    /// What to give as `after` for the next page; none on the last.
    next: Option<String>,
}

/// Selects a page of leases.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LeasesQuery {
    /// Only what comes after this: `next` of the page before.
    after: Option<String>,
    /// Number of entries in a page, at most.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u16>,
}

/// Who gives a lease up.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct HolderQuery {
    /// Who gives it up; what somebody else holds is left alone.
    holder: String,
}

/// Take a lease, or hold it longer
///
/// Whoever holds it has it to itself until its time is over: anybody else is refused with `lease-held`. Its holder takes it anew before
/// that. Programs of which one at a time may act, such as autoscalers, take one. Needs a key of the whole node.
#[utoipa::path(
    post, path = "/v1/admin/leases/{lease}", operation_id = "takeLease", tag = "admin", request_body = LeaseBody,
    params(("lease" = String, Path, description = "The name of the lease, at most 256 bytes")),
    responses((status = 200, description = "It is the holder's", body = LeaseView), schema::Problems)
)]
pub(crate) async fn take(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(name): Named<String>,
    JsonBody { value: body, .. }: JsonBody<LeaseBody>,
) -> Result<Json<LeaseView>, Problem> {
    key.whole_node()?;
    let LeaseBody { holder, ttl_ms, state } = body;
    let bounds = "has 1 to 256 bytes, none of them a control character";
    if !fits(&name, 1..=256) {
        return Err(Problem::new(Code::InvalidParameter, format!("the name of a lease {bounds}")));
    }
    if !fits(&holder, 1..=256) {
        return Err(Problem::new(Code::InvalidValue, format!("`holder` {bounds}")).at("/holder"));
    }
    if !(TTL_MIN_MS..=TTL_MAX_MS).contains(&ttl_ms) {
        let text = format!("`ttl_ms` is from {TTL_MIN_MS} to {TTL_MAX_MS}");
        return Err(Problem::new(Code::InvalidValue, text).at("/ttl_ms"));
    }
    let state: Option<Box<str>> = state.map(|state| Value::Object(state).to_string().into());
    if state.as_ref().is_some_and(|state| state.len() > STATE_MAX) {
        return Err(
            Problem::new(Code::InvalidValue, format!("`state` has at most {STATE_MAX} bytes")).at("/state")
        );
    }
    let now = now();
    let (lease, until) = (Box::<str>::from(name.as_str()), now.plus(ttl_ms));
    let taken = app.ask(TakeLease { name: lease.clone(), holder: holder.into(), now, until, state }).await?;
    match taken {
        Ok(()) => read(&app, name).await,
        Err(Refused::Held(Held { holder, until, .. })) => {
            let detail = format!("`{holder}` holds it until {}", until.to_xmpp());
            Err(Problem::new(Code::LeaseHeld, detail))
        }
        Err(Refused::TooMany) => {
            Err(Problem::new(Code::TooManyLeases, format!("there are at most {LEASES_MAX} leases at a time")))
        }
    }
}

/// Read who holds a lease
///
/// Needs a key of the whole node.
#[utoipa::path(
    get, path = "/v1/admin/leases/{lease}", operation_id = "getLease", tag = "admin",
    params(("lease" = String, Path, description = "The name of the lease")),
    responses((status = 200, description = "Who holds it", body = LeaseView), schema::Problems)
)]
pub(crate) async fn get(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(name): Named<String>,
) -> Result<Json<LeaseView>, Problem> {
    key.whole_node()?;
    read(&app, name).await
}

async fn read(app: &App, name: String) -> Result<Json<LeaseView>, Problem> {
    let held = app.ask(Lease { name: name.as_str().into(), now: now() }).await?;
    let held =
        held.ok_or_else(|| Problem::new(Code::UnknownLease, format!("nobody holds the lease `{name}`")))?;
    Ok(Json(LeaseView::of(name, held)))
}

/// List leases
///
/// Those that are held, and what their holders say of themselves: an autoscaler says what it decided last. Needs a key of the whole node.
#[utoipa::path(
    get, path = "/v1/admin/leases", operation_id = "listLeases", tag = "admin", params(LeasesQuery),
    responses((status = 200, description = "A page of leases", body = LeasePage), schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<LeasesQuery>,
) -> Result<Json<LeasePage>, Problem> {
    key.whole_node()?;
    let limit = limit(query.limit)?;
    let ask = ListLeases { after: query.after.map(Into::into), limit: limit + 1, now: now() };
    let mut leases = app.ask(ask).await?;
    let more = cut(&mut leases, limit);
    let next = leases.last().filter(|_| more).map(|(name, _)| name.to_string());
    let leases = leases.into_iter().map(|(name, held)| LeaseView::of(name.into(), held)).collect();
    Ok(Json(LeasePage { leases, next }))
}

/// Give a lease up
///
/// Nothing changes where the holder that is named does not hold it. Needs a key of the whole node.
#[utoipa::path(
    delete, path = "/v1/admin/leases/{lease}", operation_id = "releaseLease", tag = "admin",
    params(("lease" = String, Path, description = "The name of the lease"), HolderQuery),
    responses((status = 204, description = "The holder does not hold it"), schema::Problems)
)]
pub(crate) async fn release(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(name): Named<String>,
    Params(HolderQuery { holder }): Params<HolderQuery>,
) -> Result<StatusCode, Problem> {
    key.whole_node()?;
    app.ask(ReleaseLease { name: name.into(), holder: holder.into() }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The shortest and the longest time that a lease is taken for: a second, and a day.
const TTL_MIN_MS: u64 = 1000;
const TTL_MAX_MS: u64 = 24 * 60 * 60 * 1000;
