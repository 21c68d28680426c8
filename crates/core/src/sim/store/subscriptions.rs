//! Who follows what.

use super::{Committed, answers};
use crate::model::TopicId;
use crate::ports::Missing;
use crate::ports::store::subscriptions::{
    IsSubscribed, Subscribe, SubscribeAnswer, SubscriberCount, Subscribers, SubscriptionsOf, Unsubscribe,
};
use carillon_wire::jid::BareJid;

answers! {
    SubscriptionsOf => of_account;
    IsSubscribed => is_subscribed;
    Subscribers => list;
    SubscriberCount => count;
    Subscribe => subscribe;
    Unsubscribe => unsubscribe;
}

fn of_account(store: &Committed, asked: &SubscriptionsOf) -> Vec<(TopicId, Box<str>)> {
    let account = store.account(asked.domain, &asked.local);
    let topics =
        account.into_iter().flat_map(|account| &account.topics).filter_map(|id| store.topics.get(id));
    let mut found: Vec<_> = topics.map(|topic| (topic.id, topic.name.clone())).collect();
    found.sort_by(|a, b| a.1.cmp(&b.1));
    found
}

fn is_subscribed(store: &Committed, asked: &IsSubscribed) -> bool {
    store.account(asked.domain, &asked.local).is_some_and(|account| account.topics.contains(&asked.topic))
}

fn list(store: &Committed, asked: &Subscribers) -> Vec<BareJid> {
    let followers = store.topics.get(&asked.topic).into_iter().flat_map(|topic| &topic.followers);
    let mut jids: Vec<BareJid> =
        followers.filter_map(|id| store.accounts.get(id)).map(|account| account.jid.clone()).collect();
    jids.retain(|jid| asked.after.as_ref().is_none_or(|after| jid > after));
    jids.sort();
    jids.truncate(asked.limit.into());
    jids
}

fn count(store: &Committed, asked: &SubscriberCount) -> u64 {
    store.topics.get(&asked.topic).map_or(0, |topic| topic.followers.len() as u64)
}

fn subscribe(store: &mut Committed, asked: &Subscribe) -> SubscribeAnswer {
    let Some(id) = store.account_id(asked.domain, &asked.local) else { return SubscribeAnswer::Missing };
    let Committed { accounts, topics, .. } = store;
    let (Some(account), Some(topic)) = (accounts.get_mut(&id), topics.get_mut(&asked.topic)) else {
        return SubscribeAnswer::Missing;
    };
    if account.topics.len() >= asked.max as usize && !account.topics.contains(&topic.id) {
        return SubscribeAnswer::Full;
    }
    let (new, last) = (topic.followers.insert(id), topic.last().cloned());
    account.topics.insert(topic.id);
    if new {
        account.advance();
    }
    SubscribeAnswer::Subscribed { new, last }
}

fn unsubscribe(store: &mut Committed, asked: &Unsubscribe) -> Result<(), Missing> {
    let id = store.account_id(asked.domain, &asked.local).ok_or(Missing)?;
    let topic = store.topics.get_mut(&asked.topic).ok_or(Missing)?;
    if !topic.followers.remove(&id) {
        return Err(Missing);
    }
    if let Some(account) = store.accounts.get_mut(&id) {
        account.topics.remove(&asked.topic);
        account.advance();
    }
    Ok(())
}
