//! Notifications that are followed on this shard: each of their steps is told (`Effect::Hop`).

use crate::model::{NotificationId, TraceContext};
use std::collections::VecDeque;

/// Notifications that a shard follows at once. Beyond that the oldest is followed no more.
const FOLLOWED_MAX: usize = 1024;

/// The notifications that are followed. Few at a time: those that an operator asked for, and those that are sampled.
#[derive(Debug, Default)]
pub(crate) struct Hops(VecDeque<(NotificationId, TraceContext)>);

impl Hops {
    /// Follows a notification.
    pub(crate) fn follow(&mut self, id: NotificationId, context: TraceContext) {
        self.forget(id);
        if self.0.len() >= FOLLOWED_MAX {
            self.0.pop_front();
        }
        self.0.push_back((id, context));
    }

    /// The trace of a notification that is followed.
    // The newest are asked for most.
    pub(crate) fn context_of(&self, id: NotificationId) -> Option<TraceContext> {
        self.0.iter().rev().find(|(of, _)| *of == id).map(|(_, context)| *context)
    }

    /// It has ended.
    pub(crate) fn forget(&mut self, id: NotificationId) {
        if !self.0.is_empty() {
            self.0.retain(|(of, _)| *of != id);
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
        assert_eq!((hops.context_of(NotificationId(2)), hops.0.len()), (Some(context(7)), FOLLOWED_MAX - 1));
    }
}
