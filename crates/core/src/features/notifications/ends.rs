//! How kept notifications end: the store decides. It is asked until it answers, and what it did is told after that.

use super::{delivery, home, report};
use crate::model::{NotificationId, NotificationState, Trace};
use crate::ports::Fault;
use crate::ports::store::notifications::{EndNotifications, NotificationChange};
use crate::session::Cx;
use crate::shard::{End, RefusedWrite};

/// Has the store end a notification.
pub(super) fn end(end: End, cx: &mut Cx<'_>) {
    // Another session has acknowledged it, too: that is one end.
    if cx.shard.retries.begin_end(end.change.id) {
        ask(vec![end], cx);
    }
}

/// Has the store do what it refused to.
pub(super) fn retry(refused: Vec<RefusedWrite>, cx: &mut Cx<'_>) -> Vec<RefusedWrite> {
    let (mut ends, mut others) = (Vec::new(), Vec::new());
    for write in refused {
        match write {
            RefusedWrite::End(end) => ends.push(end),
            RefusedWrite::Store(notification) => home::store(notification, None, cx),
            other => others.push(other),
        }
    }
    if !ends.is_empty() {
        ask(ends, cx);
    }
    others
}

fn ask(ends: Vec<End>, cx: &mut Cx<'_>) {
    let changes = ends.iter().map(|end| end.change.clone()).collect();
    cx.ask(EndNotifications { changes }, move |said, _, cx| answered(ends, said, cx));
}

fn answered(ends: Vec<End>, said: Result<Vec<NotificationId>, Fault>, cx: &mut Cx<'_>) {
    let Ok(otherwise) = said else {
        ends.into_iter().for_each(|end| cx.shard.retries.add(RefusedWrite::End(end), cx.now.mono));
        return;
    };
    cx.shard.retries.succeeded(cx.now.mono);
    for End { domain, change } in ends {
        cx.shard.retries.ended(change.id);
        let trace = committed(change.id, cx);
        // How it ended was told by whoever ended it.
        if otherwise.contains(&change.id) {
            continue;
        }
        let Some(mut trace) = trace else {
            report::count_end(change.state, change.reason, domain, cx);
            continue;
        };
        (trace.state, trace.reason, trace.acknowledged_by) =
            (change.state, change.reason, change.acknowledged_by);
        (trace.sent, trace.ended) = (change.sent.or(trace.sent), Some(change.at));
        report::report_end(&trace, domain, cx);
    }
}

/// The end of a notification is committed: it is not given again, and from now on the store has its trace. What was known of it here.
pub(super) fn committed(id: NotificationId, cx: &mut Cx<'_>) -> Option<Trace> {
    cx.shard.reads.note_ended(id);
    cx.shard.traces.forget(id)
}

/// Notes in the store when notifications were given that have not ended since. What the store does not take is noted later.
pub(super) fn note_sent(cx: &mut Cx<'_>) {
    let due = cx.shard.sent.take_due(cx.now.mono);
    let is_open =
        |id: &NotificationId| cx.shard.traces.find(*id).is_some() && !cx.shard.retries.is_ending(*id);
    let changes: Vec<_> = due
        .into_iter()
        .filter(|(id, _)| is_open(id))
        .map(|(id, at)| NotificationChange {
            id,
            state: NotificationState::Sent,
            sent: Some(at),
            at,
            acknowledged_by: None,
            reason: None,
        })
        .collect();
    if changes.is_empty() {
        return;
    }
    let given: Vec<_> = changes.iter().map(|change| (change.id, change.at)).collect();
    cx.ask(EndNotifications { changes }, move |said, sessions, cx| {
        if said.is_err() {
            given.into_iter().for_each(|(id, at)| cx.shard.sent.note(id, at, cx.now.mono));
            return;
        }
        // Those that no session has any more wait in the store, which says from now on that they were sent.
        for (id, _) in given {
            let Some(trace) = cx.shard.traces.find(id) else { continue };
            if !delivery::is_on_its_way(id, &trace.to, sessions) && !cx.shard.retries.is_ending(id) {
                cx.shard.traces.forget(id);
            }
        }
    });
}
