//! The live upgrade: a node goes on in the process of another binary, and no client notices.
//!
//! | module | what is in it |
//! |---|---|
//! | `predecessor` | the process that hands over |
//! | `wire`, `channel` | what they say to each other, and how it gets across |
//! | `guardian` | what the old process stays for |
//!
//! The process that takes over is `crate::successor`; `carillon upgrade` asks for it at `crate::control`. docs/adr/0020 says why it is like this.

pub(crate) mod channel;
mod guardian;
mod options;
mod predecessor;
pub(crate) mod wire;

pub use guardian::Guardian;
pub(crate) use guardian::Remains;
pub use options::Options;
pub use predecessor::{Departure, Gone, HandOverError, Handed, Timeouts};

/// The variable by which a process knows that it takes over from another, which its standard input leads to.
pub(crate) const VARIABLE: &str = "CARILLON_UPGRADE";
