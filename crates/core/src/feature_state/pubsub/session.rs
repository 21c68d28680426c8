//! What a session has seen of topics.

use crate::model::{Revision, TopicId};

/// What a session has seen of topics.
#[derive(Debug, Default)]
pub struct LastItems {
    /// The shard's count ([`crate::shard::Subscribers::clock`]) when the session was given all last items: events up to then
    /// are not for it.
    pub seen: u64,
    pub(crate) following: Following,
    /// Last items that are still to be given, by topic and revision, in reverse order. One that is not its topic's last item
    /// any more is skipped, because its successor is given as it comes.
    #[expect(clippy::box_collection, reason = "8 bytes of every session instead of 24")]
    pub(crate) rest: Option<Box<Vec<(TopicId, Revision)>>>,
}

// The count is that of this process. Another one counts from 0: no event of its own came before the session.
crate::form! { struct LastItems { seen: omitted(0), following, rest } }

/// Whether the account's subscriptions are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Following {
    /// They are known from its login and the messages since.
    #[default]
    Known,
    /// They changed while the session logged in: the store is asked again.
    Asked,
    /// They changed after the store was asked again.
    Outdated,
    /// A dead node left the session. What was published meanwhile is being read; then it is asked for them.
    Behind,
}

// The answer that is awaited does not come to another process: it asks again.
crate::form! { enum Following { 0 = Known, 1 = Asked, 2 = Outdated, 3 = Behind } }

impl LastItems {
    pub(crate) fn outdate(&mut self) {
        if self.following == Following::Asked {
            self.following = Following::Outdated;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::testing::proves;
    use crate::form::{decode, encode, testing::AT_ONCE};

    #[test]
    fn its_form() {
        let rest = Some(Box::new(vec![(TopicId(300), Revision(1 << 40)), (TopicId(1), Revision(2))]));
        for (name, following) in [
            ("pubsub", Following::Known),
            ("pubsub, asked", Following::Asked),
            ("pubsub, outdated", Following::Outdated),
            ("pubsub, behind", Following::Behind),
        ] {
            proves(name, &LastItems { seen: 0, following, rest: rest.clone() });
        }
        // The count of another process begins anew.
        let state = LastItems { seen: 77, ..LastItems::default() };
        let read: LastItems = decode(&encode(&state, 0), AT_ONCE).unwrap();
        assert_eq!(read.seen, 0);
    }
}
