//! Stream management: what is known of a session, and what is kept on a shard.

mod inbound;
mod queue;
mod session;
mod shard;

pub(crate) use inbound::Request;
pub(crate) use queue::{Bounds, Entry, Next, TooMany};
pub use session::StreamManagement;
pub(crate) use session::{Origin, Sent};
pub use shard::Queued;
