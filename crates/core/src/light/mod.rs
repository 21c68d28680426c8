//! The light protocol: topics for subscribers that speak no XMPP (docs/book/protocol.md). Frames, the states of a connection, and
//! what those of a shard share, as plain data; the machine drives them.

mod error;
pub(crate) mod frame;
mod shared;
mod state;

pub use error::{Ended, Refused};
pub use shared::{Shared, Written};
pub use state::{Light, Open, Rest};
