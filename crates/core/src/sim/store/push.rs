//! Registrations for push, and the pushes that wait.

use super::{Committed, answers};
use crate::model::{
    AccountId, ArchiveId, NotificationId, Push, PushHealth, PushId, PushOutcome, PushRegistration, PushStep,
    PushSubject, RegistrationId, RoomId, UnixMs, Wake, WakesOn, room_topic,
};
use crate::ports::Part;
use crate::ports::store::push::{
    ClaimPushes, CommitPushes, DisablePush, EnablePush, EnablePushAnswer, FindRegistration,
    ListRegistrations, NextPush, PushCommit, PushSteps,
};
use carillon_wire::jid::BareJid;
use std::collections::BTreeMap;
use std::sync::Arc;

answers! {
    FindRegistration => find;
    ListRegistrations => list;
    NextPush => next;
    PushSteps => steps;
    EnablePush => enable;
    DisablePush => disable;
    ClaimPushes => claim;
    CommitPushes => commit;
}

/// Registrations, and what is to be pushed.
#[derive(Clone, Debug, Default)]
pub(in crate::sim) struct Table {
    registrations: BTreeMap<RegistrationId, (AccountId, PushRegistration)>,
    pushes: BTreeMap<PushId, PendingPush>,
    steps: BTreeMap<(NotificationId, RegistrationId), PushStep>,
}

/// A push that waits.
#[derive(Clone, Debug)]
struct PendingPush {
    registration: RegistrationId,
    topic: Box<str>,
    version: u64,
    tells: Tells,
    due: UnixMs,
    owner: Option<u64>,
    has_failed: bool,
}

/// What a push tells.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tells {
    Message(u64),
    Notification(NotificationId),
    /// A message of a room.
    Mention(RoomId, ArchiveId),
}

impl Tells {
    fn kind(self) -> WakesOn {
        match self {
            Tells::Message(_) => WakesOn::Messages,
            Tells::Notification(_) => WakesOn::Notifications,
            Tells::Mention(..) => WakesOn::Mentions,
        }
    }
}

/// Removes what belongs to accounts that are gone.
fn settle(store: &mut Committed) {
    let Table { registrations, pushes, steps } = &mut store.own.push;
    registrations.retain(|_, (account, _)| store.accounts.contains_key(account));
    for (_, registration) in registrations.values_mut().filter(|(_, of)| !of.rooms.is_empty()) {
        let PushRegistration { domain, rooms, account, .. } = registration;
        rooms.retain(|room| store.own.rooms.lists(*domain, room, account));
    }
    pushes.retain(|_, push| registrations.contains_key(&push.registration));
    steps.retain(|(id, _), _| store.waiting.contains_key(id) || store.ended.contains_key(id));
}

/// Something was stored for an account: it is pushed to each of its registrations.
pub(super) fn wake(store: &mut Committed, account: AccountId, wake: Option<&Wake>, tells: Tells) {
    let Some(Wake { at, topic }) = wake else { return };
    settle(store);
    let of = store.own.push.registrations.iter();
    let of = of.filter(|(_, (of, wanted))| *of == account && wanted.wakes.contains(tells.kind()));
    let ids: Vec<_> = of.map(|(id, _)| *id).collect();
    push(store, ids, *at, topic, tells);
}

/// A room said something: it is pushed to the registrations that want every message of it, but for those of its sender.
pub(super) fn wake_listeners(store: &mut Committed, room: &str, sender: &BareJid, at: UnixMs, tells: Tells) {
    settle(store);
    let of = store.own.push.registrations.iter();
    let of = of.filter(|(_, (_, wanted))| {
        wanted.account != *sender && wanted.rooms.iter().any(|wanted| **wanted == *room)
    });
    let ids: Vec<_> = of.map(|(id, _)| *id).collect();
    push(store, ids, at, &room_topic(room), tells);
}

fn push(store: &mut Committed, registrations: Vec<RegistrationId>, at: UnixMs, topic: &str, tells: Tells) {
    for registration in registrations {
        let mut waiting = store.own.push.pushes.values_mut();
        match waiting.find(|push| push.registration == registration && *push.topic == *topic) {
            Some(push) => {
                (push.tells, push.version) = (tells, push.version + 1);
                if push.owner.is_none() && !push.has_failed {
                    push.due = push.due.min(at);
                }
            }
            None => {
                let id = PushId(store.number().into());
                let push = PendingPush {
                    registration,
                    topic: topic.into(),
                    version: 1,
                    tells,
                    due: at,
                    owner: None,
                    has_failed: false,
                };
                store.own.push.pushes.insert(id, push);
            }
        }
    }
}

