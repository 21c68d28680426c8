//! Notifications: for whoever is there or for later, replaced, cancelled, expired; and what is told of them.

use super::actions::jid;
use super::{Connected, DOMAIN, Program, holds};
use crate::command::{Command, Outcome};
use crate::message::ShardMessage;
use crate::model::{
    Audience, Notification, NotificationId, NotificationState, Payload, Priority, States, Trace, UnixMs,
    bucket,
};
use crate::ports::store::notifications::{
    self, CancelNotification, CancelNotificationAnswer, ClaimDue, EndNotifications, Events,
    StoreNotification, StoreNotificationAnswer, Sweep,
};
use crate::ports::{Answer, Ask, Page, Question};
use crate::sim::World;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// What is known of the notifications of a program.
#[derive(Default)]
pub(super) struct Notifications {
    /// All that were sent, in their order.
    sent: Vec<Arc<Notification>>,
    all: BTreeMap<NotificationId, Arc<Notification>>,
    /// Those that were accepted for good.
    accepted: BTreeMap<NotificationId, Arc<Notification>>,
    /// Those that were stored, in the order of the commits, and their places in it.
    stored: Vec<NotificationId>,
    places: BTreeMap<NotificationId, usize>,
    /// Those that a client was sent.
    given: BTreeSet<NotificationId>,
    /// Those that their sender tried to cancel.
    cancelled: BTreeSet<NotificationId>,
    /// Claimed by the node, and not with their homes yet.
    claimed: Vec<Notification>,
    /// Expired, and not told yet.
    expired: Vec<Trace>,
    /// Those whose end is committed, and that are not to be given any more.
    ended: BTreeSet<NotificationId>,
    /// Those that the sweep ended: they are not given any more unless the clock is set back before their homes know.
    swept: BTreeSet<NotificationId>,
    /// Those that did not fit when they were stored.
    refused: BTreeSet<NotificationId>,
    /// Kept ones whose end was told.
    end_told: BTreeSet<NotificationId>,
    /// Those of which the node knew something when it ended that nobody knows now.
    forgotten: BTreeSet<NotificationId>,
    /// Those that were not kept and had ended when the node restarted in order.
    unknown: BTreeSet<NotificationId>,
    /// The last state that was told of each. It may be behind what is seen.
    told: BTreeMap<NotificationId, NotificationState>,
    /// The last state of each that was asked for.
    seen: BTreeMap<NotificationId, NotificationState>,
    /// A question for a state, under way, and what was known when it was asked.
    asked: Option<(NotificationId, Option<NotificationState>, Receiver<Outcome>)>,
}

/// What happens.
impl Program {
    /// A notification that is kept, of any size.
    pub(super) fn notify(&mut self, account: &str) {
        let most = [200, 2000, 6000][self.dice.below(3)];
        let text = "x".repeat(self.dice.below(most));
        let notification = self.notification(account);
        self.sends(Notification { payload: Payload::Json(format!("\"{text}\"").into()), ..notification });
    }

    /// A notification of any kind.
    pub(super) fn notify_anyhow(&mut self, account: &str) {
        let audiences = [Audience::Always, Audience::Always, Audience::Connected, Audience::Active];
        let now = self.world.now().unix;
        let some = |program: &mut Program, most: usize| {
            program.dice.once_in(3).then(|| now.plus(1 + program.dice.below(most) as u64))
        };
        let (send_at, expires) = (some(self, 4000), some(self, 20_000));
        let notification = Notification {
            audience: audiences[self.dice.below(audiences.len())],
            expires: expires.map(|at| send_at.map_or(at, |send_at| at.max(send_at.plus(1)))),
            collapse_key: self.dice.once_in(3).then(|| "key".into()),
            send_at,
            ..self.notification(account)
        };
        self.sends(notification);
    }

    fn notification(&mut self, account: &str) -> Notification {
        self.notified += 1;
        let (to, now) = (jid(account), self.world.now().unix);
        Notification {
            id: NotificationId::new(now, bucket(to.as_str()), self.notified),
            domain: self.world.domain_id(DOMAIN),
            audience: Audience::Always,
            priority: [Priority::Low, Priority::Normal, Priority::High][self.dice.below(3)],
            expires: None,
            collapse_key: None,
            key: None,
            payload: Payload::Json("\"1\"".into()),
            accepted: now,
            send_at: None,
            to,
        }
    }

