//! Who goes on with an answer of the store.

use crate::command::ReplyTo;
use crate::features::{notifications, offline, pubsub, registration};
use crate::model::ConnId;
use crate::ports::store::notifications::NotificationChange;
use crate::topic;
use carillon_wire::jid::BareJid;

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
    /// An account's tokens are being taken back, for whoever asked.
    Revoked {
        /// Whose.
        account: BareJid,
        /// Where the outcome goes.
        reply: ReplyTo,
    },
    /// Ends of notifications that the store refused before.
    Owed(Vec<NotificationChange>),
    /// Nobody: the write was all.
    Nothing,
}
