//! Domains.

use super::{Committed, answers};
use crate::model::{Affiliation, Domain, DomainId};
use crate::ports::Missing;
use crate::ports::store::domains::{DeleteDomain, Domains, PutDomain, PutDomainAnswer};

answers! {
    Domains => list;
    PutDomain => put;
    DeleteDomain => delete;
}

fn list(store: &Committed, _: &Domains) -> Vec<Domain> {
    let mut domains: Vec<Domain> = store.domains.values().cloned().collect();
    domains.sort_by(|a, b| a.name.cmp(&b.name));
    domains
}

fn put(store: &mut Committed, asked: &PutDomain) -> PutDomainAnswer {
    let known = store.domains.values().find(|domain| *domain.name == *asked.name).map(|domain| domain.id);
    let id = known.unwrap_or_else(|| DomainId(store.number()));
    let domain = Domain { id, name: (*asked.name).into(), policy: asked.policy };
    store.domains.insert(id, domain.clone());
    PutDomainAnswer { domain, created: known.is_none() }
}

fn delete(store: &mut Committed, asked: &DeleteDomain) -> Result<(), Missing> {
    let gone = asked.domain;
    store.domains.remove(&gone).ok_or(Missing)?;
    let accounts: Vec<_> =
        store.accounts.iter().filter(|(_, a)| a.domain == gone).map(|(id, a)| (*id, a.jid.clone())).collect();
    for (id, jid) in accounts {
        store.accounts.remove(&id);
        for topic in store.topics.values_mut() {
            topic.followers.remove(&id);
            // A ban is the topic's, and stays.
            topic.affiliations.retain(|holder, a| *holder != jid || *a == Affiliation::Outcast);
        }
    }
    let topics: Vec<_> = store.topics.values().filter(|topic| topic.domain == gone).map(|t| t.id).collect();
    for id in topics {
        store.topics.remove(&id);
        for account in store.accounts.values_mut() {
            account.topics.remove(&id);
        }
    }
    store.account_names.retain(|(domain, _), _| *domain != gone);
    store.topic_names.retain(|(domain, _), _| *domain != gone);
    store.waiting.retain(|_, waiting| waiting.notification.domain != gone);
    store.ended.retain(|_, (domain, _)| *domain != gone);
    store.keys.retain(|_, key| key.key.domain != Some(gone));
    store.webhooks.retain(|_, hook| hook.webhook.domain != Some(gone));
    let Committed { keys, reserved, .. } = store;
    reserved.retain(|(key, _), _| keys.contains_key(key));
    Ok(())
}
