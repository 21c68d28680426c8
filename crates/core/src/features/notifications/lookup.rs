//! What a sender asks about a notification that it sent, at the account's home: its trace, or that it is cancelled.

use super::report::report_end_of;
use super::{delivery, flight};
use crate::command::Outcome;
use crate::model::*;
use crate::ports::Fault;
use crate::ports::store::notifications::{
    self as stored, CancelNotification, CancelNotificationAnswer, NotificationQuery,
};
use crate::session::{Cx, Sessions};
use crate::{Effect, ReplyTo};

/// Cancels a notification, if no connection was given it.
pub(super) fn cancel(id: NotificationId, reply: ReplyTo, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let known = cx.features.notifications.trace(id);
    let too_late = known.filter(|trace| !trace.is_kept() || flight::is_on_its_way(id, &trace.to, sessions));
    match too_late {
        // It is on its way, as its state tells the sender, or has ended.
        Some(trace) => {
            let outcome = Outcome::Trace(Box::new(trace.clone()));
            cx.out.push(Effect::Reply { to: reply, outcome });
        }
        None => find(id, cx, move |found, sessions, cx| match found {
            // It was given meanwhile: what the device says of it counts.
            Ok(Some(trace)) if flight::is_on_its_way(id, &trace.to, sessions) => {
                let known = cx.features.notifications.trace(id).cloned().map(Box::new);
                answer_trace(Ok(known.or(Some(trace))), reply, cx);
            }
            Ok(Some(trace)) if !trace.state.is_end() => cancel_stored(*trace, reply, cx),
            other => answer_trace(other, reply, cx),
        }),
    }
}

/// Cancels a notification that waits. It is given to nobody while the store is asked.
fn cancel_stored(waiting: Trace, reply: ReplyTo, cx: &mut Cx<'_>) {
    let id = waiting.id;
    if !cx.features.notifications.begin_end(id) {
        // It is ending otherwise.
        return answer_trace(Ok(Some(Box::new(waiting))), reply, cx);
    }
    cx.ask(CancelNotification { id, now: cx.now.unix }, move |said, sessions, cx| {
        cx.features.notifications.stop_end(id);
        let found = match said {
            Ok(CancelNotificationAnswer::Cancelled(trace)) => {
                cx.features.notifications.ended(id);
                report_end_of(&trace, cx);
                Ok(Some(trace))
            }
            // Whoever ended it has told it.
            Ok(CancelNotificationAnswer::Ended(trace)) => Ok(Some(trace)),
            Ok(CancelNotificationAnswer::Missing) => Ok(None),
            Err(fault) => {
                // Whoever passed over it meanwhile is given it after all; but not by a page that may be older than its end.
                if fault == Fault::Unknown {
                    cx.features.notifications.may_have_ended(id);
                }
                delivery::look_again(&waiting.to, sessions, cx);
                Err(fault)
            }
        };
        answer_trace(found, reply, cx);
    });
}

/// The trace of a notification: known here while it is on its way, and by the store before and after.
pub(super) fn trace(id: NotificationId, reply: ReplyTo, cx: &mut Cx<'_>) {
    let known = cx.features.notifications.trace(id).cloned();
    match known {
        // Its end may be committed already, and somebody have read it: what is known here is not told without the store.
        Some(known) if cx.features.notifications.is_ending(id) => {
            cx.ask(stored::Trace { id }, move |found, _, cx| {
                let ended = |found: Option<Box<Trace>>| found.filter(|trace| trace.state.is_end());
                answer_trace(found.map(|found| ended(found).or(Some(Box::new(known)))), reply, cx);
            });
        }
        Some(known) => {
            cx.out.push(Effect::Reply { to: reply, outcome: Outcome::Trace(Box::new(known)) });
        }
        None => cx.ask(stored::Trace { id }, move |found, _, cx| answer_trace(found, reply, cx)),
    }
}

/// The traces in memory here: newer states of stored notifications, and those that are never stored.
pub(super) fn traces_in_memory(
    query: &NotificationQuery,
    ids: &[NotificationId],
    reply: ReplyTo,
    cx: &mut Cx<'_>,
) {
    let (ledger, domains) = (&cx.features.notifications, &cx.shard.domains);
    let matches = |trace: &&Trace| {
        domains.named(trace.to.domain()).is_some_and(|domain| query.matches(trace, domain.id))
    };
    let kept = ids.iter().filter_map(|id| ledger.trace(*id));
    let mut unkept: Vec<&Trace> = ledger.unkept().filter(matches).collect();
    // In the order of the list, which is not quite that in which they came here.
    unkept.sort_unstable_by_key(|trace| std::cmp::Reverse(trace.id));
    unkept.truncate(usize::from(query.limit) + 1);
    let found = kept.chain(unkept).cloned().collect();
    cx.out.push(Effect::Reply { to: reply, outcome: Outcome::Traces(found) });
}

/// Reads what the store has of a notification, to go on with it.
pub(super) fn find(
    id: NotificationId,
    cx: &mut Cx<'_>,
    then: impl FnOnce(Result<Option<Box<Trace>>, Fault>, &mut Sessions, &mut Cx<'_>) + Send + 'static,
) {
    let number = cx.features.notifications.reads().begin();
    cx.ask(stored::Trace { id }, move |said, sessions, cx| {
        then(said, sessions, cx);
        cx.features.notifications.reads().end(number);
    });
}

/// Answers with a trace.
fn answer_trace(found: Result<Option<Box<Trace>>, Fault>, reply: ReplyTo, cx: &mut Cx<'_>) {
    let outcome = match found {
        Ok(Some(trace)) => Outcome::Trace(trace),
        Ok(None) => Outcome::Missing,
        Err(fault) => fault.into(),
    };
    cx.out.push(Effect::Reply { to: reply, outcome });
}
