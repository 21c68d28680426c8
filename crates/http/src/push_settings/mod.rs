//! What an operator says of push: the apps, the words that devices show, and the key by which push services know this server.
//!
//! They are options of the node; `crate::push` and `crate::push_service` work by them.

pub(crate) mod apps;
pub(crate) mod jwt;
pub(crate) mod templates;
pub(crate) mod vapid;
