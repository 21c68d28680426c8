//! Kept notifications that were given to a connection, until the store is told so. Most are acknowledged before that, and never are.

use crate::model::{Mono, NotificationId, UnixMs};
use std::collections::VecDeque;

/// Notifications that were given lately, oldest first.
#[derive(Debug, Default)]
pub(super) struct Sent(VecDeque<SentNotification>);

#[derive(Clone, Copy, Debug)]
struct SentNotification {
    id: NotificationId,
    at: UnixMs,
    due: Mono,
}

impl Sent {
    /// One was given now. Past the bound the oldest is forgotten: the store learns of it when it ends.
    pub(super) fn note(&mut self, id: NotificationId, at: UnixMs, now: Mono) {
        if self.0.len() == NOTED_MAX {
            self.0.pop_front();
        }
        self.0.push_back(SentNotification { id, at, due: now.plus(DELAY_MS) });
    }

    /// When the store is to be told of the oldest.
    pub(super) fn due(&self) -> Option<Mono> {
        self.0.front().map(|given| given.due)
    }

    /// Takes those that are due, and when they were given.
    pub(super) fn take_due(&mut self, now: Mono) -> Vec<(NotificationId, UnixMs)> {
        if self.due().is_none_or(|due| due > now) {
            return Vec::new();
        }
        // All of them: the store is told of many at once, not of one at a time.
        let due = std::mem::take(&mut self.0);
        due.into_iter().map(|given| (given.id, given.at)).collect()
    }
}

/// For so long a client may take to acknowledge without a write for what it was given.
const DELAY_MS: u64 = 1000;
/// Notifications that are noted: 3 MiB.
const NOTED_MAX: usize = 1 << 16;
