//! What a session has seen of topics.

use crate::model::{Revision, TopicId};

/// What a session has seen of topics.
#[derive(Debug, Default)]
pub struct State {
    /// The shard's count ([`crate::shard::Subscribers::clock`]) when the session was given all last items: events up to then
    /// are not for it.
    pub seen: u64,
    pub(super) following: Following,
    /// Last items that are still to be given, by topic and revision, in reverse order. One that is not its topic's last item
    /// any more is skipped, because its successor is given as it comes.
    #[expect(clippy::box_collection, reason = "8 bytes of every session instead of 24")]
    pub(super) rest: Option<Box<Vec<(TopicId, Revision)>>>,
}

/// Whether the account's subscriptions are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Following {
    /// They are known from its login and the messages since.
    #[default]
    Known,
    /// They changed while the session logged in: the store is asked again.
    Asked,
    /// They changed after the store was asked again.
    Outdated,
}

impl State {
    pub(super) fn outdate(&mut self) {
        if self.following == Following::Asked {
            self.following = Following::Outdated;
        }
    }
}
