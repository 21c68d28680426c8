//! Implementations of the ports of `carillon-core`: one folder per technology, one conformance suite per port.
//!
//! - [`sqlite`] is the embedded [`Store`]: one file, one writer that groups commits, a few
//!   readers that coalesce questions.
//! - `postgres` is the one on a PostgreSQL server (cargo feature `postgres`).
//! - [`memory`] has the bus and the claims of a cell within one process; `nats` the bus over a NATS server (cargo feature `nats`), `redis` the
//!   claims in Redis or Valkey (cargo feature `redis`); `bus` is what every bus is made of.
//! - `rows` is what stores that keep rows share.
//! - `engine` is what a store with threads of its own is made of, whatever it keeps its data in.
//! - [`check`] looks for what is wrong with a store.
//! - `migrate` copies a store between SQLite and PostgreSQL; `moving` is what both have in common for that.
//! - [`conformance`] is what every store must pass, as plain functions, so that each implementation's tests are a loop.

#[cfg(any(feature = "postgres", feature = "redis"))]
mod answering;
mod bus;
pub mod check;
pub mod conformance;
mod engine;
pub mod memory;
#[cfg(feature = "postgres")]
pub mod migrate;
#[cfg(feature = "postgres")]
mod moving;
#[cfg(feature = "nats")]
pub mod nats;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "redis")]
pub mod redis;
mod rows;
#[cfg(any(feature = "nats", feature = "redis"))]
mod secret;
pub mod sqlite;
#[cfg(any(feature = "nats", feature = "postgres", feature = "redis"))]
mod tls_fault;

use carillon_core::ports::Store;
use std::sync::Arc;

pub use bus::Options as BusOptions;
#[cfg(any(feature = "nats", feature = "redis"))]
pub use secret::{Secret, SecretError};
pub use sqlite::{
    Contents, CopyError, OpenError, Options as StoreOptions, Restored, SCHEMA, backup, restore,
};

/// Opens the store of a node.
///
/// # Errors
/// When it is in use, belongs to another program or a newer server, is damaged, or cannot be used.
pub fn open(options: StoreOptions) -> Result<Arc<dyn Store>, OpenError> {
    Ok(Arc::new(sqlite::SqliteStore::open(options)?))
}
