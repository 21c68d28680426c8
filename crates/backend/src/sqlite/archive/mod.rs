//! Message archives.
//!
//! A message is written once, at the end of one table, with the accounts in whose archives it is. What is found by account and by conversation
//! is in tables of its own, whose rows lie all over the file: written with each message they would cost four pages a message. So
//! the newest messages are found in memory (`archive_tail`), and enter those tables many at a time, in the order of the tables (`fold`):
//!
//! ```text
//!  KeepMessage ─► archive_message, and the tail in memory
//!                   once the tail is long: ─► archive_entry, archive_conversation, a slice with each commit
//!  ArchivePage ─► these tables up to the fold, the tail behind it, from one snapshot
//! ```
//!
//! How conversations stand (`inbox`) follows from their messages in the same two places.
//!
//! After a start the tail is made again, from the *lists* in which its entries are written many at a time (`list`), and the messages behind
//! the last list.

mod fold;
mod inbox;
mod keep;
mod list;
mod listed;
mod preferences;
mod read;
mod rooms;
mod sweep;

pub(super) use fold::{Plan, is_behind, slice as fold};
pub(super) use list::add as list;
