//! How kept notifications end: the store decides. It is asked until it answers, and what it did is told after that.

use super::{flight, hops, report};
use crate::model::{NotificationId, NotificationState};
use crate::ports::Fault;
use crate::ports::store::notifications::{EndNotifications, NotificationChange};
use crate::session::Cx;
use crate::shard::{End, RefusedWrite};

/// Has the store end a notification.
pub(super) fn end(end: End, cx: &mut Cx<'_>) {
    // Another session has acknowledged it, too: that is one end.
    if cx.features.notifications.begin_end(end.change.id) {
        ask(vec![end], cx);
    }
}

/// Has the store end what it refused to.
pub(super) fn retry(refused: Vec<RefusedWrite>, cx: &mut Cx<'_>) -> Vec<RefusedWrite> {
    let (mut ends, mut others) = (Vec::new(), Vec::new());
    for write in refused {
        match write {
            RefusedWrite::End(end) => ends.push(end),
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
        ends.into_iter().for_each(|end| cx.retry(RefusedWrite::End(end)));
        return;
    };
    cx.shard.retries.succeeded(cx.now.mono);
    for End { domain, change } in ends {
        cx.features.notifications.stop_end(change.id);
        let trace = cx.features.notifications.ended(change.id);
        // How it ended was told by whoever ended it.
        if otherwise.contains(&change.id) {
            continue;
        }
        let Some(mut trace) = trace else {
            report::count_end(change.state, change.reason, domain, cx);
            hops::ended(change.id, change.state, change.reason, cx);
            continue;
        };
        (trace.state, trace.reason, trace.acknowledged_by) =
            (change.state, change.reason, change.acknowledged_by);
        (trace.sent, trace.ended) = (change.sent.or(trace.sent), Some(change.at));
        report::report_end(&trace, domain, cx);
    }
}

/// An end is not asked for any more: the notification may be given again.
pub(super) fn given_up(write: &RefusedWrite, cx: &mut Cx<'_>) {
    if let RefusedWrite::End(end) = write {
        cx.features.notifications.stop_end(end.change.id);
    }
}

/// Notes in the store when notifications were given that have not ended since. What the store does not take is noted later.
pub(super) fn note_sent(cx: &mut Cx<'_>) {
    let given = cx.features.notifications.take_sent(cx.now.mono);
    if given.is_empty() {
        return;
    }
    let changes = given.iter().map(|&(id, at)| NotificationChange {
        id,
        state: NotificationState::Sent,
        sent: Some(at),
        at,
        acknowledged_by: None,
        reason: None,
    });
    cx.ask(EndNotifications { changes: changes.collect() }, move |said, sessions, cx| {
        if said.is_err() {
            given.into_iter().for_each(|(id, at)| cx.features.notifications.note_sent(id, at, cx.now.mono));
            return;
        }
        // Those that no session has any more wait in the store, which says from now on that they were sent.
        for (id, _) in given {
            let Some(trace) = cx.features.notifications.open_trace(id) else { continue };
            if !flight::is_on_its_way(id, &trace.to, sessions) {
                cx.features.notifications.forget_trace(id);
            }
        }
    });
}
