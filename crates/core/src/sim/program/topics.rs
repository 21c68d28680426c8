//! What must hold of topics in the end.

use super::actions::jid;
use super::{ACCOUNTS, Connected, DOMAIN, Mix, Program, TOPICS, holds};
use crate::model::{Item, TopicRecord};
use crate::ports::store::items::Items;
use crate::ports::store::subscriptions::IsSubscribed;
use crate::ports::store::topics::Topic;
use crate::sim::client::Got;
use std::sync::Arc;

impl Program {
    pub(super) fn check_topics(&mut self) -> Result<(), String> {
        match self.mix {
            Mix::Publishing | Mix::Following | Mix::Losing => {
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

    /// The place of an item in the order of commits.
    fn place(&self, item: &str) -> Result<usize, String> {
        let place = self.published_items.iter().position(|(_, id)| id == item);
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
                    let between = &self.published_items[before.0 + 1..after.0.max(before.0 + 1)];
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
            let exists = self.published_items.last().is_some_and(|(_, item)| *item == id);
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
            if self.mix == Mix::Losing && !self.is_available(&self.clients[whose]) {
                // Whoever asked where the account is at home may not have been answered: that is asked again after a while.
                self.passes(5000);
                self.settle()?;
            }
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
