//! What stores that keep rows share, whatever database keeps them.
//!
//! - [`broadcast`]: broadcasts as they are kept.
//! - [`code`]: enumerations as numbers.
//! - [`event`]: events of rooms as they are kept, and sets of types.
//! - [`idempotency`]: digests of the lines of requests.
//! - [`inbox`]: the order of what is said between two, and in rooms.
//! - [`last`]: the last items of topics in memory, so that logins share them.
//! - [`node`]: what an edit does to a node of an account and its items.
//! - [`page`]: the bounds of a page.
//! - [`payload`]: what notifications carry.
//! - [`push`]: how pushes get to apps.
//! - [`remembered`]: operations, writes that are done once.
//! - [`removal`]: what goes with accounts, domains, topics and rooms.
//! - [`room`]: the archives of rooms.
//! - [`roster`]: how rosters change, on both sides of a subscription.
//! - [`webhook`]: webhooks as they are created, and sets of states.

pub(crate) mod broadcast;
pub(crate) mod code;
pub(crate) mod event;
pub(crate) mod idempotency;
pub(crate) mod inbox;
pub(crate) mod key;
pub(crate) mod last;
pub(crate) mod node;
pub(crate) mod page;
pub(crate) mod payload;
pub(crate) mod push;
pub(crate) mod remembered;
pub(crate) mod removal;
pub(crate) mod room;
pub(crate) mod roster;
pub(crate) mod webhook;
