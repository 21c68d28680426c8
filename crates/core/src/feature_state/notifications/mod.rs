//! Notifications: what is known of a session, and what is kept on a shard.

mod ledger;
mod open_broadcasts;
mod session;

pub use ledger::Ledger;
pub(crate) use ledger::{Recipient, Withheld};
pub(crate) use open_broadcasts::{Open, Pair};
pub(crate) use session::InFlight;
pub use session::NotificationsInFlight;
