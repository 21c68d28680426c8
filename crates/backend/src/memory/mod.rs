//! Bus and claims within one process: for a node that runs alone, and for tests that run several nodes.

mod bus;
mod claims;

pub use bus::{Fault, Hub};
pub use claims::Homes;
