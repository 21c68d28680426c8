//! Reporting notifications: their states to those who wait for them, their ends to the counters and the event log.

use super::hops;
use crate::Effect;
use crate::command::StateChange;
use crate::event::{Entry, Kind, end_word};
use crate::model::*;
use crate::session::Cx;
use NotificationState::{
    Accepted, Acknowledged, Cancelled, Dropped, Expired, Opened, Replaced, Scheduled, Sent, Stored,
};
use std::sync::Arc;

/// Keeps a trace in memory while the notification is on its way, and for some time after.
pub(super) fn keep_trace(trace: Trace, cx: &mut Cx<'_>) {
    let bytes_max = cx.shard.settings.limits.traces_bytes;
    cx.features.notifications.put(trace, bytes_max);
}

/// Reports a state to those who wait for it.
pub(super) fn report(trace: &Trace, cx: &mut Cx<'_>) {
    if !cx.out.watched.contains(trace.state) {
        return;
    }
    let Some(domain) = cx.shard.domains.named(trace.to.domain()) else { return };
    let change = StateChange { domain: domain.id, trace: Arc::new(trace.clone()) };
    cx.out.push(Effect::StateChange(change));
}

/// Counts a notification that ended, and reports its state.
pub(super) fn report_end_of(trace: &Trace, cx: &mut Cx<'_>) {
    if let Some(domain) = cx.shard.domains.named(trace.to.domain()).map(|domain| domain.id) {
        report_end(trace, domain, cx);
    }
}

/// Counts a notification of this domain that ended, and reports its state.
pub(super) fn report_end(trace: &Trace, domain: DomainId, cx: &mut Cx<'_>) {
    count_end(trace.state, trace.reason, domain, cx);
    hops::ended(trace.id, trace.state, trace.reason, cx);
    if trace.state != Acknowledged {
        cx.out.journal.note(cx.now.unix, Kind::Drop, || Entry::dropped(trace));
    }
    if trace.is_kept() && !cx.pipeline.event.is_empty() {
        let event = Event::Notification(trace.clone());
        for hook in &cx.pipeline.event {
            hook(&event, cx);
        }
    }
    report(trace, cx);
}

/// Counts a notification of this domain that ended.
pub(super) fn count_end(
    state: NotificationState,
    reason: Option<DropReason>,
    domain: DomainId,
    cx: &mut Cx<'_>,
) {
    let counters = &mut cx.shard.counters;
    match state {
        Acknowledged => {
            counters.notifications_acknowledged += 1;
            counters.domains.of(domain).notifications_acknowledged += 1;
        }
        Expired | Replaced | Cancelled | Dropped => {
            counters.notifications_ended.count(end_word(state, reason));
            counters.domains.of(domain).notifications_ended += 1;
        }
        // That a link was followed is no end, and is counted where links are.
        Scheduled | Accepted | Stored | Sent | Opened => {}
    }
}
