//! Topics and who stands how to them.

use super::{Committed, answers, tables};
use crate::model::{Affiliation, Revision, TopicId, TopicRecord};
use crate::ports::Missing;
use crate::ports::store::topics::{
    AffiliationsOf, ConfigureTopic, CreateTopic, CreateTopicAnswer, DeleteTopic, SetAffiliations, Topic,
    Topics,
};
use carillon_wire::jid::BareJid;
use std::collections::{BTreeMap, BTreeSet};

answers! {
    Topic => describe;
    Topics => list;
    AffiliationsOf => affiliations_of;
    CreateTopic => create;
    ConfigureTopic => configure;
    SetAffiliations => set_affiliations;
    DeleteTopic => delete;
}

fn describe(store: &Committed, asked: &Topic) -> Option<Box<TopicRecord>> {
    store.topic_named(asked.domain, &asked.name).map(|topic| Box::new(topic.record()))
}

fn list(store: &Committed, asked: &Topics) -> Vec<TopicRecord> {
    let names = store.topic_names.iter().filter(|((domain, name), _)| {
        *domain == asked.domain && asked.after.as_ref().is_none_or(|after| name > after)
    });
    let topics = names.filter_map(|(_, id)| store.topics.get(id)).take(asked.limit.into());
    topics.map(tables::Topic::record).collect()
}

fn affiliations_of(store: &Committed, asked: &AffiliationsOf) -> Vec<(Box<str>, Affiliation)> {
    let names = store.topic_names.iter().filter(|((domain, _), _)| *domain == asked.domain);
    let topics = names.filter_map(|(_, id)| store.topics.get(id));
    topics.filter_map(|topic| Some((topic.name.clone(), *topic.affiliations.get(&asked.jid)?))).collect()
}

fn create(store: &mut Committed, asked: &CreateTopic) -> CreateTopicAnswer {
    let CreateTopic { domain, name, config, affiliations, owned_max, now } = asked;
    let mut owners = affiliations.iter().filter(|(_, a)| *a == Affiliation::Owner);
    if owners.any(|(jid, _)| owned(store, jid) >= *owned_max as usize) {
        return CreateTopicAnswer::Full;
    }
    if !store.domains.contains_key(domain) {
        return CreateTopicAnswer::NoDomain;
    }
    if store.topic_named(*domain, name).is_some() {
        return CreateTopicAnswer::Exists;
    }
    let bound = store.domains.get(domain).map_or(u32::MAX, |domain| domain.policy.topics());
    if store.topics.values().filter(|topic| topic.domain == *domain).count() >= bound as usize {
        return CreateTopicAnswer::DomainFull;
    }
    let mut topic = tables::Topic {
        id: TopicId(store.number()),
        domain: *domain,
        name: name.clone(),
        created: *now,
        revision: Revision::default(),
        config: config.clone(),
        affiliations: BTreeMap::new(),
        items: BTreeMap::new(),
        followers: BTreeSet::new(),
    };
    topic.set_affiliations(affiliations);
    let record = topic.record();
    store.topic_names.insert((*domain, name.clone()), topic.id);
    store.topics.insert(topic.id, topic);
    CreateTopicAnswer::Created(Box::new(record))
}

/// How many topics an account owns.
fn owned(store: &Committed, jid: &BareJid) -> usize {
    store.topics.values().filter(|topic| topic.affiliations.get(jid) == Some(&Affiliation::Owner)).count()
}

fn configure(store: &mut Committed, asked: &ConfigureTopic) -> Result<bool, Missing> {
    let topic = store.topics.get_mut(&asked.topic).ok_or(Missing)?;
    // A topic that keeps no items any more would send the last one it kept for ever.
    topic.trim(if asked.config.persist_items { asked.config.max_items } else { 0 });
    topic.config = asked.config.clone();
    topic.advance();
    Ok(false)
}

fn set_affiliations(store: &mut Committed, asked: &SetAffiliations) -> Result<(), Missing> {
    let topic = store.topics.get_mut(&asked.topic).ok_or(Missing)?;
    topic.set_affiliations(&asked.changes);
    topic.advance();
    Ok(())
}

fn delete(store: &mut Committed, asked: &DeleteTopic) -> Result<bool, Missing> {
    let topic = store.topics.remove(&asked.topic).ok_or(Missing)?;
    store.topic_names.remove(&(topic.domain, topic.name));
    for follower in topic.followers {
        if let Some(account) = store.accounts.get_mut(&follower) {
            account.topics.remove(&topic.id);
            account.advance();
        }
    }
    Ok(false)
}

impl tables::Topic {
    fn set_affiliations(&mut self, changes: &[(BareJid, Affiliation)]) {
        for (jid, affiliation) in changes {
            match affiliation {
                Affiliation::None => drop(self.affiliations.remove(jid)),
                standing => drop(self.affiliations.insert(jid.clone(), *standing)),
            }
        }
    }
}
