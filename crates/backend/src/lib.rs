//! Implementations of the ports of `carillon-core`: one folder per technology, one conformance suite per port.
//!
//! - [`sqlite`] is the embedded [`Store`](carillon_core::ports::Store): one file, one writer that groups commits, a few
//!   readers that coalesce questions.
//! - [`conformance`] is what every store must pass, as plain functions, so that each implementation's tests are a loop.

pub mod conformance;
pub mod sqlite;
