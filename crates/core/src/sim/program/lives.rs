//! Whole lives of notifications: for whoever is there or for later, replaced, cancelled, expired; and what is told of them.

use super::deeds::jid;
use super::{ACCOUNTS, DOMAIN, Program};
use crate::command::{Command, Outcome};
use crate::message::ShardMessage;
use crate::model::{
    Audience, Notification, NotificationId, NotificationState, Payload, Priority, States, Trace, UnixMs,
    bucket,
};
use crate::ports::Page;
use crate::ports::store::notifications::{self, ClaimDue, Events, Sweep};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// What is known of the notifications of a program.
#[derive(Default)]
pub(super) struct Lives {
    /// All that were sent, with what they are.
    sent: Vec<Arc<Notification>>,
    /// Those that their sender tried to cancel.
    cancelled: Vec<NotificationId>,
    /// Claimed by the node, and not with their homes yet.
    claimed: Vec<Notification>,
    /// Expired, and not told yet.
    expired: Vec<Trace>,
    /// Kept ones whose end was told.
    ended: BTreeSet<NotificationId>,
    /// The last state that was told of each. It may be behind what is seen.
    told: BTreeMap<NotificationId, NotificationState>,
    /// The last state of each that was asked for.
    seen: BTreeMap<NotificationId, NotificationState>,
    /// A question for a state, under way, and what was known when it was asked.
    asked: Option<(NotificationId, Option<NotificationState>, Receiver<Outcome>)>,
}

impl Program {
    /// A notification of any kind.
    pub(super) fn notify_anyhow(&mut self) {
        self.notified += 1;
        let (account, now) = (ACCOUNTS[self.dice.below(ACCOUNTS.len())], self.world.now().unix);
        let to = jid(account);
        let audiences = [Audience::Always, Audience::Always, Audience::Connected, Audience::Active];
        let some = |program: &mut Program, most: usize| {
            program.dice.once_in(3).then(|| now.plus(1 + program.dice.below(most) as u64))
        };
        let (send_at, expires) = (some(self, 4000), some(self, 20_000));
        let notification = Arc::new(Notification {
            id: NotificationId::new(now, bucket(to.as_str()), self.notified),
            domain: self.world.domain_id(DOMAIN),
            audience: audiences[self.dice.below(audiences.len())],
            priority: [Priority::Low, Priority::Normal, Priority::High][self.dice.below(3)],
            expires: expires.map(|at| send_at.map_or(at, |send_at| at.max(send_at.plus(1)))),
            collapse_key: self.dice.once_in(3).then(|| "key".into()),
            key: None,
            payload: Payload::Json("\"1\"".into()),
            accepted: now,
            send_at,
            to,
        });
        self.lives.sent.push(notification.clone());
        let id = Some(notification.id).filter(|_| notification.is_kept());
        let outcome = self.world.begin(notification.to.as_str(), Command::Notify(notification.clone()));
        self.outcomes.push((id, outcome));
    }

    fn any_sent(&mut self) -> Option<Arc<Notification>> {
        let place = self.dice.below(self.lives.sent.len());
        self.lives.sent.get(place).cloned()
    }

    /// A sender cancels one of its notifications, or sends it again, as it may.
    pub(super) fn cancels(&mut self) {
        let Some(notification) = self.any_sent() else { return };
        let id = notification.id;
        // Of two cancellations in the same millisecond both are told that it was theirs.
        let is_cancelled = self.lives.cancelled.contains(&id);
        if is_cancelled && !notification.is_kept() {
            return;
        }
        let again = is_cancelled || (notification.is_kept() && self.dice.once_in(2));
        let command = if again { Command::Notify(notification.clone()) } else { Command::Cancel { id } };
        if !again {
            self.lives.cancelled.push(id);
        }
        let outcome = self.world.begin(notification.to.as_str(), command);
        self.outcomes.push((None, outcome));
    }

    /// Somebody asks for a state, one at a time.
    pub(super) fn asks(&mut self) {
        if self.lives.asked.is_none()
            && let Some(notification) = self.any_sent()
        {
            let (id, to) = (notification.id, notification.to.as_str());
            let outcome = self.world.begin(to, Command::Trace { id });
            let known = [self.lives.told.get(&id), self.lives.seen.get(&id)].into_iter().flatten();
            let known = known.copied().max_by_key(|state| rank(*state));
            self.lives.asked = Some((id, known, outcome));
        }
    }

    /// The jobs of the node do one thing: claim, hand over, sweep, tell.
    pub(super) fn works(&mut self) {
        let now = self.world.now().unix;
        match self.dice.below(4) {
            0 => {
                let page = Page { entries: 1 + self.dice.below(4) as u16, bytes: 100 };
                let claimed = self.world.ask(ClaimDue { now, until: now.plus(CLAIM_MS), page });
                self.lives.claimed.extend(claimed.entries);
            }
            1 => self.hands_over(),
            2 => {
                let swept = self.world.ask(Sweep { now, forget: UnixMs(0), max: 3 });
                self.ended.extend(swept.entries.iter().map(|trace| trace.id));
                self.lives.expired.extend(swept.entries);
            }
            _ => self.tells_expired(),
        }
    }

