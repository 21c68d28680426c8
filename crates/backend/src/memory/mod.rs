//! Bus, claims and members of a cell within one process: for a node that runs alone, and for tests that run several nodes.

mod bus;
mod claims;
mod members;
mod session_log;

pub use bus::{Fault, Hub};
pub use claims::Homes;
pub use members::Registry;
pub use session_log::Logs;
