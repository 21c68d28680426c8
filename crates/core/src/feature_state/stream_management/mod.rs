//! Stream management: what is known of a session.

mod inbound;
mod queue;
mod session;

pub(crate) use inbound::Request;
pub(crate) use queue::{Bounds, Entry, Next, TooMany};
pub use session::StreamManagement;
pub(crate) use session::{Origin, Sent};
