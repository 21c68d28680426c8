//! Notifications: kept, handed out and ended.

use super::push::{self, Tells};
use super::tables::{Told, Waiting};
use super::{Committed, answers, links, page};
use crate::model::OperationId;
use crate::model::{
    self, AccountId, Audience, DropReason, Notification, NotificationId, NotificationState, UnixMs,
};
use crate::ports::Part;
use crate::ports::store::OPERATION_KEPT_MS;
use crate::ports::store::idempotency::RESERVED_MS;
use crate::ports::store::notifications::{
    CancelNotification, CancelNotificationAnswer, ClaimDue, EndNotifications, NotificationChange, Pending,
    StoreNotification, StoreNotificationAnswer, Sweep, Trace, Unended,
};
use std::cmp::Reverse;
use std::sync::Arc;

answers! {
    Trace => trace;
    Pending => pending;
    Unended => unended;
    StoreNotification => keep;
    EndNotifications => change_all;
    CancelNotification => cancel;
    ClaimDue => claim_due;
    Sweep => sweep;
}

fn trace(store: &Committed, asked: &Trace) -> Option<Box<model::Trace>> {
    let ended = store.ended.get(&asked.id).map(|(_, trace)| trace.clone());
    ended.or_else(|| store.waiting.get(&asked.id).map(Waiting::trace)).map(Box::new)
}

/// Scheduled ones are left out even when they are due: [`ClaimDue`] hands those out, and once is enough.
fn pending(store: &Committed, asked: &Pending) -> Part<Notification> {
    let Some(account) = store.account(asked.domain, &asked.local) else { return Part::default() };
    let queue = account.queue.values().filter_map(|id| store.waiting.get(id));
    let waiting = queue.filter(|waiting| {
        let is_excepted = asked.except.contains(&waiting.notification.id);
        let waits = waiting.due.is_none() && waiting.notification.audience == Audience::Always;
        let resource = asked.resource.as_deref();
        let is_for_it = resource.is_none() || waiting.notification.payload.is_for(resource);
        waits && waiting.is_wanted_at(asked.now) && !is_excepted && is_for_it
    });
    let entries = waiting.map(|waiting| &*waiting.notification);
    page::first(entries.map(|notification| (notification.payload.bytes(), notification.clone())), asked.page)
}

fn unended(store: &Committed, asked: &Unended) -> Part<Notification> {
    let later = store.waiting.values().filter(|waiting| waiting.notification.id > asked.after);
    let its = later.filter(|waiting| {
        let Notification { domain, to, .. } = &*waiting.notification;
        *domain == asked.domain && to.local() == Some(&asked.local) && waiting.is_wanted_at(asked.now)
    });
    let entries = its.map(|waiting| &*waiting.notification);
    page::first(entries.map(|notification| (notification.payload.bytes(), notification.clone())), asked.page)
}

fn keep(store: &mut Committed, asked: &StoreNotification) -> StoreNotificationAnswer {
    let StoreNotification { notification, queue_max, now, wake } = asked;
    let account = notification.to.local().and_then(|local| store.account_id(notification.domain, local));
    let Some(account) = account else { return StoreNotificationAnswer::NoAccount };
    if store.waiting.contains_key(&notification.id) {
        if notification.is_due(*now) {
            hand_over(store, notification.id, *now);
        }
        return StoreNotificationAnswer::Known;
    }
    if store.ended.contains_key(&notification.id) {
        return StoreNotificationAnswer::Known;
    }
    let replaced = replaced_by(store, account, notification);
    let mut ended = end_all(store, replaced, NotificationState::Replaced, None, *now);
    put(store, account, notification, *now);
    push::wake(store, account, wake.as_ref(), Tells::Notification(notification.id));
    let crowded = over_bound(store, account, *queue_max as usize);
    ended.extend(end_all(store, crowded, NotificationState::Dropped, Some(DropReason::QueueFull), *now));
    StoreNotificationAnswer::Stored { ended }
}

/// A scheduled one waits for the device from now on, behind what does already.
fn hand_over(store: &mut Committed, id: NotificationId, now: UnixMs) {
    let number = store.number();
    let Some(waiting) = store.waiting.get_mut(&id).filter(|waiting| waiting.due.is_some()) else { return };
    let before = waiting.place;
    (waiting.due, waiting.stored, waiting.place.1) = (None, Some(now), number);
    if let Some(account) = store.accounts.get_mut(&waiting.account) {
        account.queue.remove(&before);
        account.queue.insert(waiting.place, id);
    }
}

