//! Cells, and devices that move, for operators.

use super::client::Call;
use super::moves::begin;
use super::registry::unknown_cell;
use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::{DomainQuery, JsonBody, Named, Params};
use crate::problem::{Code, Problem};
use crate::values::jids;
use crate::values::schema;
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use carillon_core::model::{CellEndpoints, CellKey, CellRecord, Draining, Moving, Placement};
use carillon_core::ports::Missing;
use carillon_core::ports::store::cells::{
    CELLS_MAX, CellChange, CellInUse, CellReport, ChangeCell, CreateCell, CreateCellRefused, MovingDevices,
    RemoveCell,
};

/// A cell to be added.
#[derive(serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellBody {
    /// The URL of its HTTP API, without a path.
    #[schema(max_length = 2048, example = "https://eu-1.example.com")]
    url: String,
    /// An API key of the whole cell with scope `admin`. It is not shown again.
    key: String,
    /// How much of the new devices it is given, compared with the other cells.
    #[serde(default = "weight")]
    #[schema(minimum = 0, maximum = 1_000_000, default = 100)]
    weight: u32,
    /// Where its devices connect.
    #[serde(default)]
    endpoints: EndpointsBody,
    /// How many of its devices may begin to move per second while it is drained.
    #[serde(default = "rate")]
    #[schema(minimum = 1, maximum = 1000, default = 50)]
    rate: u32,
}

/// Where devices connect.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndpointsBody {
    /// Host name for TCP; the domain's own name where there is none.
    #[serde(default)]
    host: Option<String>,
    /// Port for XMPP over TCP with STARTTLS.
    #[serde(default)]
    c2s_port: Option<u16>,
    /// Port for XMPP over direct TLS (XEP-0368).
    #[serde(default)]
    c2s_tls_port: Option<u16>,
    /// URL for XMPP over WebSocket (RFC 7395).
    #[serde(default)]
    websocket_url: Option<String>,
}

/// What is to be changed of a cell: what is left out stays as it is.
#[derive(serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellPatch {
    /// The URL of its HTTP API.
    #[serde(default)]
    url: Option<String>,
    /// An API key of the whole cell with scope `admin`.
    #[serde(default)]
    key: Option<String>,
    /// How much of the new devices it is given, compared with the other cells.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1_000_000)]
    weight: Option<u32>,
    /// Where its devices connect: all of it.
    #[serde(default)]
    endpoints: Option<EndpointsBody>,
    /// How many of its devices may begin to move per second while it is drained.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1000)]
    rate: Option<u32>,
    /// Whether its devices move to other cells: `off`, `running`, `paused`. While it is not `off`, no device is given to the cell.
    #[serde(default)]
    drain: Option<DrainWord>,
}

/// Whether the devices of a cell move to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DrainWord {
    /// They stay.
    Off,
    /// They move.
    Running,
    /// They are to move; none begins to.
    Paused,
}

/// A cell, as its front sees it.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct CellView {
    /// Its name.
    cell: String,
    /// The URL of its HTTP API.
    url: String,
    /// `up`; `away` where it did not answer the last request of this front.
    state: &'static str,
    /// Why it is away.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// For how long, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    away_ms: Option<u64>,
    /// How much of the new devices it is given, compared with the other cells.
    weight: u32,
    /// Where its devices connect.
    endpoints: EndpointsBody,
    /// Whether its devices move to other cells.
    drain: DrainWord,
    /// How many of them may begin to per second.
    rate: u32,
    /// Devices that are in it.
    devices: u64,
    /// Requests that are held for it.
    held: u64,
    /// What these count for, in bytes.
    held_bytes: u64,
    /// Devices that moved away from it since this front started.
    moved: u64,
}

/// The cells of a front.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct CellList {
    /// By name.
    cells: Vec<CellView>,
}

/// A device that is to move.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoveBody {
    /// The device: its id, or its bare JID.
    device: String,
    /// The cell that it is to move to.
    to: String,
}

/// A device that moves.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct MoveView {
    /// The device, as a bare JID.
    device: String,
    /// The cell that it leaves.
    from: String,
    /// The cell that it moves to.
    to: String,
    /// `copying`, or `arrived` when it is in its new cell and is still to be removed from the old one.
    state: &'static str,
}

/// Devices that move.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct MoveList {
    /// The first 1,000, in the order of their addresses.
    moves: Vec<MoveView>,
}

