//! At the account's home: a notification is accepted, stored if its audience is `always`, and given to the account's
//! sessions.

use super::report::{keep_trace, report, report_end, report_end_of};
use super::{delivery, ends};
use crate::command::{Command, Outcome};
use crate::event::{Entry, Kind};
use crate::message::ShardMessage;
use crate::model::*;
use crate::ports::Fault;
use crate::ports::store::accounts::Account;
use crate::ports::store::notifications::{
    self as stored, CancelNotification, CancelNotificationAnswer, NotificationChange, NotificationQuery,
    StoreNotification, StoreNotificationAnswer,
};
use crate::session::{Cx, Sessions};
use crate::shard::{End, RefusedWrite};
use crate::{Effect, ReplyTo};
use NotificationState::{Dropped, Scheduled, Sent, Stored};
use std::sync::Arc;

/// Carries out the commands of providers.
pub(super) fn command(
    command: Command,
    reply: ReplyTo,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) -> Option<(Command, ReplyTo)> {
    match command {
        Command::Notify(notification) => notify(notification, Some(reply), sessions, cx),
        Command::Cancel { id } => cancel(id, reply, sessions, cx),
        Command::Trace { id } => trace(id, reply, cx),
        Command::TracesInMemory { query, ids } => traces_in_memory(&query, &ids, reply, cx),
        other => return Some((other, reply)),
    }
    None
}

/// The store ended one by itself.
pub(super) fn message(
    message: ShardMessage,
    _sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) -> Option<ShardMessage> {
    match message {
        ShardMessage::Expired(trace) => {
            ends::committed(trace.id, cx);
            report_end_of(&trace, cx);
        }
        other => return Some(other),
    }
    None
}

/// Accepts a notification.
fn notify(notification: Arc<Notification>, reply: Option<ReplyTo>, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    cx.shard.counters.notifications_accepted += 1;
    cx.shard.counters.domains.of(notification.domain).notifications_accepted += 1;
    if notification.is_kept() {
        return store(notification, reply, cx);
    }
    // Sent again: not delivered again.
    if let Some(outcome) = remembered(notification.id, cx) {
        return answer(reply, outcome, cx);
    }
    note_accepted(&notification, cx);
    let mut trace = Trace::of(&notification);
    match delivery::deliver(&notification, sessions, cx) {
        Ok(()) => {
            trace.state = Sent;
            trace.sent = Some(cx.now.unix);
            keep_and_answer(trace, reply, cx);
        }
        Err(DropReason::NotConnected) => {
            let (domain, local) = (notification.domain, notification.to.local().unwrap_or_default().into());
            cx.ask(Account { domain, local }, move |said, _, cx| {
                // Sent again meanwhile, when somebody was there.
                if let Some(outcome) = remembered(notification.id, cx) {
                    return answer(reply, outcome, cx);
                }
                match said {
                    Ok(Some(_)) => drop_notification(&notification, DropReason::NotConnected, reply, cx),
                    Ok(None) => drop_notification(&notification, DropReason::UnknownDevice, reply, cx),
                    Err(fault) => answer(reply, fault.into(), cx),
                }
            });
        }
        Err(reason) => drop_notification(&notification, reason, reply, cx),
    }
}

/// What is answered for a notification that is remembered here.
fn remembered(id: NotificationId, cx: &Cx<'_>) -> Option<Outcome> {
    cx.shard.traces.find(id).map(|trace| Outcome::Notified(Box::new(trace.clone())))
}

/// Has the store keep a notification. Durable before acknowledged: the sender hears of it when it is committed.
pub(super) fn store(notification: Arc<Notification>, reply: Option<ReplyTo>, cx: &mut Cx<'_>) {
    let queue_max = cx.shard.settings.limits.pending_notifications;
    let asked = cx.now.unix;
    let ask = StoreNotification { notification: notification.clone(), queue_max, now: asked };
    let number = cx.shard.reads.begin();
    cx.ask(ask, move |said, sessions, cx| {
        store_answered(notification, reply, asked, said, sessions, cx);
        cx.shard.reads.end(number);
    });
}

