//! The provider API: for those who send.

mod act;
pub(crate) mod blocked;
pub(crate) mod broadcasts;
pub(crate) mod chat;
pub(crate) mod conversations;
pub(crate) mod events;
pub(crate) mod idempotency;
pub(crate) mod items;
pub(crate) mod matches;
pub(crate) mod matchmaking;
pub(crate) mod messages;
pub(crate) mod notifications;
pub(crate) mod presence;
pub(crate) mod rooms;
pub(crate) mod roster;
pub(crate) mod topics;
