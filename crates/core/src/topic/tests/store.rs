//! A store of topics in memory, for tests: what the port promises, and nothing else.

use crate::model::*;
use crate::ports::store::accounts;
use crate::ports::store::items::{ItemNames, ItemNamesAnswer, Items, Publish, Purge, Retract};
use crate::ports::store::subscriptions::{
    IsSubscribed, Subscribe, SubscribeAnswer, SubscriberCount, Subscribers, SubscriptionsOf, Unsubscribe,
};
use crate::ports::store::topics::{
    self, AffiliationsOf, ConfigureTopic, CreateTopic, CreateTopicAnswer, DeleteTopic, SetAffiliations,
};
use crate::ports::store::{Answers, ReadAsk, WriteAsk};
use crate::ports::{Answer, Ask, Fault, Missing, Question};
use crate::sasl::scram;
use carillon_wire::jid::BareJid;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

/// Every account's password.
pub const PASSWORD: &str = "secret";

/// A store of topics in memory.
#[derive(Default)]
pub struct Store {
    topics: BTreeMap<TopicId, Topic>,
    accounts: Vec<Box<str>>,
    credentials: Credentials,
    next: u32,
}

struct Topic {
    record: TopicRecord,
    revision: Revision,
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

    /// Whether `local` follows the topic `name`.
    pub fn follows(&self, local: &str, name: &str) -> bool {
        self.named(name).is_some_and(|topic| topic.followers.contains(local))
    }

    /// The last item of the topic `name` that is given at every login.
    pub fn last(&self, name: &str) -> Option<Arc<Item>> {
        self.named(name).and_then(Topic::last)
    }

    /// Answers what is about topics, and logins; nothing else is kept here.
    pub fn answer(&mut self, ask: &Ask) -> Answer {
        let Ok(answer): Result<Answer, Infallible> = match ask {
            Ask::Read(ReadAsk::Topics(ask)) => ask.answer_by(self),
            Ask::Read(ReadAsk::Subscriptions(ask)) => ask.answer_by(self),
            Ask::Read(ReadAsk::Items(ask)) => ask.answer_by(self),
            Ask::Write(WriteAsk::Topics(ask)) => ask.answer_by(self),
            Ask::Write(WriteAsk::Subscriptions(ask)) => ask.answer_by(self),
            Ask::Write(WriteAsk::Items(ask)) => ask.answer_by(self),
            Ask::Read(ReadAsk::Accounts(accounts::ReadAsk::Identity(ask))) => {
                Ok(accounts::Identity::wrap(Some(Box::new(self.identity(&ask.local)))))
            }
            Ask::Read(ReadAsk::Accounts(accounts::ReadAsk::Login(ask))) => {
                Ok(accounts::Login::wrap(Some(Box::new(self.login(ask.account)))))
            }
            _ => Ok(Answer::Failed(Fault::Broken)),
        };
        answer
    }

