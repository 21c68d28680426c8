//! Notifications that are followed on this shard: each of their steps is told (`Effect::Hop`).

use crate::model::{Map, NotificationId, TraceContext};
use std::collections::VecDeque;

/// Notifications that a shard follows at once. Beyond that the oldest is followed no more.
const FOLLOWED_MAX: usize = 1024;

/// The notifications that are followed: those that an operator asked for, and those that are sampled, by their senders if they wish.
#[derive(Debug, Default)]
pub(crate) struct Hops {
    /// Each with its number in `order`.
    followed: Map<NotificationId, (u64, TraceContext)>,
    /// The same, oldest first, with some that have ended.
    order: VecDeque<(u64, NotificationId)>,
    /// The number of the next one.
    next: u64,
}

impl Hops {
    /// Follows a notification.
    pub(crate) fn follow(&mut self, id: NotificationId, context: TraceContext) {
        self.followed.insert(id, (self.next, context));
        self.order.push_back((self.next, id));
        self.next += 1;
        let is_current = |followed: &Map<_, (u64, _)>, (number, id): &(u64, NotificationId)| {
            followed.get(id).is_some_and(|(of, _)| of == number)
        };
        while self.followed.len() > FOLLOWED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            if is_current(&self.followed, &oldest) {
                self.followed.remove(&oldest.1);
            }
        }
        if self.order.len() > 2 * FOLLOWED_MAX {
            self.order.retain(|entry| is_current(&self.followed, entry));
        }
    }

    /// The trace of a notification that is followed.
    pub(crate) fn context_of(&self, id: NotificationId) -> Option<TraceContext> {
        // A look into an empty map hashes all the same.
        let found = (!self.followed.is_empty()).then(|| self.followed.get(&id)).flatten();
        found.map(|(_, context)| *context)
    }

    /// It has ended.
    pub(crate) fn forget(&mut self, id: NotificationId) {
        if !self.followed.is_empty() {
            self.followed.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_followed_no_more() {
        let mut hops = Hops::default();
        let context = |n| TraceContext { trace: n, span: 1 };
        for n in 0..=FOLLOWED_MAX as u128 {
            hops.follow(NotificationId(n), context(n));
        }
        assert_eq!(hops.context_of(NotificationId(0)), None);
        assert_eq!(hops.context_of(NotificationId(1)), Some(context(1)));
        hops.forget(NotificationId(1));
        assert_eq!(hops.context_of(NotificationId(1)), None);
        hops.follow(NotificationId(2), context(7));
        assert_eq!(
            (hops.context_of(NotificationId(2)), hops.followed.len()),
            (Some(context(7)), FOLLOWED_MAX - 1)
        );
        // What has ended takes nothing in the end.
        for n in 0..10 * FOLLOWED_MAX as u128 {
            // Those that are followed again, too.
            hops.follow(NotificationId(1 << 32 | n & 7), context(n));
            hops.forget(NotificationId(1 << 32 | n & 7));
        }
        assert_eq!(
            (hops.context_of(NotificationId(2)), hops.followed.len()),
            (Some(context(7)), FOLLOWED_MAX - 1)
        );
        assert!(hops.order.len() <= 2 * FOLLOWED_MAX);
    }
}
