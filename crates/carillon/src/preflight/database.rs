//! The PostgreSQL that the store is on: whether it is there, and is set as a store needs it.

use super::{Finding, Purpose};
use crate::config::Settings;

/// Looks at the server. One that cannot be reached is said by a node that starts anyway, which waits for it a while.
#[cfg(feature = "postgres")]
pub(super) fn inspect(settings: &Settings, purpose: Purpose) -> Vec<Finding> {
    use carillon_backend::postgres;
    if settings.node.store_url.is_empty() {
        return Vec::new();
    }
    let found = crate::assemble::postgres(settings)
        .and_then(|options| postgres::inspect(options).map_err(|e| e.to_string()));
    match (found, purpose) {
        (Ok(found), _) => found.iter().map(finding).collect(),
        (Err(_), Purpose::Start) => Vec::new(),
        (Err(why), Purpose::Check | Purpose::Production) => {
            vec![Finding::error("store.url", why, "see docs/book/postgresql.md")]
        }
    }
}

#[cfg(feature = "postgres")]
fn finding(found: &carillon_backend::postgres::Finding) -> Finding {
    let (what, remedy) = (found.what(), found.remedy());
    if found.stops() {
        Finding::error("store.url", what, remedy)
    } else {
        Finding::warning("store.url", what, remedy)
    }
}

/// A binary without PostgreSQL looks at none.
#[cfg(not(feature = "postgres"))]
pub(super) fn inspect(settings: &Settings, _: Purpose) -> Vec<Finding> {
    let is_set = !settings.node.store_url.is_empty();
    let missing = || {
        let what = "this binary was built without PostgreSQL";
        Finding::error("store.url", what, "build it with `--features postgres`")
    };
    is_set.then(missing).into_iter().collect()
}
