//! `/healthz` and `/readyz`: whether the process lives, and whether it should be given work.

use crate::app::App;
use crate::cluster::status::READ_MAX;
use crate::cluster::why_fenced;
use crate::intake;
use crate::problem::Problem;
use crate::values::schema;
use axum::extract::State;
use carillon_core::ports::StoreHealth;
use carillon_core::ports::bus::BusFigures;
use std::time::Duration;

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
/// `503` before it is ready, while it drains or shuts down, and while it does not act because the other nodes of its cell may have buried it; `detail` says
/// which. `200` also while the store fails, may be damaged or takes seconds to commit, and while the bus of the cell is away: sessions go on, and neither
/// a restart nor another node would help. Likewise while no messages can be taken from a queue. The body says it then, behind `ready`.
#[utoipa::path(
    get, path = "/readyz", operation_id = "isReady", tag = "operation",
    responses((status = 200, description = "The node takes sessions", body = String, content_type = "text/plain"), schema::Problems)
)]
pub(crate) async fn ready(State(app): State<App>) -> Result<String, Problem> {
    if *app.closing.borrow() {
        return Err(Problem::unavailable("shutting down: takes no new sessions"));
    }
    if app.node.drain_progress().is_some() {
        return Err(Problem::unavailable("draining: takes no new sessions"));
    }
    let cell = app.node.cell();
    if let Some(fence) = cell.as_ref().and_then(|cell| cell.fence) {
        return Err(Problem::unavailable(why_fenced(fence)));
    }
    if !app.node.is_ready() {
        return Err(Problem::unavailable("takes no new sessions: starting, ending, or a shard has failed"));
    }
    let mut said = said(app.node.store_health());
    if let Some(cell) = cell {
        said.push_str(&of_cell(&app.node.bus().unwrap_or_default(), cell.read.elapsed()));
    }
    said.extend(
        app.intakes().iter().filter_map(|queue| of_queue(&queue.options.name, &queue.figures().state)),
    );
    Ok(said + "\n")
}

/// What is wrong with the engines of the cell.
fn of_cell(bus: &BusFigures, unread: Duration) -> String {
    let mut said = String::new();
    if !bus.is_connected {
        said.push_str("; the bus of the cell is away");
    }
    if unread > READ_MAX {
        said.push_str(&format!("; who the nodes of the cell are was read {} s ago", unread.as_secs()));
    }
    said
}

/// What is wrong with a queue that messages are taken from.
fn of_queue(name: &str, state: &intake::QueueState) -> Option<String> {
    state.why().map(|why| format!("; no messages are taken from the queue {name}: {why}"))
}

/// A commit that takes longer is said to be slow.
const SLOW: Duration = Duration::from_secs(1);

fn said(store: StoreHealth) -> String {
    let mut said = "ready".to_owned();
    if store.fails {
        said.push_str("; the store fails");
    }
    if store.may_be_damaged {
        said.push_str("; the store may be damaged");
    }
    if let Some(took) = store.committing.filter(|took| *took >= SLOW) {
        said.push_str(&format!("; a commit of the store has been under way for {} s", took.as_secs()));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_the_store_is_said() {
        let (fails, may_be_damaged) = (true, true);
        let committing = |ms| Some(Duration::from_millis(ms));
        assert_eq!(said(StoreHealth::default()), "ready");
        assert_eq!(said(StoreHealth { committing: committing(999), ..StoreHealth::default() }), "ready");
        assert_eq!(said(StoreHealth { fails, ..StoreHealth::default() }), "ready; the store fails");
        assert_eq!(
            said(StoreHealth { fails, may_be_damaged, committing: committing(2500) }),
            "ready; the store fails; the store may be damaged; a commit of the store has been under way for 2 s"
        );
    }

    #[test]
    fn what_is_wrong_with_a_queue_is_said() {
        assert_eq!(of_queue("orders", &intake::QueueState::Resting), None);
        let away = intake::QueueState::Away("no route".into());
        let said = "; no messages are taken from the queue orders: no route";
        assert_eq!(of_queue("orders", &away).as_deref(), Some(said));
    }

    #[test]
    fn what_is_wrong_with_the_engines_of_a_cell_is_said() {
        let connected = BusFigures { is_connected: true, ..BusFigures::default() };
        let second = Duration::from_secs(1);
        assert_eq!(of_cell(&connected, second), "");
        assert_eq!(of_cell(&BusFigures::default(), second), "; the bus of the cell is away");
        assert_eq!(of_cell(&connected, 7 * second), "; who the nodes of the cell are was read 7 s ago");
    }
}
