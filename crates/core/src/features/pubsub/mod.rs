//! Topics as the nodes of a pubsub service.

use crate::hook::{Feature, Hooks};

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "pubsub",
    about: "Topics as the nodes of a pubsub service.",
    specs: &[],
    server_features: &[],
    account_features: &[],
    inline_features: &[],
    hooks: Hooks::NONE,
};

use crate::model::{Revision, TopicId};
use crate::node::{Cx, Sessions};
use crate::ports::Answer;
use crate::session::Live;
use crate::topic::Notice;
use carillon_wire::jid::BareJid;
use std::sync::Arc;

/// What a session has seen of topics.
#[derive(Debug, Default)]
pub struct State {
    /// It was given the last items of all topics as of this revision: older notices are not for it.
    pub seen: Revision,
}

/// A question about no one topic that waits for the store.
#[derive(Debug)]
pub struct Then {}

/// Gives a notice to a follower, if it is for it.
pub fn deliver(_live: &mut Live, _notice: &Arc<Notice>, _cx: &mut Cx<'_>) {}

/// An account follows a topic from now on.
pub fn subscribed(
    _account: &BareJid,
    _topic: TopicId,
    _last: Option<Arc<Notice>>,
    _sessions: &mut Sessions,
    _cx: &mut Cx<'_>,
) {
}

/// An account follows a topic no longer.
pub fn unsubscribed(_account: &BareJid, _topic: TopicId, _sessions: &mut Sessions, _cx: &mut Cx<'_>) {}

/// The store answered.
pub fn answered(_then: Then, _answer: Answer, _sessions: &mut Sessions, _cx: &mut Cx<'_>) {}

/// After initial presence: gives the last items of the topics that send them.
pub fn initial(_live: &mut Live, _presence: &carillon_wire::stanza::Stanza, _cx: &mut Cx<'_>) {}