    /// Accounts are numbered as they are first asked for.
    fn identity(&mut self, local: &str) -> Identity {
        let place = self.accounts.iter().position(|known| **known == *local).unwrap_or_else(|| {
            self.accounts.push(local.into());
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
            generation: Generation::default(),
        }
    }

    fn named(&self, name: &str) -> Option<&Topic> {
        self.topics.values().find(|topic| *topic.record.name == *name)
    }

    /// A topic that is about to change.
    fn change(&mut self, topic: TopicId) -> Result<&mut Topic, Missing> {
        let topic = self.topics.get_mut(&topic).ok_or(Missing)?;
        topic.revision.0 += 1;
        Ok(topic)
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

/// Teaches the store to answer a question.
macro_rules! answers {
    ($($question:ty => |$store:ident, $asked:ident| $answer:expr;)*) => {
        $(impl Answers<$question, Infallible> for Store {
            fn answer(&mut self, $asked: &$question) -> Result<<$question as Question>::Answer, Infallible> {
                let $store = self;
                Ok($answer)
            }
        })*
    };
}

answers! {
    topics::Topic => |store, asked| store.named(&asked.name).map(|topic| Box::new(topic.record.clone()));
    topics::Topics => |store, asked| {
        let mut records: Vec<_> = store.topics.values().map(|topic| topic.record.clone()).collect();
        records.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        records.retain(|record| asked.after.as_ref().is_none_or(|after| record.name > *after));
        records.truncate(asked.limit.into());
        records
    };
    AffiliationsOf => |store, asked| {
        let of = |topic: &Topic| {
            let record = &topic.record;
            let found = record.affiliations.iter().find(|(jid, _)| *jid == asked.jid)?;
            Some((record.name.clone(), found.1))
        };
        store.topics.values().filter_map(of).collect()
    };
    CreateTopic => |store, asked| store.create(asked);
    ConfigureTopic => |store, asked| store.change(asked.topic).map(|topic| {
        topic.trim(if asked.config.persist_items { asked.config.max_items } else { 0 });
        topic.record.config = asked.config.clone();
    });
    SetAffiliations => |store, asked| store.change(asked.topic).map(|topic| {
        topic.record.affiliations = super::super::rights::affiliations_after(&topic.record, &asked.changes);
    });
    DeleteTopic => |store, asked| store.topics.remove(&asked.topic).map(drop).ok_or(Missing);
    SubscriptionsOf => |store, asked| {
        let followed = store.topics.values().filter(|topic| topic.followers.contains(&asked.local));
        followed.map(|topic| (topic.record.id, topic.record.name.clone())).collect()
    };
    IsSubscribed => |store, asked| {
        store.topics.get(&asked.topic).is_some_and(|topic| topic.followers.contains(&asked.local))
    };
    Subscribers => |store, asked| {
        let jid = |local: &str| BareJid::from_parts(Some(local), "d").expect("an account");
        let followers = store.topics.get(&asked.topic).into_iter().flat_map(|topic| &topic.followers);
        followers.map(|local| jid(local)).filter(|jid| asked.after.as_ref().is_none_or(|after| jid > after)).collect()
    };
    SubscriberCount => |store, asked| {
        store.topics.get(&asked.topic).map_or(0, |topic| topic.followers.len() as u64)
    };
    Subscribe => |store, asked| match store.change(asked.topic) {
        Ok(topic) => SubscribeAnswer::Subscribed {
            new: topic.followers.insert(asked.local.clone()),
            last: topic.items.last().cloned(),
        },
        Err(Missing) => SubscribeAnswer::Missing,
    };
    Unsubscribe => |store, asked| {
        let was = store.change(asked.topic).is_ok_and(|topic| topic.followers.remove(&asked.local));
        was.then_some(()).ok_or(Missing)
    };
    Items => |store, asked| store.topics.get(&asked.topic).map(|topic| {
        let is_wanted = |item: &&Arc<Item>| asked.ids.is_empty() || asked.ids.contains(&item.id);
        topic.items.iter().rev().filter(is_wanted).take(asked.max as usize).cloned().collect()
    });
    ItemNames => |store, asked| store.topics.get(&asked.topic).map(|topic| ItemNamesAnswer {
        ids: topic.items.iter().rev().take(asked.max as usize).map(|item| item.id.clone()).collect(),
        count: topic.items.len() as u32,
    });
    Publish => |store, asked| store.change(asked.item.topic).ok().map(|topic| {
        let item = Arc::new(Item { revision: topic.revision, ..asked.item.clone() });
        topic.items.retain(|kept| kept.id != item.id);
        topic.items.push(item.clone());
        topic.trim(asked.keep);
        item
    });
    Retract => |store, asked| store.change(asked.topic).and_then(|topic| {
        let before = topic.items.len();
        topic.items.retain(|kept| kept.id != asked.item);
        if topic.items.len() < before { Ok(()) } else { Err(Missing) }
    });
    Purge => |store, asked| if let Ok(topic) = store.change(asked.topic) {
        topic.items.clear();
    };
}

impl Store {
    fn create(&mut self, asked: &CreateTopic) -> CreateTopicAnswer {
        if self.named(&asked.name).is_some() {
            return CreateTopicAnswer::Exists;
        }
        self.next += 1;
        let record = TopicRecord {
            id: TopicId(self.next),
            domain: asked.domain,
            name: asked.name.clone(),
            config: asked.config.clone(),
            affiliations: asked.affiliations.clone(),
            created: asked.now,
        };
        let (items, followers) = (Vec::new(), BTreeSet::new());
        let topic = Topic { record: record.clone(), revision: Revision(0), items, followers };
        self.topics.insert(record.id, topic);
        CreateTopicAnswer::Created(Box::new(record))
    }
}
