//! Topics, and which accounts have what rights to them.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::Missing;
use super::question::questions;
use crate::model::{Affiliation, DomainId, TopicConfig, TopicId, TopicRecord, UnixMs};
use carillon_wire::jid::BareJid;

questions! {
    Topics,
    reads {
        Topic => Option<Box<TopicRecord>>,
        Topics => Vec<TopicRecord>,
        AffiliationsOf => Vec<(Box<str>, Affiliation)>,
    }
    writes {
        ConfigureTopic => Result<bool, Missing>,
        SetAffiliations => Result<(), Missing>,
    }
    once {
        CreateTopic => CreateTopicAnswer,
        DeleteTopic => Result<bool, Missing>,
    }
}

/// A topic.
#[derive(Clone, Debug)]
pub struct Topic {
    pub domain: DomainId,
    pub name: Box<str>,
}

/// Topics in the order of their names, those after `after`, at most `limit`.
#[derive(Clone, Debug)]
pub struct Topics {
    pub domain: DomainId,
    pub after: Option<Box<str>>,
    pub limit: u16,
}

/// The topics that an account has an affiliation with, ordered by name.
#[derive(Clone, Debug)]
pub struct AffiliationsOf {
    pub domain: DomainId,
    pub jid: BareJid,
}

/// Creates a topic, unless one of its owners owns `owned_max` topics already, or the domain has as many as its policy allows. `affiliations` as in [`TopicRecord`].
#[derive(Clone, Debug)]
pub struct CreateTopic {
    pub domain: DomainId,
    pub name: Box<str>,
    pub config: TopicConfig,
    pub affiliations: Vec<(BareJid, Affiliation)>,
    pub owned_max: u32,
    pub now: UnixMs,
}

/// What became of [`CreateTopic`].
#[derive(Clone, Debug)]
pub enum CreateTopicAnswer {
    /// The topic was created.
    Created(Box<TopicRecord>),
    /// There is one with this name already.
    Exists,
    /// An owner owns as many topics as it may.
    Full,
    /// The domain has as many topics as its policy's `topics_max` allows.
    DomainFull,
    /// There is no such domain.
    NoDomain,
}

/// Changes a topic's configuration; items over the new bound are removed, at most `items_max` of them. Whether there are more: then it is asked again.
#[derive(Clone, Debug)]
pub struct ConfigureTopic {
    pub topic: TopicId,
    pub config: TopicConfig,
    pub items_max: u32,
}

/// Sets affiliations ([`Affiliation::None`] removes one).
#[derive(Clone, Debug)]
pub struct SetAffiliations {
    pub topic: TopicId,
    pub changes: Vec<(BareJid, Affiliation)>,
}

/// Removes a part of a topic with its items, subscriptions and affiliations: all of it, or `rows_max` rows, about. Whether there is more of it: then it is asked
/// again. What is left of it in between its owners can remove, too.
#[derive(Clone, Debug)]
pub struct DeleteTopic {
    pub topic: TopicId,
    pub rows_max: u32,
}

/// What [`DeleteTopic::rows_max`] is, unless there is a reason: other writes wait for some milliseconds.
pub const TOPIC_PART_ROWS: u32 = 1024;