    fn hands_over(&mut self) {
        if let Some(notification) = self.lives.claimed.pop() {
            let to = notification.to.clone();
            let outcome = self.world.begin(to.as_str(), Command::Notify(notification.into()));
            self.outcomes.push((None, outcome));
        }
    }

    fn tells_expired(&mut self) {
        if let Some(trace) = self.lives.expired.pop() {
            self.world.message(trace.to.clone().as_str(), ShardMessage::Expired(Box::new(trace)));
        }
    }

    /// The store does the oldest write of a shard, and says that this is unknown.
    pub(super) fn loses_answer(&mut self) {
        let steps: Vec<_> = self.world.disk.steps().collect();
        if let Some(step) = self.dice.pick(&steps) {
            self.world.disk.lose_answer(step);
        }
    }

    /// The node ended: what only its memory knew is gone.
    pub(super) fn forgets(&mut self) {
        let Lives { claimed, expired, told, seen, asked, .. } = &mut self.lives;
        claimed.clear();
        expired.clear();
        *asked = None;
        // What was given lately may not have been noted.
        for states in [told, seen] {
            states.retain(|_, state| *state != NotificationState::Sent);
        }
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
            self.lives.claimed.extend(claimed.entries);
            let swept = self.world.ask(Sweep { now, forget: UnixMs(0), max: u32::MAX });
            self.ended.extend(swept.entries.iter().map(|trace| trace.id));
            self.lives.expired.extend(swept.entries);
            while !self.lives.claimed.is_empty() || !self.lives.expired.is_empty() {
                self.hands_over();
                self.tells_expired();
            }
            self.settle()?;
        }
        Ok(())
    }

    // ---- what must hold

    /// What was told of notifications since it was looked at: an end of a kept one is in the store already, and nothing goes back.
    pub(super) fn check_told(&mut self) -> Result<(), String> {
        for change in std::mem::take(&mut self.world.changes) {
            let trace = &change.trace;
            if trace.is_kept() && trace.state.is_end() {
                let stored = self.world.ask(notifications::Trace { id: trace.id });
                let stored = stored.map(|stored| stored.state);
                if stored != Some(trace.state) {
                    return Err(format!("{} was told as {:?}, and is {stored:?}", trace.id, trace.state));
                }
            }
            self.note_told(trace.id, trace.state)?;
        }
        self.check_asked()
    }

    /// The state that somebody asked for.
    fn check_asked(&mut self) -> Result<(), String> {
        if let Some((id, before, outcome)) = &self.lives.asked {
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
                    self.lives.seen.insert(id, trace.state);
                }
                Ok(_) => {}
            }
        }
        self.lives.asked = None;
        Ok(())
    }

    /// A state is told. The end of a kept one is told once.
    fn note_told(&mut self, id: NotificationId, state: NotificationState) -> Result<(), String> {
        if state.is_end() && self.lives.is_kept(id) && !self.lives.ended.insert(id) {
            return Err(format!("{id}: its end, {state:?}, was told twice"));
        }
        goes_on(id, self.lives.told.insert(id, state), state)
    }

    /// Every kept notification that was accepted is at the device, waits, or ended for a reason; and its end is one event.
    pub(super) fn check_lives(&mut self) -> Result<(), String> {
        let all = Events { after: 0, domain: None, states: States::ALL, max: u16::MAX };
        let events: Vec<NotificationId> =
            self.world.ask(all).events.iter().map(|(_, trace)| trace.id).collect();
        for (id, account) in self.accepted.clone() {
            let Some(trace) = self.world.ask(notifications::Trace { id }) else {
                return Err(format!("{id}, accepted for {account}, is lost"));
            };
            let told = events.iter().filter(|event| **event == id).count();
            if told != usize::from(trace.state.is_end()) {
                return Err(format!("{id} is {:?}, and there are {told} events of it", trace.state));
            }
            self.check_end(&trace)?;
        }
        Ok(())
    }

    fn check_end(&self, trace: &Trace) -> Result<(), String> {
        let now = self.world.now().unix;
        let had = || self.has(&trace.id.to_string());
        let is_for_all = trace.audience == Audience::Always;
        let is_right = match trace.state {
            NotificationState::Acknowledged => had(),
            NotificationState::Stored | NotificationState::Sent => {
                let is_here = self.clients.iter().any(|client| {
                    client.xmpp().is_some_and(|client| Some(&*client.account) == trace.to.local())
                        && self.is_available(client)
                });
                // One for who is there that was given to nobody when the node ended waits for its expiry.
                had() || !is_here || !is_for_all
            }
            NotificationState::Scheduled => trace.send_at.is_some_and(|at| at > now),
            NotificationState::Expired => trace.expires.is_some_and(|at| at <= now),
            NotificationState::Replaced => trace.collapse_key.is_some(),
            NotificationState::Cancelled => self.lives.cancelled.contains(&trace.id),
            NotificationState::Dropped => !is_for_all,
            NotificationState::Accepted => false,
        };
        if is_right { Ok(()) } else { Err(format!("{trace:?}, and nobody knows why")) }
    }
}

impl Lives {
    /// Whether it is one whose end the store decides.
    fn is_kept(&self, id: NotificationId) -> bool {
        self.sent.iter().any(|notification| notification.id == id && notification.is_kept())
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
        | NotificationState::Dropped => 4,
    }
}

/// How long the node claims what is due.
const CLAIM_MS: u64 = 2000;
