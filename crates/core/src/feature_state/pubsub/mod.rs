//! Topics: what is known of a session, and what is kept on a shard.

mod missed;
mod session;

pub use missed::Missed;
pub(crate) use missed::{Read, Reading, Stage};
pub(crate) use session::Following;
pub use session::LastItems;