/// List the cells of a front
///
/// Needs a key of the whole node, as all routes about cells do. A node that is no front answers `409` `no-front`.
#[utoipa::path(
    get, path = "/v1/cells", operation_id = "listCells", tag = "cells",
    responses((status = 200, description = "The cells", body = CellList), schema::Problems)
)]
pub(crate) async fn list(key: Granted<Admin>, State(app): State<App>) -> Result<Json<CellList>, Problem> {
    key.whole_node()?;
    app.front()?;
    let cells = app.read_cells().await?;
    Ok(Json(CellList { cells: cells.iter().map(|found| CellView::of(&app, found)).collect() }))
}

/// Read a cell
#[utoipa::path(
    get, path = "/v1/cells/{cell}", operation_id = "getCell", tag = "cells",
    params(("cell" = String, Path, description = "The name of the cell")),
    responses((status = 200, description = "The cell", body = CellView), schema::Problems)
)]
pub(crate) async fn get(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(name): Named<String>,
) -> Result<Json<CellView>, Problem> {
    key.whole_node()?;
    app.front()?;
    view(&app, &name).await.map(Json)
}

/// Add a cell
///
/// The front asks it whether the key may do everything there, and adds it if so. A cell of this name that is there stays as it is.
#[utoipa::path(
    put, path = "/v1/cells/{cell}", operation_id = "putCell", tag = "cells", request_body = CellBody,
    params(("cell" = String, Path, description = "The name of the cell: 1 to 32 of a-z, 0-9 and -")),
    responses(
        (status = 201, description = "It is added", body = CellView),
        (status = 200, description = "It was there, the same", body = CellView),
        schema::Problems
    )
)]
pub(crate) async fn put(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(name): Named<String>,
    JsonBody { value: body, .. }: JsonBody<CellBody>,
) -> Result<(StatusCode, Json<CellView>), Problem> {
    key.whole_node()?;
    app.front()?;
    let is_name = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    if !(1..=32).contains(&name.len()) || !name.bytes().all(is_name) {
        let detail = "the name of a cell has 1 to 32 characters: a-z, 0-9 and -";
        return Err(Problem::new(Code::InvalidParameter, detail));
    }
    let cell = CellRecord {
        name: name.as_str().into(),
        weight: checked_weight(body.weight)?,
        url: checked_url(&body.url)?,
        key: CellKey(body.key.into()),
        endpoints: body.endpoints.read(),
        drain: Draining::Off,
        rate: checked_rate(body.rate)?,
    };
    let was_there = app.read_cells().await?.iter().any(|found| found.cell.name == cell.name);
    try_out(&app, &cell).await?;
    match app.ask(CreateCell { cell }).await? {
        Ok(()) => {}
        Err(CreateCellRefused::Exists) => {
            let detail = format!("there is another cell `{name}`: `PATCH` changes it");
            return Err(Problem::new(Code::AlreadyExists, detail));
        }
        Err(CreateCellRefused::TooMany) => {
            return Err(Problem::new(Code::TooManyCells, format!("there are {CELLS_MAX} cells")));
        }
    }
    let status = if was_there { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(view(&app, &name).await?)))
}

/// Change a cell, drain it, pause its drain
///
/// While `drain` is `running`, its devices move to the other cells, at most `rate` of them begin to per second; each is away for the moment that its
/// move takes.
#[utoipa::path(
    patch, path = "/v1/cells/{cell}", operation_id = "updateCell", tag = "cells",
    request_body(content = CellPatch, content_type = "application/merge-patch+json"),
    params(("cell" = String, Path, description = "The name of the cell")),
    responses((status = 200, description = "The cell as it is now", body = CellView), schema::Problems)
)]
pub(crate) async fn update(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(name): Named<String>,
    JsonBody { value: patch, .. }: JsonBody<CellPatch>,
) -> Result<Json<CellView>, Problem> {
    key.whole_node()?;
    app.front()?;
    let change = CellChange {
        weight: patch.weight.map(checked_weight).transpose()?,
        url: patch.url.as_deref().map(checked_url).transpose()?,
        key: patch.key.map(|key| CellKey(key.into())),
        endpoints: patch.endpoints.as_ref().map(EndpointsBody::read),
        drain: patch.drain.map(DrainWord::read),
        rate: patch.rate.map(checked_rate).transpose()?,
    };
    if change.url.is_some() || change.key.is_some() {
        let found = app.read_cells().await?;
        let found =
            found.iter().find(|found| *found.cell.name == *name).ok_or_else(|| unknown_cell(&name))?;
        try_out(&app, &change.of(&found.cell)).await?;
    }
    match app.ask(ChangeCell { name: name.as_str().into(), change }).await? {
        Ok(()) => view(&app, &name).await.map(Json),
        Err(Missing) => Err(unknown_cell(&name)),
    }
}

