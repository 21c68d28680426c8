//! What must hold.

use super::deeds::jid;
use super::{ACCOUNTS, Client, Connected, DOMAIN, Mix, Program, QUEUE_BYTES_MAX, QUEUE_BYTES_MORE, TOPICS};
use crate::command::Outcome;
use crate::model::{Item, NotificationId, NotificationState, TopicRecord};
use crate::ports::store::items::Items;
use crate::ports::store::notifications::{self, EndNotifications};
use crate::ports::store::subscriptions::IsSubscribed;
use crate::ports::store::topics::Topic;
use crate::sim::client::Got;
use std::sync::Arc;

/// Says what does not hold, unless it does.
fn holds(is_so: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(what()) }
}

// ---- after each step

impl Program {
    /// What was sent since it was looked at: nothing is sent whose end is committed, and no queue is longer than it may be.
    pub(super) fn check_sent(&mut self) -> Result<(), String> {
        for connected in &mut self.clients {
            let link = self.world.connection(connected.link);
            let queued = link.queued();
            holds(queued <= QUEUE_BYTES_MAX + QUEUE_BYTES_MORE, || {
                format!("{queued} bytes wait for {link:?}")
            })?;
            for (element, end) in link.sent_after(connected.seen_bytes) {
                connected.seen_bytes = end;
                let text = String::from_utf8_lossy(element);
                let id = text.contains("<notification ").then(|| text.split("' id='").nth(1)).flatten();
                let id = id.and_then(|rest| rest.split('\'').next()?.parse::<NotificationId>().ok());
                let is_ended = id.is_some_and(|id| self.ended.contains(&id));
                holds(!is_ended, || format!("{id:?} was sent after its end was committed: {text}"))?;
            }
        }
        Ok(())
    }

    /// Ends were committed.
    pub(super) fn note_ends(&mut self, end: &EndNotifications) {
        let ends = end.changes.iter().filter(|change| change.state.is_end());
        self.ended.extend(ends.map(|change| change.id));
    }

    /// Notes what commands were answered.
    pub(super) fn take_outcomes(&mut self) {
        let mut waiting = Vec::new();
        for (id, outcome) in std::mem::take(&mut self.outcomes) {
            match outcome.try_recv() {
                Ok(Outcome::Notified(trace)) if trace.state != NotificationState::Dropped => {
                    let whose = trace.to.local().unwrap_or_default().to_owned();
                    self.accepted.extend(id.map(|id| (id, whose)));
                }
                Ok(_) => {}
                Err(_) => waiting.push((id, outcome)),
            }
        }
        self.outcomes = waiting;
    }
}

// ---- in the end

impl Program {
    /// Every command was answered.
    pub(super) fn check_outcomes(&mut self) -> Result<(), String> {
        self.take_outcomes();
        let unanswered = self.outcomes.len();
        holds(unanswered == 0, || format!("{unanswered} commands were not answered"))
    }

    /// What was accepted is at the device, or in the store; and a device that acknowledges has all of it.
    pub(super) fn check_notifications(&mut self) -> Result<(), String> {
        for (id, account) in self.accepted.clone() {
            let trace = self.world.ask(notifications::Trace { id });
            let Some(trace) = trace else { return Err(format!("{id}, accepted for {account}, is lost")) };
            let had = self.has(&id.to_string());
            match trace.state {
                NotificationState::Acknowledged => {
                    holds(had, || format!("{id} of {account} is acknowledged, and nobody has it"))?;
                }
                NotificationState::Stored | NotificationState::Sent => {
                    let is_here = self
                        .clients
                        .iter()
                        .any(|connected| connected.is_of(&account) && self.is_available(connected));
                    holds(had || !is_here, || format!("{id} waits for {account}, who is here"))?;
                }
                other => return Err(format!("{id} of {account} is {other:?}")),
            }
        }
        Ok(())
    }

    /// Whether any client was given this notification.
    pub(super) fn has(&self, name: &str) -> bool {
        let mut got = self.clients.iter().flat_map(Connected::got);
        got.any(|got| matches!(got, Got::Notification { id } if id == name))
    }

    pub(super) fn check_topics(&mut self) -> Result<(), String> {
        match self.mix {
            Mix::Publishing | Mix::Following => {
                self.check_order(self.mix == Mix::Following)?;
                self.check_last()?;
                self.check_followers()?;
                self.check_logins()
            }
            _ => {
                self.check_logins()?;
                self.check_followers()
            }
        }
    }

    pub(super) fn is_available(&self, connected: &Connected) -> bool {
        let is_open = self.world.connection(connected.link).is_open();
        is_open && connected.xmpp().is_some_and(|client| client.is_available)
    }

    /// The place of an item in the order of commits.
    fn place(&self, item: &str) -> Result<usize, String> {
        let place = self.committed.iter().position(|(_, id)| id == item);
        place.ok_or_else(|| format!("{item} was told and never committed"))
    }

