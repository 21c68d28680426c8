//! The light protocol: topics for followers that do not speak XMPP (docs/book/protocol.md). Frames, the states of a
//! connection, and what the connections of a shard share, as plain data; the machine drives them.

mod error;
pub(crate) mod frame;
mod moved;
mod shared;
mod state;

pub use error::{Ended, Refused};
pub use moved::Moved;
pub use shared::{Shared, Written};
pub use state::{Light, Open, Rest};