/// Forget a cell
///
/// Only one without devices, to which none moves and for which nothing is held.
#[utoipa::path(
    delete, path = "/v1/cells/{cell}", operation_id = "deleteCell", tag = "cells",
    params(("cell" = String, Path, description = "The name of the cell")),
    responses((status = 204, description = "The front does not know it any more"), schema::Problems)
)]
pub(crate) async fn delete(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(name): Named<String>,
) -> Result<StatusCode, Problem> {
    key.whole_node()?;
    let front = app.front()?;
    view(&app, &name).await?;
    match app.ask(RemoveCell { name: name.as_str().into() }).await? {
        Ok(()) => {
            front.client.forget(&name);
            app.read_cells().await?;
            Ok(StatusCode::NO_CONTENT)
        }
        Err(CellInUse) => {
            let detail = "devices are in it or move to it, or requests are held for it: drain it first";
            Err(Problem::new(Code::CellInUse, detail))
        }
    }
}

/// Move a device to another cell
///
/// `202` says that it moves, whatever happens to the front; it is away for the moment that this takes.
#[utoipa::path(
    post, path = "/v1/moves", operation_id = "moveDevice", tag = "cells", params(DomainQuery), request_body = MoveBody,
    responses((status = 202, description = "It moves", body = MoveView), schema::Problems)
)]
pub(crate) async fn start(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    JsonBody { value: body, .. }: JsonBody<MoveBody>,
) -> Result<(StatusCode, Json<MoveView>), Problem> {
    key.whole_node()?;
    app.front()?;
    let domain = key.domain(&app, query.domain.as_deref())?;
    let device = jids::account(&body.device, &domain.name).map_err(|problem| problem.at("/device"))?;
    let to = app.cell(&body.to).await.map_err(|problem| problem.at("/to"))?;
    let placement = app.placement(&device).await?;
    if placement.cell == to.name && placement.moving == Moving::No {
        let detail = format!("`{device}` is in `{}` already", to.name);
        return Err(Problem::new(Code::AlreadyExists, detail).at("/to"));
    }
    let moving = begin(&app, &placement, &to.name).await?;
    let view = MoveView::of(&moving).ok_or_else(|| Problem::unexpected(&moving))?;
    Ok((StatusCode::ACCEPTED, Json(view)))
}

/// List devices that move
#[utoipa::path(
    get, path = "/v1/moves", operation_id = "listMoves", tag = "cells",
    responses((status = 200, description = "Devices that move", body = MoveList), schema::Problems)
)]
pub(crate) async fn moves(key: Granted<Admin>, State(app): State<App>) -> Result<Json<MoveList>, Problem> {
    key.whole_node()?;
    app.front()?;
    let moving = app.ask(MovingDevices { after: None, limit: 1000 }).await?;
    Ok(Json(MoveList { moves: moving.iter().filter_map(MoveView::of).collect() }))
}

async fn view(app: &App, name: &str) -> Result<CellView, Problem> {
    let cells = app.read_cells().await?;
    let found = cells.iter().find(|found| *found.cell.name == *name);
    found.map(|found| CellView::of(app, found)).ok_or_else(|| unknown_cell(name))
}

/// Asks a cell whether it takes the front's key for all of it.
async fn try_out(app: &App, cell: &CellRecord) -> Result<(), Problem> {
    let client = &app.front()?.client;
    let reply = client.try_call(cell, Call::new("GET", "/v1/admin/keys")).await;
    let wrong = |detail: String, member: &str| Err(Problem::new(Code::InvalidValue, detail).at(member));
    match reply {
        Ok(reply) if reply.status.is_success() => Ok(()),
        Ok(reply) if matches!(reply.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            wrong("the cell does not take `key` for a key of scope `admin`".to_owned(), "/key")
        }
        Ok(reply) => wrong(format!("there is no node of Carillon: it answered {}", reply.status), "/url"),
        Err(super::client::Away(why)) => wrong(format!("the cell does not answer: {why}"), "/url"),
    }
}

