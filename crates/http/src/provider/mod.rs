//! The provider API: for those who send.

pub(crate) mod conversations;
pub(crate) mod events;
mod idempotency;
pub(crate) mod items;
pub(crate) mod messages;
pub(crate) mod notifications;
pub(crate) mod presence;
pub(crate) mod topics;
