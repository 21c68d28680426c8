//! How much capacity a demand needs.
//!
//! A [`Scaler`] is told, one interval after another, what was asked for, what was done, and what is granted now; it answers with a
//! [`Decision`] and its [`Reason`]. It has no clock, no socket and no file (`clippy.toml` forbids them): the same code decides in
//! [`simulate`] and in `carillon autoscale run`.
//!
//! Everything is counted in *units*: 1.0 is what one unit of capacity carries when it is full. A unit is an edge, a pod or one
//! write per second of a table; who measures divides by what a unit carries.
//!
//! - [`settings`]: the policies and their parameters, and the check of both.
//! - [`observation`]: what is measured; [`rate`] makes rates of counters that only rise.
//! - [`scaler`]: the order in which a decision is taken; [`decision`] what it may be.
//! - [`simulate`]: replays a demand second by second against a capacity with a burst allowance.

#![deny(clippy::indexing_slicing, clippy::string_slice, clippy::unwrap_used)]

pub mod decision;
mod history;
mod limits;
pub mod observation;
mod policy;
pub mod rate;
pub mod scaler;
mod season;
pub mod settings;
pub mod simulate;

pub use decision::{Action, Decision, Floor, Reason};
pub use observation::{Granted, Observation};
pub use scaler::Scaler;
pub use settings::{Policy, Settings};
