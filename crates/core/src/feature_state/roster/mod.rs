//! The roster: what is known of a session and of an account, and what is kept on a shard.

mod account;
mod session;
mod shard;

pub use account::Contacts;
pub(crate) use account::PackedContact;
pub use session::RosterInterest;
pub use shard::Paces;
