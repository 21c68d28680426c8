//! Domains.

use super::{Committed, accounts, answers};
use crate::model::{Domain, DomainId, RosterChange};
use crate::ports::store::domains::{DeleteDomain, Domains, PutDomain, PutDomainAnswer};
use crate::ports::{Missing, Part};

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

fn delete(store: &mut Committed, asked: &DeleteDomain) -> Result<Part<RosterChange>, Missing> {
    let gone = asked.domain;
    let name = store.domains.get(&gone).ok_or(Missing)?.name.clone();
    let names = store.account_names.iter().filter(|((domain, _), _)| *domain == gone);
    let accounts: Vec<_> = names.map(|(_, id)| *id).collect();
    let (mut part, mut rows) = (Part { entries: Vec::new(), more: true }, 0);
    for id in accounts {
        if rows >= asked.rows_max as usize {
            return Ok(part);
        }
        let mut changes = accounts::remove(store, id);
        rows += 1 + changes.len();
        // Who goes along need not be told.
        changes.retain(|change| change.account.domain() != &*name);
        part.entries.append(&mut changes);
    }
    store.domains.remove(&gone);
    store.held_names.retain(|(domain, _), _| *domain != gone);
    let topics: Vec<_> = store.topics.values().filter(|topic| topic.domain == gone).map(|t| t.id).collect();
    for id in topics {
        store.topics.remove(&id);
        for account in store.accounts.values_mut() {
            account.topics.remove(&id);
        }
    }
    store.topic_names.retain(|(domain, _), _| *domain != gone);
    store.waiting.retain(|_, waiting| waiting.notification.domain != gone);
    store.ended.retain(|_, (domain, _)| *domain != gone);
    store.keys.retain(|_, key| key.key.domain != Some(gone));
    store.webhooks.retain(|_, hook| hook.webhook.domain != Some(gone));
    let Committed { keys, reserved, .. } = store;
    reserved.retain(|(key, _), _| keys.contains_key(key));
    Ok(Part { more: false, ..part })
}
