//! Burying a node of the cell because an operator says that it is dead.

use super::{named, view, why_fenced};
use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::{JsonBody, Named};
use crate::problem::{Code, Problem};
use crate::values::schema;
use axum::Json;
use axum::extract::State;
use carillon_server::MemberState;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Why a node is to be buried.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EvictBody {
    /// For the log: 1 to 256 characters.
    #[schema(min_length = 1, max_length = 256)]
    reason: String,
    /// Bury it even if it is heard. False if left out.
    #[serde(default)]
    force: bool,
}

/// What became of a node.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct Evicted {
    /// Its name.
    node: String,
    /// The number of the process that is dead.
    number: u32,
    /// Whether this request buried it; if not, it was dead before.
    buried: bool,
}

/// The longest reason, in characters.
const REASON_MAX: usize = 256;
/// How long the store may take to bury a node.
const BURIAL_MAX: Duration = Duration::from_secs(10);

/// Bury a node of the cell
///
/// It is dead from then on: nothing that it has under way is committed, the others take its homes, and its process ends as soon as it reads that. Nodes
/// that are silent for nine seconds are buried without being asked; this is for not waiting. `409 node-alive` if it is heard, unless `force`
/// is set; a node does not bury itself. Needs a key of the whole node.
#[utoipa::path(
    post, path = "/v1/cluster/nodes/{node}/evict", operation_id = "evictNode", tag = "admin",
    params(("node" = String, Path, description = "Name or number of a node, percent-encoded")),
    request_body = EvictBody,
    responses((status = 200, description = "It is dead", body = Evicted), schema::Problems)
)]
pub(crate) async fn evict(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(node): Named<String>,
    JsonBody { value: body, .. }: JsonBody<EvictBody>,
) -> Result<Json<Evicted>, Problem> {
    key.whole_node()?;
    if !(1..=REASON_MAX).contains(&body.reason.chars().count()) {
        let text = format!("`reason` has 1 to {REASON_MAX} characters");
        return Err(Problem::new(Code::InvalidValue, text).at("/reason"));
    }
    let Some(cell) = app.node.cell() else {
        return Err(Problem::new(Code::NodeAlive, "this node runs alone: there is no other"));
    };
    let found = named(&view(&app), &node)?.clone();
    let state = found.state(Instant::now());
    let evicted = |buried| Json(Evicted { node: found.name.to_string(), number: found.node.0, buried });
    if let Some(fence) = cell.fence {
        return Err(Problem::unavailable(why_fenced(fence)));
    }
    if found.node == cell.own {
        let text = "a node does not bury itself: ask another one, or end its process";
        return Err(Problem::new(Code::NodeAlive, text));
    }
    match state {
        MemberState::Dead => return Ok(evicted(false)),
        MemberState::Alive | MemberState::Leaving if !body.force => {
            let age = found.age(Instant::now()).unwrap_or_default().as_millis();
            let text =
                format!("`{}` was heard {age} ms ago; with `force` it is buried all the same", found.name);
            return Err(Problem::new(Code::NodeAlive, text));
        }
        _ => {}
    }
    let (reply, buried) = oneshot::channel();
    let told = move |buried| {
        // Whoever asked may have gone away.
        let _ = reply.send(buried);
    };
    app.node.bury(found.node, &body.reason, Box::new(told));
    match tokio::time::timeout(BURIAL_MAX, buried).await {
        Ok(Ok(buried)) => Ok(evicted(buried)),
        Ok(Err(_)) => Err(Problem::unavailable("the store cannot be reached, or did not bury the node")),
        Err(_) => Err(Problem::timed_out()),
    }
}
