//! Implementations of the ports of `carillon-core`: one folder per technology, one conformance suite per port.
//!
//! - [`sqlite`] is the embedded [`Store`]: one file, one writer that groups commits, a few
//!   readers that coalesce questions.
//! - `postgres` is the one on a PostgreSQL server (cargo feature `postgres`).
//! - `rows` is what stores that keep rows share.
//! - `engine` is what a store with threads of its own is made of, whatever it keeps its data in.
//! - [`conformance`] is what every store must pass, as plain functions, so that each implementation's tests are a loop.

pub mod conformance;
mod engine;
#[cfg(feature = "postgres")]
pub mod postgres;
mod rows;
pub mod sqlite;

use carillon_core::ports::Store;
use std::sync::Arc;

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
