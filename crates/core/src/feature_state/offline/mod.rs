//! Offline messages: what is known of a session, and what is kept on a shard.

mod session;
mod shard;

pub use session::OfflineInFlight;
pub(crate) use session::{GivenMessage, Message};
pub use shard::Pending;
