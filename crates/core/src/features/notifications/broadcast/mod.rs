//! Broadcasts: one notification for every account of a domain. What a shard knows of those that are open, who is given them, and that the store
//! is told who acknowledged them.
//!
//! ```text
//!  news ─► open ─► walk, a slice at a time ─► session ─► acknowledged ─► written ─► the account is never given it again
//!                     └─► those that come later are asked about first
//! ```
//!
//! A walk over the sessions gives a broadcast to those that are there. It asks the store about nobody where nobody can have acknowledged it: the
//! shard heard of it when it was new, and is of a node alone. In all other cases, and of each session that comes later, the store says
//! first which accounts have.

mod ends;
mod news;
mod walk;

pub(super) use ends::{acknowledged, given_up, retry, tick};
pub(super) use news::{count_reached, heard};
pub(super) use walk::{came, is_over, made_room, walk};