fn find(store: &mut Committed, asked: &FindRegistration) -> Option<Box<PushRegistration>> {
    settle(store);
    store.own.push.registrations.get(&asked.id).map(|(_, registration)| Box::new(registration.clone()))
}

fn list(store: &mut Committed, asked: &ListRegistrations) -> Part<PushRegistration> {
    settle(store);
    let all = store.own.push.registrations.values().map(|(_, registration)| registration);
    let wanted = all.filter(|registration| {
        registration.id > asked.after
            && asked.domain.is_none_or(|domain| registration.domain == domain)
            && asked.account.as_deref().is_none_or(|local| registration.account.local() == Some(local))
    });
    let mut entries: Vec<_> = wanted.take(usize::from(asked.max) + 1).cloned().collect();
    let more = entries.len() > asked.max.into();
    entries.truncate(asked.max.into());
    Part { entries, more }
}

fn next(store: &mut Committed, _: &NextPush) -> Option<UnixMs> {
    settle(store);
    store.own.push.pushes.values().map(|push| push.due).min()
}

fn steps(store: &mut Committed, asked: &PushSteps) -> Vec<PushStep> {
    settle(store);
    let of = (asked.id, RegistrationId(0))..=(asked.id, RegistrationId(u64::MAX));
    store.own.push.steps.range(of).map(|(_, step)| step.clone()).collect()
}

fn enable(store: &mut Committed, asked: &EnablePush) -> EnablePushAnswer {
    settle(store);
    let Some(account) = store.account_id(asked.domain, &asked.local) else {
        return EnablePushAnswer::NoAccount;
    };
    let own = store.own.push.registrations.values().filter(|(of, _)| *of == account);
    let same = own.clone().find(|(_, registration)| registration.node == asked.node);
    let (same, count) = (same.map(|(_, registration)| registration.id), own.count());
    if same.is_none() && count >= asked.per_account_max as usize {
        return EnablePushAnswer::TooMany;
    }
    let id = same.unwrap_or_else(|| RegistrationId(store.number().into()));
    let Some(jid) = store.accounts.get(&account).map(|account| account.jid.clone()) else {
        return EnablePushAnswer::NoAccount;
    };
    let mut rooms = Vec::new();
    for (at, (kind, name)) in asked.rooms.iter().enumerate() {
        let room = kind.address(name, jid.domain());
        if !store.own.rooms.lists(asked.domain, &room, &jid) {
            return EnablePushAnswer::NotInRoom(at);
        }
        let others = store.own.push.registrations.values().filter(|(_, of)| Some(of.id) != same);
        let listeners = others.filter(|(_, of)| of.rooms.iter().any(|wanted| **wanted == *room));
        if listeners.count() >= asked.per_room_max.into() {
            return EnablePushAnswer::RoomFull(at);
        }
        rooms.push(room.into());
    }
    rooms.sort_unstable();
    rooms.dedup();
    let registration = PushRegistration {
        id,
        domain: asked.domain,
        account: jid,
        node: asked.node.clone(),
        channel: asked.channel.clone(),
        shown: asked.shown,
        wakes: asked.wakes,
        rooms,
        created: asked.now,
        health: PushHealth::default(),
    };
    store.own.push.registrations.insert(id, (account, registration.clone()));
    let failed = store.own.push.pushes.values_mut().filter(|push| push.registration == id && push.has_failed);
    failed
        .filter(|push| push.owner.is_none())
        .for_each(|push| (push.due, push.has_failed) = (asked.now, false));
    EnablePushAnswer::Enabled(Box::new(registration))
}

fn disable(store: &mut Committed, asked: &DisablePush) {
    let account = store.account_id(asked.domain, &asked.local);
    store.own.push.registrations.retain(|_, (of, registration)| {
        Some(*of) != account || asked.node.as_ref().is_some_and(|node| *node != registration.node)
    });
    settle(store);
}

