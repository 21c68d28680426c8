//! Who goes on with an answer of the store.

use crate::features::{notifications, offline, pubsub, registration};
use crate::model::ConnId;
use crate::topic;

/// Who goes on with an answer of the store.
#[derive(Debug)]
pub enum Then {
    /// A connection that logs in or registers.
    Login(ConnId),
    /// The home of topics.
    Topic(topic::Then),
    /// The pubsub service, for questions about no one topic.
    Pubsub(pubsub::Then),
    /// Notifications.
    Notification(notifications::Then),
    /// Offline messages.
    Offline(offline::Then),
    /// An account that changes or removes itself.
    Registration(registration::Then),
    /// Nobody: the write was all.
    Nothing,
}
