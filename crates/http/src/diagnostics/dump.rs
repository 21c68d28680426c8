//! `GET /v1/dump`: what the flight recorders have.

use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::Params;
use crate::problem::{Code, Problem};
use crate::values::schema;
use axum::Json;
use axum::extract::State;
use carillon_server::{FLIGHT_ENTRIES, FlightEntry};

/// How much of it.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DumpQuery {
    /// Entries of each shard, at most: the last ones.
    #[param(minimum = 1, maximum = 4096, default = 256)]
    last: Option<u16>,
}

/// What a shard was given.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct FlightView {
    /// When, in milliseconds since the node was started.
    at_ms: u64,
    /// What: `bytes` of a client, a `message` of another shard, an `answer` of the store, a `tick` of the clock, a `slow-turn` of the shard, ….
    kind: &'static str,
    /// The number of the connection; 0 where it is about none.
    connection: u32,
    /// Its size in bytes; of a `slow-turn`, how many milliseconds it took.
    size: u32,
}

/// The flight recorder of a shard.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct ShardFlight {
    /// The shard.
    shard: u16,
    /// What it was given last, oldest first.
    entries: Vec<FlightView>,
}

/// The flight recorders of a node.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct DumpView {
    /// One for each shard.
    shards: Vec<ShardFlight>,
}

/// Read the flight recorders
///
/// What each shard was given last, also of one that hangs: no shard is asked. Sizes and numbers only, and nothing of what anybody wrote. Needs a key of the whole node.
#[utoipa::path(
    get, path = "/v1/dump", operation_id = "dumpFlights", tag = "admin", params(DumpQuery),
    responses((status = 200, description = "What each shard was given last", body = DumpView), schema::Problems)
)]
pub(crate) async fn dump(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<DumpQuery>,
) -> Result<Json<DumpView>, Problem> {
    key.whole_node()?;
    let last = usize::from(query.last.unwrap_or(256));
    if !(1..=FLIGHT_ENTRIES).contains(&last) {
        let detail = format!("`last` is an integer from 1 to {FLIGHT_ENTRIES}");
        return Err(Problem::new(Code::InvalidParameter, detail));
    }
    let view = |entry: FlightEntry| FlightView {
        at_ms: entry.at.0,
        kind: entry.kind,
        connection: entry.connection,
        size: entry.size,
    };
    let shards = app.node.flights(last).into_iter();
    let shards = shards.map(|(shard, entries)| ShardFlight {
        shard: shard.0,
        entries: entries.into_iter().map(view).collect(),
    });
    Ok(Json(DumpView { shards: shards.collect() }))
}
