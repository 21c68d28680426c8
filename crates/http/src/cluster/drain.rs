//! Draining a node of the cell, by any of its nodes.

use super::{ask, named, view};
use crate::admin::drain::{DrainBody, DrainView};
use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::{JsonBody, Named};
use crate::problem::{Code, Problem};
use crate::values::schema;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_server::{MemberState, NodeReport, NodeRequest};
use std::time::Instant;

/// Drain a node of the cell
///
/// The other nodes keep its names, its topics and its rooms at once. Sessions on it end over the time, as by `PUT /v1/admin/drain`, and their accounts are at home where their
/// clients come next. Connections whose sessions are on other nodes stay until the node ends. Needs a key of the whole node.
#[utoipa::path(
    put, path = "/v1/cluster/nodes/{node}/drain", operation_id = "startNodeDrain", tag = "admin",
    params(("node" = String, Path, description = "Name or number of a node, percent-encoded")),
    request_body = DrainBody,
    responses((status = 202, description = "It has begun", body = DrainView), schema::Problems)
)]
pub(crate) async fn start(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(node): Named<String>,
    JsonBody { value: body, .. }: JsonBody<DrainBody>,
) -> Result<(StatusCode, Json<DrainView>), Problem> {
    key.whole_node()?;
    let sessions = if body.is_by_rate() { sessions_of(&app, &node).await? } else { 0 };
    let (over, to) = body.checked(sessions)?;
    let drain = told(&app, &node, NodeRequest::drain(over, to.as_ref())).await?;
    Ok((StatusCode::ACCEPTED, Json(drain)))
}

/// How far the drain of a node has come
///
/// Needs a key of the whole node.
#[utoipa::path(
    get, path = "/v1/cluster/nodes/{node}/drain", operation_id = "getNodeDrain", tag = "admin",
    params(("node" = String, Path, description = "Name or number of a node, percent-encoded")),
    responses((status = 200, description = "How far it has come", body = DrainView), schema::Problems)
)]
pub(crate) async fn progress(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(node): Named<String>,
) -> Result<Json<DrainView>, Problem> {
    key.whole_node()?;
    told(&app, &node, NodeRequest::Report).await.map(Json)
}

/// Cancel the drain of a node
///
/// It takes its share of the homes, and sessions, again. Needs a key of the whole node.
#[utoipa::path(
    delete, path = "/v1/cluster/nodes/{node}/drain", operation_id = "cancelNodeDrain", tag = "admin",
    params(("node" = String, Path, description = "Name or number of a node, percent-encoded")),
    responses((status = 204, description = "The node is not drained"), schema::Problems)
)]
pub(crate) async fn cancel(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(node): Named<String>,
) -> Result<StatusCode, Problem> {
    key.whole_node()?;
    told(&app, &node, NodeRequest::CancelDrain).await.map(|_| StatusCode::NO_CONTENT)
}

/// How many sessions a node has, or connections where these are more.
async fn sessions_of(app: &App, name: &str) -> Result<u64, Problem> {
    let report = report(app, name, NodeRequest::Report).await?;
    Ok(report.connections.max(report.sessions))
}

async fn told(app: &App, name: &str, request: NodeRequest) -> Result<DrainView, Problem> {
    report(app, name, request).await.map(|report| DrainView::of(report.drain))
}

async fn report(app: &App, name: &str, request: NodeRequest) -> Result<NodeReport, Problem> {
    let cell = view(app);
    let node = named(&cell, name)?;
    if node.state(Instant::now()) == MemberState::Dead {
        return Err(Problem::new(Code::UnknownNode, format!("the node `{}` is dead", node.name)));
    }
    ask(app, node.node, request).await.ok_or_else(Problem::timed_out)
}