fn claim(store: &mut Committed, asked: &ClaimPushes) -> Vec<Push> {
    settle(store);
    let mut due: Vec<_> = store
        .own
        .push
        .pushes
        .iter()
        .filter(|(id, push)| {
            let is_free = push.due <= asked.now || push.owner == Some(asked.owner);
            is_free && asked.held.binary_search(id).is_err()
        })
        .map(|(id, push)| (push.due, *id))
        .collect();
    due.sort_unstable();
    let (mut claimed, mut bytes) = (Vec::new(), 0);
    for (_, id) in due {
        if claimed.len() >= asked.page.entries.into() {
            break;
        }
        let Some(push) = of(store, id, asked.now) else {
            store.own.push.pushes.remove(&id);
            continue;
        };
        bytes += push.bytes();
        if bytes > asked.page.bytes && !claimed.is_empty() {
            break;
        }
        claimed.push(push);
        if let Some(push) = store.own.push.pushes.get_mut(&id) {
            (push.owner, push.due) = (Some(asked.owner), asked.until);
        }
    }
    claimed
}

/// A push with what it tells, if that still waits.
fn of(store: &Committed, id: PushId, now: UnixMs) -> Option<Push> {
    let push = store.own.push.pushes.get(&id)?;
    let (account, registration) = store.own.push.registrations.get(&push.registration)?;
    let account = store.accounts.get(account)?;
    let subject = match push.tells {
        Tells::Message(seq) => {
            let message = account.messages.get(&seq)?;
            if message.expires.is_some_and(|at| at <= now) {
                return None;
            }
            PushSubject::Message { stanza: message.stanza.clone(), received: message.received }
        }
        Tells::Notification(id) => {
            let waiting = store.waiting.get(&id)?;
            if !waiting.is_wanted_at(now) {
                return None;
            }
            PushSubject::Notification(waiting.notification.clone())
        }
        Tells::Mention(room, id) => {
            let (stanza, received) = store.own.rooms.unread(room, id, &registration.account)?;
            PushSubject::Message { stanza, received }
        }
    };
    Some(Push {
        id,
        version: push.version,
        topic: push.topic.clone(),
        registration: Arc::new(registration.clone()),
        messages: account.messages.len() as u64,
        subject,
    })
}

fn commit(store: &mut Committed, asked: &CommitPushes) {
    settle(store);
    for PushCommit { id, version, registration, registered, outcome, step, .. } in &asked.pushes {
        let Table { registrations, pushes, steps } = &mut store.own.push;
        let Some(push) = pushes.get_mut(id).filter(|push| push.owner == Some(asked.owner)) else { continue };
        if let Some((notification, step)) = step.as_deref() {
            let before = steps.get(&(*notification, step.registration)).map_or(0, |step| step.requests);
            let kept = PushStep { requests: before + step.requests, ..step.clone() };
            steps.insert((*notification, step.registration), kept);
        }
        let is_same = push.version == *version;
        push.owner = None;
        let health = registrations.get_mut(registration).map(|(_, registration)| &mut registration.health);
        match outcome {
            PushOutcome::Taken { at } => {
                if let Some(health) = health {
                    *health = PushHealth { pushed: Some(*at), ..PushHealth::default() };
                }
                (push.due, push.has_failed) = (asked.now, false);
                if is_same {
                    pushes.remove(id);
                }
            }
            PushOutcome::Failed { next, failures, failure } => {
                (push.due, push.has_failed) = (*next, true);
                if let Some(health) = health {
                    (health.failures, health.last_failure) = (*failures, Some(failure.clone()));
                }
            }
            PushOutcome::Postponed { next } => (push.due, push.has_failed) = (*next, true),
            PushOutcome::Over => {
                (push.due, push.has_failed) = (asked.now, false);
                if is_same {
                    pushes.remove(id);
                }
            }
            PushOutcome::Refused { failures, failure } => {
                if let Some(health) = health {
                    (health.failures, health.last_failure) = (*failures, Some(failure.clone()));
                }
                (push.due, push.has_failed) = (asked.now, false);
                if is_same {
                    pushes.remove(id);
                }
            }
            PushOutcome::Gone => {
                (push.due, push.has_failed) = (asked.now, false);
                if registrations.get(registration).is_some_and(|(_, found)| found.created == *registered) {
                    registrations.remove(registration);
                }
                settle(store);
            }
        }
    }
}
