//! Reporting notifications: their states to those who wait for them, their ends to the counters and the event log.

use crate::Effect;
use crate::command::StateChange;
use crate::event::{Entry, Kind, end_word};
use crate::model::*;
use crate::session::Cx;
use NotificationState::{
    Accepted, Acknowledged, Cancelled, Dropped, Expired, Replaced, Scheduled, Sent, Stored,
};
use std::sync::Arc;

/// Keeps a trace in memory while the notification is on its way, and for some time after.
pub(super) fn keep_trace(trace: Trace, cx: &mut Cx<'_>) {
    let bytes_max = cx.shard.settings.limits.traces_bytes;
    cx.shard.traces.put(trace, bytes_max);
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
    let counters = &mut cx.shard.counters;
    match trace.state {
        Acknowledged => {
            counters.notifications_acknowledged += 1;
            counters.domains.of(domain).notifications_acknowledged += 1;
        }
        Expired | Replaced | Cancelled | Dropped => {
            counters.notifications_ended.count(end_word(trace.state, trace.reason));
            counters.domains.of(domain).notifications_ended += 1;
            cx.out.journal.note(cx.now.unix, Kind::Drop, || Entry::dropped(trace));
        }
        Scheduled | Accepted | Stored | Sent => {}
    }
    report(trace, cx);
}

/// The end is committed: from now on the store has the trace.
pub(super) fn ended(id: NotificationId, cx: &mut Cx<'_>) {
    cx.shard.retries.ended(id);
    cx.shard.traces.forget(id);
}
