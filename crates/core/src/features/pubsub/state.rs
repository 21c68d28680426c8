//! What a session has seen of topics.

use crate::model::{Revision, TopicId};

/// What a session has seen of topics.
#[derive(Debug, Default)]
pub struct State {
    /// It was given all last items when the shard's count ([`crate::shard::Subscribers::clock`]) was this: what had come by then is
    /// not for it.
    pub seen: u64,
    pub(super) following: Following,
    /// Last items that are still to be given, by topic and revision, the first one last. One that is not its topic's last item any
    /// more is passed over: what took its place is given as it happens.
    #[expect(clippy::box_collection, reason = "8 bytes of every session instead of 24")]
    pub(super) rest: Option<Box<Vec<(TopicId, Revision)>>>,
}

/// Whether it is known what the session's account follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Following {
    /// As far as its login and the messages since tell.
    #[default]
    Known,
    /// It changed while the session logged in: the store is asked again.
    Asked,
    /// It changed since the store was asked.
    Outdated,
}

impl State {
    pub(super) fn outdate(&mut self) {
        if self.following == Following::Asked {
            self.following = Following::Outdated;
        }
    }
}