    fn sends(&mut self, notification: Notification) {
        let notification = Arc::new(notification);
        self.notifications.sent.push(notification.clone());
        self.notifications.all.insert(notification.id, notification.clone());
        self.begin_notify(notification);
    }

    fn begin_notify(&mut self, notification: Arc<Notification>) {
        let id = Some(notification.id).filter(|_| notification.is_kept());
        let outcome = self.world.begin(notification.to.clone().as_str(), Command::Notify(notification));
        self.outcomes.push((id, outcome));
    }

    fn any_sent(&mut self) -> Option<Arc<Notification>> {
        let place = self.dice.below(self.notifications.sent.len());
        self.notifications.sent.get(place).cloned()
    }

    /// A sender cancels one of its notifications, or sends it again, as it may.
    pub(super) fn cancels(&mut self) {
        let Some(notification) = self.any_sent() else { return };
        let id = notification.id;
        if self.dice.once_in(2) {
            return self.begin_notify(notification);
        }
        self.notifications.cancelled.insert(id);
        let outcome = self.world.begin(notification.to.as_str(), Command::Cancel { id });
        self.outcomes.push((None, outcome));
    }

    /// Somebody asks for a state, one at a time.
    pub(super) fn asks(&mut self) {
        if self.notifications.asked.is_none()
            && let Some(notification) = self.any_sent()
        {
            let (id, to) = (notification.id, notification.to.as_str());
            let outcome = self.world.begin(to, Command::Trace { id });
            let known =
                [self.notifications.told.get(&id), self.notifications.seen.get(&id)].into_iter().flatten();
            let known = known.copied().max_by_key(|state| rank(*state));
            self.notifications.asked = Some((id, known, outcome));
        }
    }

    /// The jobs of the node do one thing: claim, hand over, sweep, tell.
    pub(super) fn works(&mut self) {
        let now = self.world.now().unix;
        match self.dice.below(4) {
            0 => {
                let page = Page { entries: 1 + self.dice.below(4) as u16, bytes: 100 };
                let claimed = self.world.ask(ClaimDue { now, until: now.plus(CLAIM_MS), page });
                self.notifications.claimed.extend(claimed.entries);
            }
            1 => self.hands_over(),
            2 => {
                let swept = self.world.ask(Sweep { now, forget: UnixMs(0), max: 3 });
                self.notifications.swept.extend(swept.entries.iter().map(|trace| trace.id));
                self.notifications.expired.extend(swept.entries);
            }
            _ => drop(self.tells_expired()),
        }
    }

    fn hands_over(&mut self) {
        if let Some(notification) = self.notifications.claimed.pop() {
            let to = notification.to.clone();
            let outcome = self.world.begin(to.as_str(), Command::Notify(notification.into()));
            self.outcomes.push((None, outcome));
        }
    }

    /// Tells of one that expired; whether there was one.
    pub(super) fn tells_expired(&mut self) -> bool {
        let Some(trace) = self.notifications.expired.pop() else { return false };
        self.world.message(trace.to.clone().as_str(), ShardMessage::Expired(Box::new(trace)));
        true
    }

    /// All that the jobs of a node do once claims have ended that nobody can hand over any more.
    pub(super) fn works_on(&mut self) -> Result<(), String> {
        for _ in 0..2 {
            self.world.leap(CLAIM_MS + 1);
            self.world.tick();
            self.settle()?;
            let now = self.world.now().unix;
            let page = Page { entries: u16::MAX, bytes: usize::MAX };
            let claimed = self.world.ask(ClaimDue { now, until: now.plus(CLAIM_MS), page });
            self.notifications.claimed.extend(claimed.entries);
            let swept = self.world.ask(Sweep { now, forget: UnixMs(0), max: u32::MAX });
            self.notifications.swept.extend(swept.entries.iter().map(|trace| trace.id));
            self.notifications.expired.extend(swept.entries);
            while !self.notifications.claimed.is_empty() || !self.notifications.expired.is_empty() {
                self.hands_over();
                self.tells_expired();
            }
            self.settle()?;
        }
        Ok(())
    }
}

