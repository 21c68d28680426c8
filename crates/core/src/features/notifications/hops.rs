//! Steps of notifications that are followed.

use crate::Effect;
use crate::model::{DropReason, Hop, HopStep, NotificationId, NotificationState};
use crate::session::Cx;

/// Tells that a notification reached a step, if it is followed.
pub(super) fn note(id: NotificationId, cx: &mut Cx<'_>, step: impl FnOnce() -> HopStep) {
    if let Some(context) = cx.features.notifications.hops.context_of(id) {
        cx.out.push(Effect::Hop(Box::new(Hop { id, context, step: step() })));
    }
}

/// Tells that it has ended, and follows it no more.
pub(super) fn ended(
    id: NotificationId,
    state: NotificationState,
    reason: Option<DropReason>,
    cx: &mut Cx<'_>,
) {
    note(id, cx, || HopStep::Ended(state, reason));
    cx.features.notifications.hops.forget(id);
}