    /// The items of a topic that a client was told of, by their places, and whether as the last.
    fn told(&self, connected: &Connected, wanted: &str) -> Result<Vec<(usize, bool)>, String> {
        let items = connected.got().iter().filter_map(|got| match got {
            Got::Item { topic, id, is_last } if topic == wanted => Some((id, *is_last)),
            _ => None,
        });
        items.map(|(id, is_last)| Ok((self.place(id)?, is_last))).collect()
    }

    /// Nothing twice, nothing older after something newer, and no gap. Only after a change of subscription may the last
    /// item come again, and gaps be.
    fn check_order(&self, changed: bool) -> Result<(), String> {
        for connected in &self.clients {
            for topic in TOPICS {
                let told = self.told(connected, topic)?;
                for (before, after) in told.iter().zip(told.iter().skip(1)) {
                    let again = changed && after.1 && after.0 == before.0;
                    let what = || format!("{}: {topic}: {:?}", connected.name(), connected.got());
                    holds(after.0 > before.0 || again, || format!("out of order: {}", what()))?;
                    let between = &self.committed[before.0 + 1..after.0.max(before.0 + 1)];
                    let missed = between.iter().any(|(name, _)| name == topic);
                    holds(changed || !missed, || format!("missed one: {}", what()))?;
                }
            }
        }
        Ok(())
    }

    /// Whoever follows a topic and is available had its last item.
    fn check_last(&mut self) -> Result<(), String> {
        for topic in TOPICS {
            let Some(last) = self.last(topic) else { continue };
            let place = self.place(&last.id)?;
            for whose in 0..self.clients.len() {
                let connected = &self.clients[whose];
                let Some(account) = connected.xmpp().map(|client| client.account.clone()) else { continue };
                if !self.is_available(connected) || !self.follows(&account, topic) {
                    continue;
                }
                let told = self.told(&self.clients[whose], topic)?;
                let had = told.last().is_some_and(|(told, _)| *told == place);
                holds(had, || format!("{account}: {topic}: has {told:?}, not {last:?}"))?;
            }
        }
        Ok(())
    }

    /// From now on exactly those who follow a topic are told, once.
    fn check_followers(&mut self) -> Result<(), String> {
        for topic in TOPICS {
            self.publish(topic);
            self.settle()?;
            let id = format!("i{}", self.published);
            let exists = self.committed.last().is_some_and(|(_, item)| *item == id);
            for whose in 0..self.clients.len() {
                let connected = &self.clients[whose];
                let Some(account) = connected.xmpp().map(|client| client.account.clone()) else { continue };
                if !self.is_available(connected) {
                    continue;
                }
                let is_it = |got: &&Got| matches!(got, Got::Item { id: item, .. } if *item == id);
                let times = connected.got().iter().filter(is_it).count();
                let follows = exists && self.follows(&account, topic);
                let got = || format!("{account} and {topic}: {:?}", self.clients[whose].got());
                holds(times == usize::from(follows), || format!("{times} times: {}", got()))?;
            }
        }
        Ok(())
    }

    /// A new session of each account is given the last items of what it follows, and nothing else.
    fn check_logins(&mut self) -> Result<(), String> {
        for account in ACCOUNTS {
            self.connect(account);
            let whose = self.clients.len() - 1;
            self.settle()?;
            let client = &self.clients[whose];
            holds(client.xmpp().is_some_and(|client| client.is_available), || {
                format!("{account} cannot log in: {:?}", client.xmpp())
            })?;
            for topic in TOPICS {
                let told = self.told(&self.clients[whose], topic)?;
                let last = if self.follows(account, topic) { self.last(topic) } else { None };
                let wanted = last.map(|item| self.place(&item.id)).transpose()?.map(|place| (place, true));
                let wanted: Vec<_> = wanted.into_iter().collect();
                holds(told == wanted, || format!("{account}: {topic}: given {told:?}, not {wanted:?}"))?;
            }
        }
        Ok(())
    }

    fn record(&mut self, topic: &str) -> Option<Box<TopicRecord>> {
        let domain = self.world.domain_id(DOMAIN);
        self.world.ask(Topic { domain, name: topic.into() })
    }

    /// The last item of a topic that is given at every login.
    fn last(&mut self, topic: &str) -> Option<Arc<Item>> {
        let record = self.record(topic).filter(|record| record.config.is_given_at_login())?;
        self.world.ask(Items::newest(record.id, 1))?.pop()
    }

    fn follows(&mut self, account: &str, topic: &str) -> bool {
        let Some(record) = self.record(topic) else { return false };
        let local = jid(account).local().unwrap_or_default().into();
        self.world.ask(IsSubscribed { topic: record.id, domain: record.domain, local })
    }
}

impl Connected {
    fn is_of(&self, account: &str) -> bool {
        self.xmpp().is_some_and(|client| client.account == account)
    }

    fn name(&self) -> &str {
        match &self.client {
            Client::Xmpp(client) => &client.account,
            Client::Light(_) => "a light client",
        }
    }
}
