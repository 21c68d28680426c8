//! The PostgreSQL that the store is on: whether it is there, and is set as a store needs it.

use super::{Finding, Purpose};
use crate::backends::postgres;
use crate::config::Settings;

/// Looks at the server. One that cannot be reached is said by a node that starts anyway, which waits for it a while.
pub(super) fn inspect(settings: &Settings, purpose: Purpose) -> Vec<Finding> {
    if settings.node.store_url.is_empty() {
        return Vec::new();
    }
    if !cfg!(feature = "postgres") {
        let what = "this binary was built without PostgreSQL";
        return vec![Finding::error("store.url", what, "build it with `--features postgres`")];
    }
    match (postgres::inspect(settings), purpose) {
        (Ok(found), _) => found.iter().map(finding).collect(),
        (Err(_), Purpose::Start) => Vec::new(),
        (Err(why), Purpose::TakeOver | Purpose::Check | Purpose::Production) => {
            vec![Finding::error("store.url", why, "see docs/book/postgresql.md")]
        }
    }
}

fn finding(found: &postgres::Finding) -> Finding {
    let (what, remedy) = (found.what(), found.remedy());
    if found.stops() {
        Finding::error("store.url", what, remedy)
    } else {
        Finding::warning("store.url", what, remedy)
    }
}