/// What must hold.
impl Program {
    /// Notes what was answered to senders. What was dropped as it was stored is not said to be kept.
    pub(super) fn take_outcomes(&mut self) -> Result<(), String> {
        let mut waiting = Vec::new();
        for (id, outcome) in std::mem::take(&mut self.outcomes) {
            match (outcome.try_recv(), id) {
                (Err(_), _) => waiting.push((id, outcome)),
                (Ok(Outcome::Notified(trace)), Some(id)) => {
                    let is_kept = !trace.state.is_end();
                    holds(!is_kept || !self.notifications.refused.contains(&id), || {
                        format!("{id} is said to be {:?}, and was dropped as it was stored", trace.state)
                    })?;
                    // One that is known may have ended before.
                    if trace.state != NotificationState::Dropped {
                        self.notifications.accept(id);
                    }
                }
                (Ok(_), _) => {}
            }
        }
        self.outcomes = waiting;
        Ok(())
    }

    /// Notes what a write did: ends, after which a notification is not given any more.
    pub(super) fn note_write(&mut self, ask: &Ask, answer: &Answer) {
        let notifications = &mut self.notifications;
        if matches!(answer, Answer::Failed(_)) {
            return;
        }
        if let Some(end) = EndNotifications::of(ask) {
            let ends = end.changes.iter().filter(|change| change.state.is_end());
            notifications.ended.extend(ends.map(|change| change.id));
        } else if let Some(cancel) = CancelNotification::of(ask) {
            if let Ok(CancelNotificationAnswer::Cancelled(_)) = CancelNotification::answer(answer.clone()) {
                notifications.ended.insert(cancel.id);
            }
        } else if let Some(store) = StoreNotification::of(ask)
            && let Ok(StoreNotificationAnswer::Stored { ended }) = StoreNotification::answer(answer.clone())
        {
            let id = store.notification.id;
            notifications.places.insert(id, notifications.stored.len());
            notifications.stored.push(id);
            if ended.iter().any(|trace| trace.id == id) {
                notifications.refused.insert(id);
            }
        }
    }

    /// A client is sent a notification: one that is for it, that has not ended, that it was not given before, and behind those that
    /// were accepted before it.
    pub(super) fn notification_is_sent(&mut self, whose: usize, id: NotificationId) -> Result<(), String> {
        let connected = &mut self.clients[whose];
        let notifications = &mut self.notifications;
        let account = connected.xmpp().map(|client| client.account.as_str());
        let Some(notification) = notifications.all.get(&id) else { return Err(format!("{id} is not known")) };
        holds(account == notification.to.local(), || {
            format!("{id} for {} was sent to {account:?}", notification.to)
        })?;
        if connected.again.remove(&id) {
            connected.given.insert(id);
            return Ok(());
        }
        holds(!notifications.ended.contains(&id), || format!("{id} was sent after its end was committed"))?;
        let is_over = notification.expires.is_some_and(|at| at <= self.world.now().unix);
        holds(!is_over || !notifications.swept.contains(&id), || {
            format!("{id} was sent after it had expired")
        })?;
        let told = notifications.told.get(&id).filter(|state| state.is_end());
        holds(told.is_none(), || format!("{id} was sent after it was told as {told:?}"))?;
        // Sent again to a node that does not know it any more, it is another one.
        let is_unknown = notifications.unknown.contains(&id);
        let is_first = connected.given.insert(id);
        holds(is_first || is_unknown, || format!("{id} was sent twice to the same client"))?;
        let overtaken = notifications.overtaken(notification, self.latest, &mut self.world);
        holds(overtaken.is_none(), || format!("{id} was sent before {overtaken:?}, accepted earlier"))?;
        notifications.given.insert(id);
        Ok(())
    }

    /// What was told of notifications since it was looked at: an end of a kept one is in the store already, and nothing goes back.
    pub(super) fn check_told(&mut self) -> Result<(), String> {
        for change in std::mem::take(&mut self.world.changes) {
            let trace = &change.trace;
            if trace.is_kept() && trace.state.is_end() {
                let stored = self.world.ask(notifications::Trace { id: trace.id });
                let stored = stored.map(|stored| stored.state);
                holds(stored == Some(trace.state), || {
                    format!("{} was told as {:?}, and is {stored:?}", trace.id, trace.state)
                })?;
            }
            self.note_told(trace.id, trace.state)?;
        }
        self.check_asked()
    }

