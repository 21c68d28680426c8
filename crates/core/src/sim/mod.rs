//! A node without a machine under it: its shards, a store, links and clients, driven by a seed.
//!
//! Nothing of it is in the binary: it is compiled for tests, and with the feature `sim` (docs/adr/0012). Everything that
//! happens is chosen by whoever drives it, so that the same seed makes the same history, on every machine.

pub mod client;
mod dice;
pub mod program;
pub mod store;
mod trace;
mod world;

pub use dice::Dice;
pub use trace::Trace;
pub use world::{Choice, Estate, Link, Meters, Plan, World};
