//! The nodes of the cell: what this one sees of each, and what each says of itself.

use super::status::millis;
use super::{ask, named, view};
use crate::admin::drain::DrainView;
use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::Named;
use crate::problem::Problem;
use crate::values::schema;
use axum::Json;
use axum::extract::State;
use carillon_core::model::{NodeId, Partition};
use carillon_core::ports::Subject;
use carillon_core::ports::bus::{BusFigures, Traffic};
use carillon_server::{CellView, MemberState, MemberView, NodeReport, NodeRequest};
use std::collections::BTreeMap;
use std::time::Instant;

/// The nodes of the cell.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct NodeList {
    /// In the order in which they were started.
    nodes: Vec<NodeView>,
}

/// A node, as the one that is asked sees it.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct NodeView {
    /// Its name.
    node: String,
    /// The number of its process: it has another after a restart.
    number: u32,
    /// `alive`, `leaving` (it has given its homes to the others), `silent` (nothing was heard of it for three seconds) or `dead`.
    state: &'static str,
    /// Whether it is the node that was asked.
    own: bool,
    /// Milliseconds since it was heard; its beats come once per second.
    beat_age_ms: Option<u64>,
    /// How many of the 256 partitions of names are at home there.
    partitions: u16,
    /// The part of all names that is at home there.
    homes: f64,
    /// Records that the node that was asked posted to it.
    posted: u64,
    /// Their bytes.
    posted_bytes: u64,
    /// Records that came from it.
    taken: u64,
    /// Their bytes.
    taken_bytes: u64,
    /// How often something of it was lost on the way.
    gaps: u64,
    /// What it says of itself; `null` where it does not answer.
    report: Option<ReportView>,
}

/// What a node says of itself.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct ReportView {
    /// Its version.
    version: String,
    /// Whether it takes sessions.
    ready: bool,
    /// Milliseconds since it was started.
    uptime_ms: u64,
    /// Its shards.
    shards: u16,
    /// Connections open on it.
    connections: u64,
    /// Of these, those whose sessions are on other nodes.
    relayed: u64,
    /// Sessions on it.
    sessions: u64,
    /// Of these, those whose connections are on other nodes.
    carried: u64,
    /// How far its drain has come.
    drain: DrainView,
}

/// List the nodes of the cell
///
/// Each node that is heard is asked; one that does not answer within three seconds has no `report`. A node that runs alone lists itself. Needs a key of the
/// whole node.
#[utoipa::path(
    get, path = "/v1/cluster/nodes", operation_id = "listNodes", tag = "admin",
    responses((status = 200, description = "The nodes", body = NodeList), schema::Problems)
)]
pub(crate) async fn list(key: Granted<Admin>, State(app): State<App>) -> Result<Json<NodeList>, Problem> {
    key.whole_node()?;
    let cell = view(&app);
    let seen = Seen::by(&app, cell.own);
    let asked = cell.members.iter().map(|member| look(&app, &cell, &seen, member));
    Ok(Json(NodeList { nodes: futures_util::future::join_all(asked).await }))
}

/// Read a node of the cell
///
/// Named by its name or its number. Needs a key of the whole node.
#[utoipa::path(
    get, path = "/v1/cluster/nodes/{node}", operation_id = "getNode", tag = "admin",
    params(("node" = String, Path, description = "Name or number of a node, percent-encoded")),
    responses((status = 200, description = "The node", body = NodeView), schema::Problems)
)]
pub(crate) async fn get(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(node): Named<String>,
) -> Result<Json<NodeView>, Problem> {
    key.whole_node()?;
    let cell = view(&app);
    let member = named(&cell, &node)?;
    Ok(Json(look(&app, &cell, &Seen::by(&app, cell.own), member).await))
}

/// What the node that is asked has counted.
struct Seen {
    homes: BTreeMap<NodeId, u16>,
    bus: BusFigures,
}

impl Seen {
    fn by(app: &App, own: NodeId) -> Seen {
        let homes = match app.node.cell() {
            Some(_) => app.node.homes(),
            None => BTreeMap::from([(own, Partition::COUNT as u16)]),
        };
        Seen { homes, bus: app.node.bus().unwrap_or_default() }
    }
}

async fn look(app: &App, cell: &CellView, seen: &Seen, member: &MemberView) -> NodeView {
    let state = member.state(Instant::now());
    let report = match state {
        // Nobody would answer, or not in time.
        MemberState::Dead | MemberState::Silent => None,
        _ => ask(app, member.node, NodeRequest::Report).await,
    };
    let epoch = carillon_core::model::Epoch(member.node.0.into());
    let Traffic { records: posted, bytes: posted_bytes } =
        seen.bus.posted.get(&Subject::Node(epoch)).copied().unwrap_or_default();
    let Traffic { records: taken, bytes: taken_bytes } =
        seen.bus.heard.get(&epoch).copied().unwrap_or_default();
    let partitions = seen.homes.get(&member.node).copied().unwrap_or_default();
    NodeView {
        node: member.name.to_string(),
        number: member.node.0,
        state: state.word(),
        own: member.node == cell.own,
        beat_age_ms: member.age(Instant::now()).map(millis),
        partitions,
        homes: f64::from(partitions) / Partition::COUNT as f64,
        posted,
        posted_bytes,
        taken,
        taken_bytes,
        gaps: seen.bus.gaps.iter().filter(|((from, _), _)| *from == epoch).map(|(_, count)| count).sum(),
        report: report.map(ReportView::of),
    }
}

impl ReportView {
    fn of(report: NodeReport) -> ReportView {
        ReportView {
            version: report.version.into(),
            ready: report.ready,
            uptime_ms: report.uptime_ms,
            shards: report.shards,
            connections: report.connections,
            relayed: report.relayed,
            sessions: report.sessions,
            carried: report.carried,
            drain: DrainView::of(report.drain),
        }
    }
}
