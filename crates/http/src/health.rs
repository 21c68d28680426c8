//! `/healthz` and `/readyz`: whether the process lives, and whether it should be given work.

use crate::app::App;
use crate::problem::Problem;
use crate::schema;
use axum::extract::State;

/// Whether the process is alive
#[utoipa::path(
    get, path = "/healthz", operation_id = "isAlive", tag = "operation",
    responses((status = 200, description = "The process lives", body = String, content_type = "text/plain"))
)]
pub(crate) async fn alive() -> &'static str {
    "ok\n"
}

/// Whether the node takes sessions
///
/// `503` before it is ready and while it drains.
#[utoipa::path(
    get, path = "/readyz", operation_id = "isReady", tag = "operation",
    responses((status = 200, description = "The node takes sessions", body = String, content_type = "text/plain"), schema::Problems)
)]
pub(crate) async fn ready(State(app): State<App>) -> Result<&'static str, Problem> {
    if app.node.is_ready() && !*app.closing.borrow() { Ok("ready\n") } else { Err(Problem::unavailable()) }
}