/// Those of its key. One that was given to a connection is not replaced: the device may have it already.
fn replaced_by(store: &Committed, account: AccountId, newer: &Notification) -> Vec<NotificationId> {
    let Some(key) = &newer.collapse_key else { return Vec::new() };
    let queue = store.accounts.get(&account).into_iter().flat_map(|account| account.queue.values());
    let waiting = queue.filter_map(|id| store.waiting.get(id));
    waiting
        .filter(|waiting| waiting.sent.is_none() && waiting.notification.collapse_key.as_ref() == Some(key))
        .map(|waiting| waiting.notification.id)
        .collect()
}

fn put(store: &mut Committed, account: AccountId, notification: &Arc<Notification>, now: UnixMs) {
    let due = notification.send_at.filter(|at| *at > now);
    let place = (Reverse(notification.priority), store.number());
    let waiting = Waiting {
        notification: notification.clone(),
        account,
        place,
        due,
        // A scheduled one counts as stored from when it waits for the device.
        stored: due.is_none().then_some(now),
        sent: None,
    };
    store.waiting.insert(notification.id, waiting);
    if let Some(account) = store.accounts.get_mut(&account) {
        account.queue.insert(place, notification.id);
    }
}

/// The oldest of the lowest priority, as many as there are over `max`.
fn over_bound(store: &Committed, account: AccountId, max: usize) -> Vec<NotificationId> {
    let Some(account) = store.accounts.get(&account) else { return Vec::new() };
    let excess = account.queue.len().saturating_sub(max);
    if excess == 0 {
        return Vec::new();
    }
    let mut queue: Vec<_> = account.queue.iter().collect();
    queue.sort_by_key(|((Reverse(priority), number), _)| (*priority, *number));
    queue.into_iter().take(excess).map(|(_, id)| *id).collect()
}

fn change_all(store: &mut Committed, asked: &EndNotifications) -> Vec<NotificationId> {
    asked.changes.iter().for_each(|change| self::change(store, change));
    let ends = asked.changes.iter().filter(|change| change.state.is_end());
    let otherwise =
        ends.filter(|change| !store.ended.get(&change.id).is_some_and(|(_, trace)| change.made(trace)));
    otherwise.map(|change| change.id).collect()
}

fn change(store: &mut Committed, change: &NotificationChange) {
    let Some(waiting) = store.waiting.get_mut(&change.id) else { return };
    match change.state {
        NotificationState::Sent => waiting.sent = Some(change.sent.unwrap_or(change.at)),
        NotificationState::Acknowledged
        | NotificationState::Expired
        | NotificationState::Replaced
        | NotificationState::Cancelled
        | NotificationState::Dropped => {
            waiting.sent = change.sent.or(waiting.sent);
            store.end(change.id, change.state, change.reason, change.at);
            if let Some((_, trace)) = store.ended.get_mut(&change.id) {
                trace.acknowledged_by = change.acknowledged_by;
            }
        }
        // Not ends, and not for others to set.
        NotificationState::Scheduled
        | NotificationState::Accepted
        | NotificationState::Stored
        | NotificationState::Opened => {}
    }
}

fn cancel(store: &mut Committed, asked: &CancelNotification) -> CancelNotificationAnswer {
    if let Some(trace) = store.end(asked.id, NotificationState::Cancelled, None, asked.now) {
        return CancelNotificationAnswer::Cancelled(Box::new(trace));
    }
    let ended = trace(store, &Trace { id: asked.id });
    ended.map_or(CancelNotificationAnswer::Missing, CancelNotificationAnswer::Ended)
}

/// What expired meanwhile is left to the sweep. What is claimed is due when the claim ends.
fn claim_due(store: &mut Committed, asked: &ClaimDue) -> Part<Notification> {
    let due = |waiting: &Waiting| waiting.due.filter(|due| *due <= asked.now);
    let waiting = store.waiting.values().filter(|waiting| waiting.is_wanted_at(asked.now));
    let mut found: Vec<_> = waiting
        .filter_map(|waiting| Some((due(waiting)?, waiting.place.1, waiting.notification.clone())))
        .collect();
    found.sort_by_key(|(due, number, _)| (*due, *number));
    let entries =
        found.iter().map(|(_, _, notification)| (notification.payload.bytes(), (**notification).clone()));
    let part = page::first(entries, asked.page);
    for notification in &part.entries {
        if let Some(waiting) = store.waiting.get_mut(&notification.id) {
            waiting.due = Some(asked.until);
        }
    }
    part
}

