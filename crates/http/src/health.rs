//! `/healthz` and `/readyz`: whether the process lives, and whether it should be given work.

use crate::app::App;
use crate::problem::Problem;
use crate::schema;
use axum::extract::State;
use carillon_core::ports::StoreHealth;
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
/// `503` before it is ready and while it drains or shuts down; `detail` says which. `200` also while the store fails, may be damaged or takes seconds to commit:
/// sessions go on, and neither a restart nor another node would help. The body says it then, behind `ready`.
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
    if !app.node.is_ready() {
        return Err(Problem::unavailable("takes no new sessions: starting, ending, or a shard has failed"));
    }
    Ok(said(app.node.store_health()))
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
    said.push('\n');
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_the_store_is_said() {
        let (fails, may_be_damaged) = (true, true);
        let committing = |ms| Some(Duration::from_millis(ms));
        assert_eq!(said(StoreHealth::default()), "ready\n");
        assert_eq!(said(StoreHealth { committing: committing(999), ..StoreHealth::default() }), "ready\n");
        assert_eq!(said(StoreHealth { fails, ..StoreHealth::default() }), "ready; the store fails\n");
        assert_eq!(
            said(StoreHealth { fails, may_be_damaged, committing: committing(2500) }),
            "ready; the store fails; the store may be damaged; a commit of the store has been under way for 2 s\n"
        );
    }
}
