//! At the account's home: a notification is accepted, stored if its audience is `always`, and given to the account's
//! sessions.

use super::report::{keep_trace, report, report_end, report_end_of};
use super::{broadcast, delivery, ends, flight, hops, lookup};
use crate::command::{Command, Outcome};
use crate::event::{Entry, Kind};
use crate::feature_state::notifications::{Recipient, Withheld};
use crate::message::ShardMessage;
use crate::model::*;
use crate::ports::Fault;
use crate::ports::store::accounts::Account;
use crate::ports::store::notifications::{NotificationChange, StoreNotification, StoreNotificationAnswer};
use crate::session::hook::Stored as Kept;
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
        Command::NotifyFollowed { notification, context } => {
            cx.features.notifications.hops.follow(notification.id, context);
            hops::note(notification.id, cx, || HopStep::Home);
            notify(notification, Some(reply), sessions, cx);
        }
        Command::Cancel { id } => lookup::cancel(id, reply, sessions, cx),
        Command::Trace { id } => lookup::trace(id, reply, cx),
        Command::TracesInMemory { query, ids } => lookup::traces_in_memory(&query, &ids, reply, cx),
        Command::CountReached { broadcast } => {
            let outcome = Outcome::Count(broadcast::count_reached(&broadcast, sessions));
            cx.out.push(Effect::Reply { to: reply, outcome });
        }
        other => return Some((other, reply)),
    }
    None
}

/// The store ended one by itself, or broadcasts were created or changed.
pub(super) fn message(
    message: ShardMessage,
    _sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) -> Option<ShardMessage> {
    match message {
        ShardMessage::Expired(trace) => {
            cx.features.notifications.ended(trace.id);
            report_end_of(&trace, cx);
        }
        ShardMessage::Broadcasts(news) => broadcast::heard(*news, cx),
        other => return Some(other),
    }
    None
}

/// Does what the store refused to.
pub(super) fn retry(mut refused: Vec<RefusedWrite>, cx: &mut Cx<'_>) -> Vec<RefusedWrite> {
    for write in refused.extract_if(.., |write| matches!(write, RefusedWrite::Store(_))) {
        if let RefusedWrite::Store(notification) = write {
            store(notification, None, true, cx);
        }
    }
    ends::retry(broadcast::retry(refused, cx), cx)
}