fn checked_url(text: &str) -> Result<Box<str>, Problem> {
    let text = text.trim_end_matches('/');
    let uri: Option<Uri> = text.parse().ok().filter(|_| text.len() <= URL_BYTES_MAX);
    let is_one = uri.as_ref().is_some_and(|uri| {
        let is_bare = uri.path_and_query().is_none_or(|path| path.as_str() == "/");
        let has_user = uri.authority().is_none_or(|authority| authority.as_str().contains('@'));
        matches!(uri.scheme_str(), Some("http" | "https")) && is_bare && !has_user
    });
    if is_one {
        return Ok(text.into());
    }
    let detail = "`url` is one such as `https://eu-1.example.com`, without a user or a path";
    Err(Problem::new(Code::InvalidValue, detail).at("/url"))
}

fn checked_weight(weight: u32) -> Result<u32, Problem> {
    if weight <= WEIGHT_MAX {
        return Ok(weight);
    }
    Err(Problem::new(Code::InvalidValue, format!("`weight` is from 0 to {WEIGHT_MAX}")).at("/weight"))
}

fn checked_rate(rate: u32) -> Result<u32, Problem> {
    if (1..=RATE_MAX).contains(&rate) {
        return Ok(rate);
    }
    Err(Problem::new(Code::InvalidValue, format!("`rate` is from 1 to {RATE_MAX} devices per second"))
        .at("/rate"))
}

fn weight() -> u32 {
    100
}

fn rate() -> u32 {
    50
}

impl EndpointsBody {
    fn read(&self) -> CellEndpoints {
        CellEndpoints {
            host: self.host.as_deref().map(Into::into),
            c2s_port: self.c2s_port,
            c2s_tls_port: self.c2s_tls_port,
            websocket_url: self.websocket_url.as_deref().map(Into::into),
        }
    }

    fn of(endpoints: &CellEndpoints) -> EndpointsBody {
        EndpointsBody {
            host: endpoints.host.as_deref().map(str::to_owned),
            c2s_port: endpoints.c2s_port,
            c2s_tls_port: endpoints.c2s_tls_port,
            websocket_url: endpoints.websocket_url.as_deref().map(str::to_owned),
        }
    }
}

impl DrainWord {
    fn read(self) -> Draining {
        match self {
            DrainWord::Off => Draining::Off,
            DrainWord::Running => Draining::Running,
            DrainWord::Paused => Draining::Paused,
        }
    }

    fn of(drain: Draining) -> DrainWord {
        match drain {
            Draining::Off => DrainWord::Off,
            Draining::Running => DrainWord::Running,
            Draining::Paused => DrainWord::Paused,
        }
    }
}

impl CellView {
    fn of(app: &App, found: &CellReport) -> CellView {
        let CellReport { cell, devices, held, held_bytes } = found;
        let known = app.as_front().map(|front| front.client.cell(&cell.name));
        let away = known.as_ref().and_then(|known| known.away());
        let (away_ms, why) =
            away.map(|(since, why)| (since.elapsed().as_millis() as u64, why.into())).unzip();
        CellView {
            cell: cell.name.to_string(),
            url: cell.url.to_string(),
            state: if why.is_some() { "away" } else { "up" },
            why,
            away_ms,
            weight: cell.weight,
            endpoints: EndpointsBody::of(&cell.endpoints),
            drain: DrainWord::of(cell.drain),
            rate: cell.rate,
            devices: *devices,
            held: *held,
            held_bytes: *held_bytes,
            moved: known.map_or(0, |known| known.counts().moved),
        }
    }
}

impl MoveView {
    fn of(placement: &Placement) -> Option<MoveView> {
        let (from, to, state) = match &placement.moving {
            Moving::No => return None,
            Moving::To(to) => (&placement.cell, to, "copying"),
            Moving::From(from) => (from, &placement.cell, "arrived"),
        };
        let device = placement.device.as_str().to_owned();
        Some(MoveView { device, from: from.to_string(), to: to.to_string(), state })
    }
}

const URL_BYTES_MAX: usize = 2048;
const WEIGHT_MAX: u32 = 1_000_000;
const RATE_MAX: u32 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_of_a_cell_has_no_path_and_no_user() {
        for url in ["http://127.0.0.1:8080", "https://eu-1.example.com/", "https://[::1]:8443"] {
            assert!(checked_url(url).is_ok(), "{url}");
        }
        for url in [
            "",
            "eu-1.example.com",
            "ftp://a.example",
            "https://a.example/v1",
            "https://u@a.example",
            "https://a.example?x=1",
        ] {
            assert!(checked_url(url).is_err(), "{url}");
        }
    }
}
