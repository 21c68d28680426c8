//! The spans of notifications of the recent past, for the webhooks that tell of them.

use carillon_core::model::{NotificationId, TraceContext};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Notifications that are remembered; of older ones webhooks tell without a trace.
const RECENT_MAX: usize = 4096;

/// The spans of notifications of the recent past.
#[derive(Default)]
pub(super) struct Recent(Mutex<VecDeque<(NotificationId, TraceContext)>>);

impl Recent {
    /// A notification has a span.
    pub(super) fn add(&self, id: NotificationId, context: TraceContext) {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() >= RECENT_MAX {
            recent.pop_front();
        }
        recent.push_back((id, context));
    }

    /// The spans of these, in their order.
    pub(super) fn of(&self, ids: impl Iterator<Item = NotificationId>) -> Vec<TraceContext> {
        let recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.is_empty() {
            return Vec::new();
        }
        let find = |id| recent.iter().rev().find(|(of, _)| *of == id).map(|(_, context)| *context);
        ids.filter_map(find).collect()
    }
}