/// Cancels a notification, if no connection was given it.
fn cancel(id: NotificationId, reply: ReplyTo, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let known = cx.shard.traces.find(id);
    let too_late = known.filter(|trace| !trace.is_kept() || delivery::is_on_its_way(id, &trace.to, sessions));
    match too_late {
        // It is on its way, as its state tells the sender, or has ended.
        Some(trace) => {
            let outcome = Outcome::Trace(Box::new(trace.clone()));
            cx.out.push(Effect::Reply { to: reply, outcome });
        }
        None => find(id, cx, move |found, sessions, cx| match found {
            // It was given meanwhile: what the device says of it counts.
            Ok(Some(trace)) if delivery::is_on_its_way(id, &trace.to, sessions) => {
                let known = cx.shard.traces.find(id).cloned().map(Box::new);
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
    if !cx.shard.retries.begin_end(id) {
        // It is ending otherwise.
        return answer_trace(Ok(Some(Box::new(waiting))), reply, cx);
    }
    cx.ask(CancelNotification { id, now: cx.now.unix }, move |said, sessions, cx| {
        cx.shard.retries.ended(id);
        let found = match said {
            Ok(CancelNotificationAnswer::Cancelled(trace)) => {
                ends::committed(id, cx);
                report_end_of(&trace, cx);
                Ok(Some(trace))
            }
            // Whoever ended it has told it.
            Ok(CancelNotificationAnswer::Ended(trace)) => Ok(Some(trace)),
            Ok(CancelNotificationAnswer::Missing) => Ok(None),
            Err(fault) => {
                // Whoever passed over it meanwhile is given it after all; but not by a page that may be older than its end.
                if fault == Fault::Unknown {
                    cx.shard.reads.note_ended(id);
                }
                delivery::look_again(&waiting.to, sessions, cx);
                Err(fault)
            }
        };
        answer_trace(found, reply, cx);
    });
}

/// The trace of a notification: known here while it is on its way, and by the store before and after.
fn trace(id: NotificationId, reply: ReplyTo, cx: &mut Cx<'_>) {
    let known = cx.shard.traces.find(id).cloned();
    match known {
        // Its end may be committed already, and somebody have read it: what is known here is not told without the store.
        Some(known) if cx.shard.retries.is_ending(id) => {
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
fn traces_in_memory(query: &NotificationQuery, ids: &[NotificationId], reply: ReplyTo, cx: &mut Cx<'_>) {
    let (traces, domains) = (&cx.shard.traces, &cx.shard.domains);
    let matches = |trace: &&Trace| {
        domains.named(trace.to.domain()).is_some_and(|domain| query.matches(trace, domain.id))
    };
    let kept = ids.iter().filter_map(|id| traces.find(*id));
    let mut unkept: Vec<&Trace> = traces.unkept().filter(matches).collect();
    // In the order of the list, which is not quite that in which they came here.
    unkept.sort_unstable_by_key(|trace| std::cmp::Reverse(trace.id));
    unkept.truncate(usize::from(query.limit) + 1);
    let found = kept.chain(unkept).cloned().collect();
    cx.out.push(Effect::Reply { to: reply, outcome: Outcome::Traces(found) });
}

/// The store's answer to keeping a notification.
fn store_answered(
    notification: Arc<Notification>,
    reply: Option<ReplyTo>,
    asked: UnixMs,
    said: Result<StoreNotificationAnswer, Fault>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    match said {
        Ok(StoreNotificationAnswer::Stored { ended }) => {
            // Of those that wait it may be the one of least weight itself.
            let own = ended.iter().find(|trace| trace.id == notification.id).cloned();
            if own.is_some() {
                note_accepted(&notification, cx);
            }
            for trace in &ended {
                ends::committed(trace.id, cx);
                report_end(trace, notification.domain, cx);
            }
            match own {
                Some(trace) => answer(reply, Outcome::Notified(Box::new(trace)), cx),
                None => committed(&notification, asked, reply, sessions, cx),
            }
        }
        Ok(StoreNotificationAnswer::Known) => {
            find(notification.id, cx, move |found, sessions, cx| match found {
                Ok(Some(trace)) => resubmitted(&notification, *trace, reply, sessions, cx),
                Ok(None) => answer(reply, Outcome::Unavailable, cx),
                Err(_) => unread(notification, reply, Outcome::Unavailable, sessions, cx),
            });
        }
        // If its trace is there, it is kept. If not, that may still change: the sender settles it by sending it again.
        Err(Fault::Unknown) => {
            find(notification.id, cx, move |found, sessions, cx| match found {
                Ok(Some(trace)) => {
                    note_accepted(&notification, cx);
                    resubmitted(&notification, *trace, reply, sessions, cx);
                }
                Ok(None) => answer(reply, Outcome::Unknown, cx),
                Err(_) => unread(notification, reply, Outcome::Unknown, sessions, cx),
            });
        }
        Ok(StoreNotificationAnswer::NoAccount) => {
            drop_notification(&notification, DropReason::UnknownDevice, reply, cx);
        }
        // Nobody else would send it again.
        Err(_) if reply.is_none() => cx.shard.retries.add(RefusedWrite::Store(notification), cx.now.mono),
        Err(fault) => answer(reply, fault.into(), cx),
    }
}

/// Reads what the store has of a notification, to go on with it.
fn find(
    id: NotificationId,
    cx: &mut Cx<'_>,
    then: impl FnOnce(Result<Option<Box<Trace>>, Fault>, &mut Sessions, &mut Cx<'_>) + Send + 'static,
) {
    let number = cx.shard.reads.begin();
    cx.ask(stored::Trace { id }, move |said, sessions, cx| {
        then(said, sessions, cx);
        cx.shard.reads.end(number);
    });
}

/// What the store has of it could not be read: if it waits, the account's sessions are given it with what waits for them. Nobody looks for
/// one that is for who is there now, so the store is asked again.
fn unread(
    notification: Arc<Notification>,
    reply: Option<ReplyTo>,
    outcome: Outcome,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    answer(reply, outcome, cx);
    if notification.audience == Audience::Always {
        cx.shard.changed(notification.to.as_str());
        delivery::look_again(&notification.to, sessions, cx);
    } else {
        cx.shard.retries.add(RefusedWrite::Store(notification), cx.now.mono);
    }
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

/// It is committed: the sender is told, and the account's sessions are given it.
fn committed(
    notification: &Arc<Notification>,
    asked: UnixMs,
    reply: Option<ReplyTo>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    note_accepted(notification, cx);
    let mut trace = Trace::of(notification);
    // The times that the store has, too.
    trace.state = if notification.is_due(asked) { Stored } else { Scheduled };
    trace.stored = (trace.state == Stored).then_some(asked);
    answer(reply, Outcome::Notified(Box::new(trace.clone())), cx);
    // It may have been read from the store and given before this answer came, and have ended; or its end is being committed.
    let id = trace.id;
    if cx.shard.reads.has_ended(id) {
        return;
    }
    if cx.shard.traces.find(id).is_some() {
        // To one session; the others must not be given newer ones before it.
        return delivery::look_for(id, &notification.to, sessions, cx);
    }
    if cx.shard.retries.is_ending(id) {
        return pass_over(notification, cx);
    }
    // Its time may have come meanwhile, and the jobs have handed it over.
    if trace.state == Scheduled && notification.is_due(cx.now.unix) {
        return;
    }
    report(&trace, cx);
    if trace.state == Stored {
        deliver_stored(notification, trace, sessions, cx);
    }
}

/// Gives a kept notification to the account's sessions; otherwise it waits in the store, or ends if it is not for later.
fn deliver_stored(notification: &Notification, mut trace: Trace, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    if notification.expires.is_some_and(|at| at <= cx.now.unix) {
        // The sweep ends it, or has.
        return;
    }
    match delivery::deliver(notification, sessions, cx) {
        Ok(()) => {
            trace.state = Sent;
            trace.sent = Some(cx.now.unix);
            report(&trace, cx);
            cx.shard.sent.note(trace.id, cx.now.unix, cx.now.mono);
            keep_trace(trace, cx);
        }
        Err(_) if notification.audience == Audience::Always => cx.shard.changed(notification.to.as_str()),
        Err(reason) => {
            let change = NotificationChange {
                id: notification.id,
                state: Dropped,
                sent: None,
                at: cx.now.unix,
                acknowledged_by: None,
                reason: Some(reason),
            };
            keep_trace(trace, cx);
            ends::end(End { domain: notification.domain, change }, cx);
        }
    }
}

/// A notification that is here already: sent again after a crash, or due now. It is delivered unless it is on its way or has
/// ended.
fn resubmitted(
    notification: &Arc<Notification>,
    trace: Trace,
    reply: Option<ReplyTo>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    answer(reply, Outcome::Notified(Box::new(trace.clone())), cx);
    if trace.state != Stored {
        return;
    }
    if is_to_be_given(notification, sessions, cx) {
        deliver_stored(notification, trace, sessions, cx);
    } else if cx.shard.retries.is_ending(notification.id) {
        pass_over(notification, cx);
    }
}

/// One that is ending is given to nobody. Its cancellation may yet fail, and nobody looks for one that is for who is there now: the store
/// is asked again.
fn pass_over(notification: &Arc<Notification>, cx: &mut Cx<'_>) {
    if notification.audience != Audience::Always {
        cx.shard.retries.add(RefusedWrite::Store(notification.clone()), cx.now.mono);
    }
}

/// Whether no session was given it already: the store may have handed it out before it was heard here that it is stored.
fn is_to_be_given(notification: &Notification, sessions: &mut Sessions, cx: &Cx<'_>) -> bool {
    !cx.shard.retries.is_ending(notification.id)
        && !cx.shard.reads.has_ended(notification.id)
        && !delivery::is_on_its_way(notification.id, &notification.to, sessions)
}

fn drop_notification(
    notification: &Notification,
    reason: DropReason,
    reply: Option<ReplyTo>,
    cx: &mut Cx<'_>,
) {
    let mut trace = Trace::of(notification);
    trace.state = Dropped;
    trace.reason = Some(reason);
    trace.ended = Some(cx.now.unix);
    report_end(&trace, notification.domain, cx);
    keep_trace(trace.clone(), cx);
    answer(reply, Outcome::Notified(Box::new(trace)), cx);
}

fn keep_and_answer(trace: Trace, reply: Option<ReplyTo>, cx: &mut Cx<'_>) {
    report(&trace, cx);
    keep_trace(trace.clone(), cx);
    answer(reply, Outcome::Notified(Box::new(trace)), cx);
}

/// Notes the acceptance in the event log.
fn note_accepted(notification: &Notification, cx: &mut Cx<'_>) {
    cx.out.journal.note(cx.now.unix, Kind::Accept, || Entry::Accept {
        id: notification.id,
        to: notification.to.as_str(),
        audience: notification.audience,
        priority: notification.priority,
    });
}

fn answer(reply: Option<ReplyTo>, outcome: Outcome, cx: &mut Cx<'_>) {
    if let Some(to) = reply {
        cx.out.push(Effect::Reply { to, outcome });
    }
}
