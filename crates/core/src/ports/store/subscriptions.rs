//! Subscriptions: which accounts follow which topics.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::Missing;
use super::question::questions;
use crate::model::{DomainId, Item, TopicId, UnixMs};
use carillon_wire::jid::BareJid;
use std::sync::Arc;

questions! {
    Subscriptions,
    reads {
        SubscriptionsOf => Vec<(TopicId, Box<str>)>,
        IsSubscribed => bool,
        Subscribers => Vec<BareJid>,
        SubscriberCount => u64,
    }
    writes {}
    once {
        Subscribe => SubscribeAnswer,
        Unsubscribe => Result<(), Missing>,
    }
}

/// The topics an account follows, ordered by name.
#[derive(Clone, Debug)]
pub struct SubscriptionsOf {
    pub domain: DomainId,
    pub local: Box<str>,
}

/// Whether an account follows a topic.
#[derive(Clone, Debug)]
pub struct IsSubscribed {
    pub topic: TopicId,
    pub domain: DomainId,
    pub local: Box<str>,
}

/// The followers of a topic in the order of their JIDs, those after `after`, at most `limit`.
#[derive(Clone, Debug)]
pub struct Subscribers {
    pub topic: TopicId,
    pub after: Option<BareJid>,
    pub limit: u16,
}

/// How many accounts follow a topic.
#[derive(Clone, Debug)]
pub struct SubscriberCount {
    pub topic: TopicId,
}

/// Follows a topic, unless that would be new and the account follows `max` topics already.
#[derive(Clone, Debug)]
pub struct Subscribe {
    pub topic: TopicId,
    pub domain: DomainId,
    pub local: Box<str>,
    pub max: u32,
    pub now: UnixMs,
}

/// What became of [`Subscribe`].
#[derive(Clone, Debug)]
pub enum SubscribeAnswer {
    /// It follows the topic: whether this is new, and the topic's last kept item.
    Subscribed { new: bool, last: Option<Arc<Item>> },
    /// The account follows as many topics as it may.
    Full,
    /// There is no such account or topic.
    Missing,
}

/// Ends a subscription. [`Missing`] if there was none.
#[derive(Clone, Debug)]
pub struct Unsubscribe {
    pub topic: TopicId,
    pub domain: DomainId,
    pub local: Box<str>,
}
