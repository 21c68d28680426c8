//! The process as the operating system and its service manager see it.
//!
//! - [`memory`] keeps its memory to itself.
//! - [`signal`] is what SIGHUP, SIGUSR2, SIGTERM and SIGINT ask for.
//! - [`supervisor`] tells the service manager how the node is.
//! - [`telemetry`] is the log on standard error.

pub mod memory;
pub mod signal;
pub mod supervisor;
pub mod telemetry;