    /// The state that somebody asked for.
    fn check_asked(&mut self) -> Result<(), String> {
        if let Some((id, before, outcome)) = &self.notifications.asked {
            let (id, before) = (*id, *before);
            match outcome.try_recv() {
                Err(_) => return Ok(()),
                Ok(Outcome::Trace(trace)) => {
                    // A page that was read before it was replaced may give it until the answer to the newer one comes: that it was
                    // given is so, too.
                    let was_given_too =
                        before == Some(NotificationState::Replaced) && trace.state == NotificationState::Sent;
                    if !was_given_too {
                        goes_on(id, before, trace.state)?;
                    }
                    self.notifications.seen.insert(id, trace.state);
                }
                Ok(_) => {}
            }
        }
        self.notifications.asked = None;
        Ok(())
    }

    /// A state is told. The end of a kept one is told once.
    fn note_told(&mut self, id: NotificationId, state: NotificationState) -> Result<(), String> {
        if state.is_end() && self.notifications.is_kept(id) {
            let is_first = self.notifications.end_told.insert(id);
            holds(is_first, || format!("{id}: its end, {state:?}, was told twice"))?;
        }
        goes_on(id, self.notifications.told.insert(id, state), state)
    }

    /// In the end: every kept notification that was accepted is at the device, waits, or ended for a reason; its end is one event.
    pub(super) fn check_notifications(&mut self) -> Result<(), String> {
        let all = Events { after: 0, domain: None, wanted: States::ALL.into(), max: u16::MAX };
        let ended = self.world.ask(all).events;
        let events: Vec<NotificationId> =
            ended.iter().filter_map(|(_, event)| event.trace()).map(|trace| trace.id).collect();
        for (id, notification) in self.notifications.accepted.clone() {
            let Some(trace) = self.world.ask(notifications::Trace { id }) else {
                return Err(format!("{id}, accepted for {}, is lost", notification.to));
            };
            let told = events.iter().filter(|event| **event == id).count();
            holds(told == usize::from(trace.state.is_end()), || {
                format!("{id} is {:?}, and there are {told} events of it", trace.state)
            })?;
            holds(self.is_right(&trace), || format!("{trace:?}, and nobody knows why"))?;
            let is_acknowledged = trace.state == NotificationState::Acknowledged;
            let is_told = self.notifications.end_told.contains(&id);
            let known = &self.notifications;
            let may_be_untold = known.forgotten.contains(&id) || known.unknown.contains(&id);
            holds(is_told || !is_acknowledged || may_be_untold, || {
                format!("{id} is acknowledged, and nobody was told")
            })?;
        }
        Ok(())
    }

    /// Whether that is what became of a notification, as far as anybody knows.
    fn is_right(&self, trace: &Trace) -> bool {
        let id = trace.id.to_string();
        let known = &self.notifications;
        let is_for_all = trace.audience == Audience::Always;
        match trace.state {
            NotificationState::Acknowledged => self.clients.iter().any(|client| client.had_notification(&id)),
            NotificationState::Stored | NotificationState::Sent => {
                let is_of = |client: &&Connected| client.is_of(trace.to.local().unwrap_or_default());
                let mut theirs = self.clients.iter().filter(is_of).filter(|client| self.is_open(client));
                // A client that is there has it, and has acknowledged it in its way: then it would have ended. One for who is there
                // that was given to nobody when the node ended waits for its expiry.
                let is_here = theirs.any(|client| client.had_notification(&id) || self.is_available(client));
                !is_here && is_for_all || known.forgotten.contains(&trace.id) && !is_for_all
            }
            NotificationState::Scheduled => trace.send_at.is_some_and(|at| at > self.world.now().unix),
            NotificationState::Expired => trace.expires.is_some_and(|at| at <= self.latest),
            NotificationState::Replaced => trace.collapse_key.is_some(),
            NotificationState::Cancelled => known.cancelled.contains(&trace.id),
            NotificationState::Dropped => {
                !is_for_all || trace.reason == Some(crate::model::DropReason::QueueFull)
            }
            NotificationState::Accepted | NotificationState::Opened => false,
        }
    }

    /// Those that wait for an account and are for all.
    pub(super) fn waiting_notifications(&mut self, account: &str) -> Vec<String> {
        let domain = self.world.domain_id(DOMAIN);
        let (now, page) = (self.world.now().unix, Page { entries: u16::MAX, bytes: usize::MAX });
        let all = notifications::Pending {
            domain,
            local: account.into(),
            resource: None,
            except: Vec::new(),
            page,
            now,
        };
        self.world.ask(all).entries.iter().map(|notification| notification.id.to_string()).collect()
    }

