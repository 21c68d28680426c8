//! The live upgrade: a node goes on in the process of another binary, and no client notices.
//!
//! | module | what is in it |
//! |---|---|
//! | `predecessor` | the process that hands over |
//! | `successor` | the process that takes over |
//! | `wire`, `channel` | what they say to each other, and how it gets across |
//! | `guardian` | what the old process stays for |
//! | [`control`] | where `carillon upgrade` asks for it |
//!
//! docs/adr/0020 says why it is like this.

mod channel;
pub mod control;
mod guardian;
mod options;
mod predecessor;
mod successor;
mod wire;

pub use guardian::Guardian;
pub(crate) use guardian::Remains;
pub use options::Options;
pub use predecessor::{Departure, Gone, HandOverError, Handed, Timeouts};
pub use successor::{is_successor, run};

/// The variable by which a process knows that it takes over from another, which its standard input leads to.
const VARIABLE: &str = "CARILLON_UPGRADE";