/// Ends what expired, and forgets what nobody asks for any more: old traces and idempotency keys.
fn sweep(store: &mut Committed, asked: &Sweep) -> Part<model::Trace> {
    let max = asked.max as usize;
    let expired = ordered(store.waiting.iter().filter_map(|(id, waiting)| {
        let expires = waiting.notification.expires?;
        (expires <= asked.now).then_some((expires, *id))
    }));
    let traces =
        end_all(store, expired.iter().take(max).copied(), NotificationState::Expired, None, asked.now);
    let old = ordered(store.ended.iter().filter_map(|(id, (_, trace))| {
        let ended = trace.ended?;
        (ended < asked.forget).then_some((ended, *id))
    }));
    old.iter().take(max).for_each(|id| drop(store.ended.remove(id)));
    store.events.retain(|_, told| match told {
        Told::End(id, _) => store.ended.contains_key(id),
        Told::Room(_, fact) => fact.at >= asked.forget,
    });
    store.held_names.retain(|_, until| *until > asked.now);
    let until = UnixMs(asked.now.0.saturating_sub(RESERVED_MS));
    let over = store.reserved.iter().filter(|(_, reserved)| reserved.since <= until);
    let over = ordered(over.map(|(name, reserved)| (reserved.since, name.clone())));
    over.iter().take(max).for_each(|name| drop(store.reserved.remove(name)));
    let until = OperationId::first_at(UnixMs(asked.now.0.saturating_sub(OPERATION_KEPT_MS)));
    let forgotten: Vec<_> = store.operations.range(..until).map(|(id, _)| *id).take(max + 1).collect();
    forgotten.iter().take(max).for_each(|id| drop(store.operations.remove(id)));
    let more_broadcasts = store.own.broadcasts.sweep(asked.now, asked.forget, max);
    let more_links = links::forget(store, asked.forget, max);
    let left = [expired.len(), old.len(), over.len(), forgotten.len()];
    Part { entries: traces, more: more_broadcasts || more_links || left.into_iter().any(|n| n > max) }
}

/// In the order of their times.
fn ordered<T: Ord>(found: impl Iterator<Item = (UnixMs, T)>) -> Vec<T> {
    let mut found: Vec<_> = found.collect();
    found.sort();
    found.into_iter().map(|(_, thing)| thing).collect()
}

/// Ends several; their traces as they then are.
fn end_all(
    store: &mut Committed,
    ids: impl IntoIterator<Item = NotificationId>,
    state: NotificationState,
    reason: Option<DropReason>,
    at: UnixMs,
) -> Vec<model::Trace> {
    ids.into_iter().filter_map(|id| store.end(id, state, reason, at)).collect()
}

impl Committed {
    /// Ends a notification; its trace, if it had not ended.
    pub(super) fn end(
        &mut self,
        id: NotificationId,
        state: NotificationState,
        reason: Option<DropReason>,
        at: UnixMs,
    ) -> Option<model::Trace> {
        let waiting = self.remove(id)?;
        let trace = model::Trace { state, reason, ended: Some(at), ..waiting.trace() };
        self.ended.insert(id, (waiting.notification.domain, trace.clone()));
        self.tell(Told::End(id, false));
        Some(trace)
    }

    fn remove(&mut self, id: NotificationId) -> Option<Waiting> {
        let waiting = self.waiting.remove(&id)?;
        if let Some(account) = self.accounts.get_mut(&waiting.account) {
            account.queue.remove(&waiting.place);
        }
        Some(waiting)
    }
}

impl Waiting {
    /// Whether it has not expired.
    pub(super) fn is_wanted_at(&self, now: UnixMs) -> bool {
        self.notification.expires.is_none_or(|expires| expires > now)
    }

    pub(super) fn trace(&self) -> model::Trace {
        let state = match (self.due, self.sent) {
            (Some(_), _) => NotificationState::Scheduled,
            (None, Some(_)) => NotificationState::Sent,
            (None, None) => NotificationState::Stored,
        };
        model::Trace { state, stored: self.stored, sent: self.sent, ..model::Trace::of(&self.notification) }
    }
}
