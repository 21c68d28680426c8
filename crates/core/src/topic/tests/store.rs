//! A store of topics in memory, for tests: what the port promises, and nothing else.

use crate::model::*;
use crate::ports::{Answer, Ask};
use crate::sasl::scram;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Every account's password.
pub const PASSWORD: &str = "secret";

/// A store of topics in memory.
#[derive(Default)]
pub struct Store {
    topics: BTreeMap<TopicId, Topic>,
    accounts: Vec<Box<str>>,
    credentials: Credentials,
    revision: u64,
    next: u32,
}

struct Topic {
    record: TopicRecord,
    /// Oldest first.
    items: Vec<Arc<Item>>,
    followers: BTreeSet<Box<str>>,
}

impl Store {
    /// An empty store in which every account exists.
    pub fn new() -> Store {
        // One iteration: these keys guard nothing.
        let credentials = scram::keys(PASSWORD, b"0123456789abcdef", 1).expect("a password");
        Store { credentials, ..Store::default() }
    }

    /// Whether a question changes nothing, and may be answered out of turn.
    pub fn is_read(ask: &Ask) -> bool {
        matches!(
            ask,
            Ask::Identity { .. }
                | Ask::Login { .. }
                | Ask::Topic { .. }
                | Ask::Topics { .. }
                | Ask::SubscriptionsOf { .. }
                | Ask::IsSubscribed { .. }
                | Ask::Subscribers { .. }
                | Ask::AffiliationsOf { .. }
                | Ask::Items { .. }
        )
    }

    /// Whether `local` follows the topic `name`.
    pub fn follows(&self, local: &str, name: &str) -> bool {
        self.named(name).is_some_and(|topic| topic.followers.contains(local))
    }

    /// The last item of the topic `name` that is given at every login.
    pub fn last(&self, name: &str) -> Option<Arc<Item>> {
        self.named(name).and_then(Topic::last)
    }

    /// Answers.
    pub fn answer(&mut self, ask: Ask) -> Answer {
        match ask {
            Ask::Identity { local, .. } => Answer::Identity(Box::new(self.identity(local))),
            Ask::Login { account, .. } => Answer::Login(Box::new(self.login(account))),
            Ask::Topic { name, .. } => match self.named(&name) {
                Some(topic) => Answer::Topic(Box::new(topic.record.clone())),
                None => Answer::Missing,
            },
            Ask::CreateTopic { domain, name, config, affiliations, now, .. } => {
                self.create(domain, name, config, affiliations, now)
            }
            Ask::SubscriptionsOf { local, .. } => {
                let followed = self.topics.values().filter(|topic| topic.followers.contains(&local));
                Answer::TopicNames(
                    followed.map(|topic| (topic.record.id, topic.record.name.clone())).collect(),
                )
            }
            Ask::ConfigureTopic { topic, .. }
            | Ask::SetAffiliations { topic, .. }
            | Ask::DeleteTopic { topic }
            | Ask::Subscribe { topic, .. }
            | Ask::Unsubscribe { topic, .. }
            | Ask::IsSubscribed { topic, .. }
            | Ask::Retract { topic, .. }
            | Ask::Purge { topic }
            | Ask::Items { topic, .. } => self.about(topic, ask),
            Ask::Publish { item, keep } => self.publish(item, keep),
            _ => Answer::Done,
        }
    }

    fn about(&mut self, id: TopicId, ask: Ask) -> Answer {
        self.revision += 1;
        let Some(topic) = self.topics.get_mut(&id) else { return Answer::Missing };
        let done = |is_done| if is_done { Answer::Done } else { Answer::Missing };
        match ask {
            Ask::ConfigureTopic { config, .. } => {
                let keep = if config.persist_items { config.max_items } else { 0 };
                topic.record.config = config;
                topic.trim(keep);
                Answer::Done
            }
            Ask::SetAffiliations { changes, .. } => {
                topic.record.affiliations = super::super::rights::affiliations_after(&topic.record, &changes);
                Answer::Done
            }
            Ask::DeleteTopic { .. } => done(self.topics.remove(&id).is_some()),
            Ask::Subscribe { local, .. } => {
                let new = topic.followers.insert(local);
                Answer::Subscribed { new, last: topic.items.last().cloned() }
            }
            Ask::Unsubscribe { local, .. } => done(topic.followers.remove(&local)),
            Ask::IsSubscribed { local, .. } => done(topic.followers.contains(&local)),
            Ask::Retract { item, .. } => {
                let before = topic.items.len();
                topic.items.retain(|kept| kept.id != item);
                done(topic.items.len() < before)
            }
            Ask::Purge { .. } => {
                topic.items.clear();
                Answer::Done
            }
            Ask::Items { ids, max, .. } => {
                let wanted = topic.items.iter().rev().filter(|item| ids.is_empty() || ids.contains(&item.id));
                Answer::Items(wanted.take(max as usize).cloned().collect())
            }
            _ => Answer::Done,
        }
    }

    fn publish(&mut self, item: Item, keep: u32) -> Answer {
        self.revision += 1;
        let Some(topic) = self.topics.get_mut(&item.topic) else { return Answer::Missing };
        let item = Arc::new(Item { revision: Revision(self.revision), ..item });
        topic.items.retain(|kept| kept.id != item.id);
        topic.items.push(item.clone());
        topic.trim(keep);
        Answer::Published(item)
    }

    fn create(
        &mut self,
        domain: DomainId,
        name: Box<str>,
        config: TopicConfig,
        affiliations: Vec<(carillon_wire::jid::BareJid, Affiliation)>,
        created: UnixMs,
    ) -> Answer {
        if self.named(&name).is_some() {
            return Answer::Exists;
        }
        self.next += 1;
        let record = TopicRecord { id: TopicId(self.next), domain, name, config, affiliations, created };
        let topic = Topic { record: record.clone(), items: Vec::new(), followers: BTreeSet::new() };
        self.topics.insert(record.id, topic);
        Answer::Topic(Box::new(record))
    }

    /// Accounts are numbered as they are first asked for.
    fn identity(&mut self, local: Box<str>) -> Identity {
        let place = self.accounts.iter().position(|known| *known == local).unwrap_or_else(|| {
            self.accounts.push(local);
            self.accounts.len() - 1
        });
        Identity {
            account: AccountId(place as u64),
            credentials: self.credentials.clone(),
            state: AccountState::Enabled,
            revocations: Default::default(),
        }
    }

    fn login(&self, account: AccountId) -> Login {
        let local = &self.accounts[account.0 as usize];
        let followed = self.topics.values().filter(|topic| topic.followers.contains(local));
        let subscriptions =
            followed.map(|topic| Subscription { topic: topic.record.id, last: topic.last() }).collect();
        Login {
            state: AccountState::Enabled,
            subscriptions,
            waiting: Waiting::default(),
            revision: Revision(self.revision),
        }
    }

    fn named(&self, name: &str) -> Option<&Topic> {
        self.topics.values().find(|topic| *topic.record.name == *name)
    }
}

impl Topic {
    fn trim(&mut self, keep: u32) {
        let excess = self.items.len().saturating_sub(keep as usize);
        self.items.drain(..excess);
    }

    fn last(&self) -> Option<Arc<Item>> {
        self.items.last().filter(|_| self.record.config.is_given_at_login()).cloned()
    }
}
