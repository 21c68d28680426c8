//! Offline messages: what is known of a session, and what is kept on a shard.

mod session;
mod shard;

pub use session::State;
pub(crate) use session::{Given, Message};
pub use shard::Pending;