    /// How many were accepted for good, and how many of these a client has.
    pub(super) fn count_notifications(&self) -> (u64, u64) {
        let had = |id: String| self.clients.iter().any(|client| client.had_notification(&id));
        let accepted = &self.notifications.accepted;
        let delivered = accepted.keys().filter(|id| had(id.to_string())).count();
        (accepted.len() as u64, delivered as u64)
    }
}

impl Notifications {
    /// Whether it is one whose end the store decides.
    fn is_kept(&self, id: NotificationId) -> bool {
        self.all.get(&id).is_some_and(|notification| notification.is_kept())
    }

    fn accept(&mut self, id: NotificationId) {
        if let Some(notification) = self.all.get(&id) {
            self.accepted.insert(id, notification.clone());
        }
    }

    /// One that was accepted, and committed before this one for the same account, is of no less weight, waits, and was given to nobody.
    fn overtaken(&self, newer: &Notification, latest: UnixMs, world: &mut World) -> Option<NotificationId> {
        let is_ordered = |one: &Notification| one.audience == Audience::Always && one.send_at.is_none();
        if !is_ordered(newer) {
            return None;
        }
        let before = self.places.get(&newer.id).copied().unwrap_or(self.stored.len());
        let older = self.stored[..before].iter().filter_map(|id| self.accepted.get(id)).filter(|older| {
            older.to == newer.to
                && is_ordered(older)
                && older.priority >= newer.priority
                && older.expires.is_none_or(|at| at > latest)
                && ![&self.given, &self.cancelled, &self.ended].iter().any(|gone| gone.contains(&older.id))
        });
        let mut waits = |id| {
            let trace = world.ask(notifications::Trace { id });
            trace.is_some_and(|trace| !trace.state.is_end())
        };
        older.map(|older| older.id).find(|id| waits(*id))
    }

    /// The node goes on in another process, which knows what this one knew.
    pub(super) fn goes_elsewhere(&mut self) {
        self.claimed.clear();
        self.asked = None;
    }

    /// The same after a restart: what has ended and was not kept is not known any more.
    pub(super) fn starts_again(&mut self) {
        self.goes_elsewhere();
        let over = self.over();
        for states in [&mut self.told, &mut self.seen] {
            states.retain(|id, _| !over.contains(id));
        }
        self.unknown.extend(over);
    }

    /// Those that were told to have ended and were not kept.
    fn over(&self) -> BTreeSet<NotificationId> {
        let is_over = |one: &&Arc<Notification>| self.told.get(&one.id).is_some_and(|state| state.is_end());
        self.sent.iter().filter(|one| !one.is_kept()).filter(is_over).map(|one| one.id).collect()
    }

    /// The node ended: what only its memory knew is gone.
    pub(super) fn forget(&mut self) {
        self.claimed.clear();
        self.expired.clear();
        self.asked = None;
        self.unknown.extend(self.over());
        // What was acknowledged may not have been told, and what was due may have been given to nobody.
        self.forgotten = self.all.keys().copied().collect();
        let all = &self.all;
        for states in [&mut self.told, &mut self.seen] {
            // What was given lately may not have been noted; of what is not kept nothing is known any more.
            states.retain(|id, state| {
                *state != NotificationState::Sent && all.get(id).is_some_and(|one| one.is_kept())
            });
        }
    }
}

/// No state comes after an end, or after one that is further.
fn goes_on(
    id: NotificationId,
    before: Option<NotificationState>,
    state: NotificationState,
) -> Result<(), String> {
    match before {
        Some(before) if before != state && (before.is_end() || rank(before) > rank(state)) => {
            Err(format!("{id} was {before:?} and is {state:?}"))
        }
        _ => Ok(()),
    }
}

/// How far a state is.
fn rank(state: NotificationState) -> u8 {
    match state {
        NotificationState::Accepted => 0,
        NotificationState::Scheduled => 1,
        NotificationState::Stored => 2,
        NotificationState::Sent => 3,
        NotificationState::Acknowledged
        | NotificationState::Expired
        | NotificationState::Replaced
        | NotificationState::Cancelled
        | NotificationState::Dropped
        | NotificationState::Opened => 4,
    }
}

/// How long the node claims what is due.
pub(super) const CLAIM_MS: u64 = 2000;