/// Accepts a notification.
fn notify(
    mut notification: Arc<Notification>,
    reply: Option<ReplyTo>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    cx.shard.counters.notifications_accepted += 1;
    cx.shard.counters.domains.of(notification.domain).notifications_accepted += 1;
    if let Some(admit) = cx.pipeline.admit
        && !admit(&mut notification, cx)
    {
        return refused(notification, DropReason::Module, reply, cx);
    }
    if notification.is_kept() && cx.check_room(notification.domain).is_err() {
        return refused(notification, DropReason::QueueFull, reply, cx);
    }
    if notification.is_kept() {
        let is_attended =
            sessions.bound_of(notification.to.as_str()).iter().any(|session| !session.is_parked());
        return store(notification, reply, is_attended, cx);
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

/// A module refused a notification, or there is no room for it. One that was accepted before and is sent again stays as it is.
fn refused(notification: Arc<Notification>, why: DropReason, reply: Option<ReplyTo>, cx: &mut Cx<'_>) {
    if let Some(outcome) = remembered(notification.id, cx) {
        return answer(reply, outcome, cx);
    }
    lookup::find(notification.id, cx, move |found, sessions, cx| match found {
        Ok(Some(trace)) => resubmitted(&notification, *trace, reply, sessions, cx),
        Ok(None) => drop_notification(&notification, why, reply, cx),
        Err(fault) => answer(reply, fault.into(), cx),
    });
}

/// What is answered for a notification that is remembered here.
fn remembered(id: NotificationId, cx: &Cx<'_>) -> Option<Outcome> {
    cx.features.notifications.trace(id).map(|trace| Outcome::Notified(Box::new(trace.clone())))
}

/// Has the store keep a notification. Durable before acknowledged: the sender hears of it when it is committed.
fn store(notification: Arc<Notification>, reply: Option<ReplyTo>, is_attended: bool, cx: &mut Cx<'_>) {
    let queue_max = cx.shard.settings.limits.pending_notifications;
    let asked = cx.now.unix;
    let wakes = cx.pipeline.wakes;
    let wake = wakes.and_then(|wakes| wakes(Kept::Notification(&notification), is_attended, cx));
    let ask = StoreNotification { notification: notification.clone(), queue_max, now: asked, wake };
    let number = cx.features.notifications.reads().begin();
    cx.ask(ask, move |said, sessions, cx| {
        store_answered(notification, reply, asked, said, sessions, cx);
        cx.features.notifications.reads().end(number);
    });
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
                cx.features.notifications.ended(trace.id);
                report_end(trace, notification.domain, cx);
            }
            match own {
                Some(trace) => answer(reply, Outcome::Notified(Box::new(trace)), cx),
                None => committed(&notification, asked, reply, sessions, cx),
            }
        }
        Ok(StoreNotificationAnswer::Known) => {
            lookup::find(notification.id, cx, move |found, sessions, cx| match found {
                Ok(Some(trace)) => resubmitted(&notification, *trace, reply, sessions, cx),
                Ok(None) => answer(reply, Outcome::Unavailable, cx),
                Err(_) => unread(notification, reply, Outcome::Unavailable, sessions, cx),
            });
        }
        // If its trace is there, it is kept. If not, that may still change: the sender settles it by sending it again.
        Err(Fault::Unknown) => {
            lookup::find(notification.id, cx, move |found, sessions, cx| match found {
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
        Err(_) if reply.is_none() => cx.retry(RefusedWrite::Store(notification)),
        Err(fault) => answer(reply, fault.into(), cx),
    }
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
        cx.shard.accounts.changed(notification.to.as_str());
        delivery::look_again(&notification.to, sessions, cx);
    } else {
        cx.retry(RefusedWrite::Store(notification));
    }
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
    hops::note(notification.id, cx, || HopStep::Committed);
    let mut trace = Trace::of(notification);
    // The times that the store has, too.
    trace.state = if notification.is_due(asked) { Stored } else { Scheduled };
    trace.stored = (trace.state == Stored).then_some(asked);
    answer(reply, Outcome::Notified(Box::new(trace.clone())), cx);
    // It may have been read from the store and given before this answer came, and have ended; or its end is being committed.
    let (id, to) = (trace.id, Recipient::Account);
    match cx.features.notifications.may_be_given((id, notification.expires), to, cx.now.unix) {
        Err(Withheld::Ended) => return,
        // To one session; the others must not be given newer ones before it.
        Err(Withheld::Given) => return delivery::look_for(id, &notification.to, sessions, cx),
        Err(Withheld::Ending) => return pass_over(notification, cx),
        Ok(()) | Err(Withheld::Expired) => {}
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
            cx.features.notifications.note_sent(trace.id, cx.now.unix, cx.now.mono);
            keep_trace(trace, cx);
        }
        Err(reason) if notification.audience == Audience::Always => {
            hops::note(notification.id, cx, || HopStep::Withheld(reason));
            cx.shard.accounts.changed(notification.to.as_str());
        }
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
    // The store may have handed it out before it was heard here that it is stored.
    let (id, to) = (notification.id, Recipient::Session);
    match cx.features.notifications.may_be_given((id, notification.expires), to, cx.now.unix) {
        Ok(()) if !flight::is_on_its_way(id, &notification.to, sessions) => {
            deliver_stored(notification, trace, sessions, cx);
        }
        Err(Withheld::Ending) => pass_over(notification, cx),
        // The sweep ends one that has expired, or has.
        Ok(()) | Err(Withheld::Ended | Withheld::Given | Withheld::Expired) => {}
    }
}

/// One that is ending is given to nobody. Its cancellation may yet fail, and nobody looks for one that is for who is there now: the store
/// is asked again.
fn pass_over(notification: &Arc<Notification>, cx: &mut Cx<'_>) {
    if notification.audience != Audience::Always {
        cx.retry(RefusedWrite::Store(notification.clone()));
    }
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
