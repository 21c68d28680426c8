//! What the nodes of a cell share, but for the store: buses and claims against the suites that each must pass, over proxies that cut and
//! stall, and against what only one of them can do wrong.

#[cfg(any(feature = "nats", feature = "redis"))]
mod certificates;
#[cfg(feature = "nats")]
mod jetstream;
mod memory;
#[cfg(feature = "nats")]
mod nats;
#[cfg(any(feature = "nats", feature = "redis"))]
mod proxy;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "nats", feature = "redis"))]
mod server;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs each, and fails with the names of all that failed. `CASE=name` runs those alone whose names contain it.
fn each<'a>(cases: impl Iterator<Item = (&'a str, Box<dyn FnOnce() + 'a>)>) {
    let wanted = std::env::var("CASE").unwrap_or_default();
    let failed: Vec<&str> = cases
        .filter(|(name, _)| name.contains(&wanted))
        .filter_map(|(name, run)| {
            println!("{name}");
            catch_unwind(AssertUnwindSafe(run)).is_err().then_some(name)
        })
        .collect();
    assert!(failed.is_empty(), "failed: {failed:#?}");
}
