//! Domains.

use super::{Committed, accounts, answers};
use crate::model::{Domain, DomainId, Policy, RosterChange};
use crate::ports::store::domains::{
    ChangePolicy, DeleteDomain, DomainUsage, Domains, NoteStored, Overtaken, PutDomain, PutDomainAnswer,
    SetPushTemplates, StoredBytes, StoredKind, StoredPart, Usage,
};
use crate::ports::{Missing, Part};

answers! {
    Domains => list;
    DomainUsage => usage;
    StoredBytes => stored;
    NoteStored => note_stored;
    SetPushTemplates => set_push_templates;
    PutDomain => put;
    ChangePolicy => change;
    DeleteDomain => delete;
}

fn list(store: &Committed, _: &Domains) -> Vec<Domain> {
    let mut domains: Vec<Domain> = store.domains.values().cloned().collect();
    domains.sort_by(|a, b| a.name.cmp(&b.name));
    domains
}

fn usage(store: &Committed, asked: &DomainUsage) -> Option<Usage> {
    let domain = asked.domain;
    let count = |of: usize| u32::try_from(of).unwrap_or(u32::MAX);
    store.domains.get(&domain).map(|_| Usage {
        accounts: count(store.accounts.values().filter(|account| account.domain == domain).count()),
        topics: count(store.topics.values().filter(|topic| topic.domain == domain).count()),
        rooms: count(store.own.rooms.of_domain(domain)),
        keys: count(store.keys.values().filter(|key| key.key.domain == Some(domain)).count()),
    })
}

/// Of accounts the messages that wait alone: more is not asked for in a simulation.
fn stored(store: &Committed, asked: &StoredBytes) -> StoredPart {
    let is_after = |name: &str| asked.after.as_deref().is_none_or(|after| name > after);
    let mut all: Vec<(Box<str>, usize)> = match asked.kind {
        StoredKind::Accounts => {
            let accounts = store.accounts.values().filter(|account| account.domain == asked.domain);
            accounts
                .map(|account| {
                    let waiting = account.messages.values().map(|message| message.stanza.len()).sum();
                    (account.jid.local().unwrap_or_default().into(), waiting)
                })
                .collect()
        }
        StoredKind::Topics => {
            let topics = store.topics.values().filter(|topic| topic.domain == asked.domain);
            topics
                .map(|topic| (topic.name.clone(), topic.items.values().map(|item| item.payload.len()).sum()))
                .collect()
        }
    };
    all.retain(|(name, _)| is_after(name));
    all.sort();
    let is_all = all.len() < asked.limit as usize;
    all.truncate(asked.limit as usize);
    let bytes = all.iter().map(|(_, bytes)| *bytes as u64).sum();
    StoredPart { bytes, last: all.pop().map(|(name, _)| name).filter(|_| !is_all) }
}

fn note_stored(store: &mut Committed, asked: &NoteStored) -> Result<(), Missing> {
    store.domains.get_mut(&asked.domain).ok_or(Missing)?.stored_bytes = asked.bytes;
    Ok(())
}

fn set_push_templates(store: &mut Committed, asked: &SetPushTemplates) -> Result<(), Missing> {
    let domain = store.domains.get_mut(&asked.domain).ok_or(Missing)?;
    domain.push_templates = asked.templates.as_deref().map(Into::into);
    Ok(())
}

fn put(store: &mut Committed, asked: &PutDomain) -> PutDomainAnswer {
    let granted = asked.policy;
    let known = named(store, &asked.name);
    let policy = known.as_ref().map_or(granted, |known| known.policy.after_grant(&known.granted, &granted));
    let domain = write(store, known.as_ref(), &asked.name, granted, policy);
    PutDomainAnswer { domain, created: known.is_none() }
}

fn change(store: &mut Committed, asked: &ChangePolicy) -> Result<Domain, Overtaken> {
    let known = named(store, &asked.name);
    if known.as_ref().map(|known| (known.granted, known.policy)) != asked.was.as_deref().copied() {
        return Err(Overtaken);
    }
    Ok(write(store, known.as_ref(), &asked.name, asked.granted, asked.policy))
}

fn named(store: &Committed, name: &str) -> Option<Domain> {
    store.domains.values().find(|domain| *domain.name == *name).cloned()
}

fn write(
    store: &mut Committed,
    known: Option<&Domain>,
    name: &str,
    granted: Policy,
    policy: Policy,
) -> Domain {
    let id = known.map_or_else(|| DomainId(store.number()), |known| known.id);
    let known = known.cloned().unwrap_or_else(|| Domain::new(id, name, policy));
    let domain = Domain { policy, granted, ..known };
    store.domains.insert(id, domain.clone());
    domain
}

fn delete(store: &mut Committed, asked: &DeleteDomain) -> Result<Part<RosterChange>, Missing> {
    let gone = asked.domain;
    let name = store.domains.get(&gone).ok_or(Missing)?.name.clone();
    let names = store.account_names.iter().filter(|((domain, _), _)| *domain == gone);
    let accounts: Vec<_> = names.map(|(_, id)| *id).collect();
    let (mut part, mut rows) = (Part { entries: Vec::new(), more: true }, 0);
    for id in accounts {
        if rows >= asked.rows_max as usize {
            store.removals.insert((gone, None), asked.now);
            store.domains.entry(gone).and_modify(|domain| domain.is_being_removed = true);
            return Ok(part);
        }
        let mut changes = accounts::remove(store, id);
        rows += 1 + changes.len();
        // Who goes along need not be told.
        changes.retain(|change| change.account.domain() != &*name);
        part.entries.append(&mut changes);
    }
    store.domains.remove(&gone);
    store.removals.remove(&(gone, None));
    store.held_names.retain(|(domain, _), _| *domain != gone);
    let topics: Vec<_> = store.topics.values().filter(|topic| topic.domain == gone).map(|t| t.id).collect();
    for id in topics {
        store.topics.remove(&id);
        for account in store.accounts.values_mut() {
            account.topics.remove(&id);
        }
    }
    store.topic_names.retain(|(domain, _), _| *domain != gone);
    store.own.broadcasts.forget_domain(gone);
    store.own.rooms.forget_domain(gone);
    store.waiting.retain(|_, waiting| waiting.notification.domain != gone);
    store.ended.retain(|_, (domain, _)| *domain != gone);
    store.keys.retain(|_, key| key.key.domain != Some(gone));
    store.webhooks.retain(|_, hook| hook.webhook.domain != Some(gone));
    store.links.retain(|_, link| link.domain != gone);
    store.link_secrets.remove(&gone);
    store.link_files.retain(|(domain, _), _| *domain != gone);
    let Committed { keys, reserved, .. } = store;
    reserved.retain(|(key, _), _| keys.contains_key(key));
    Ok(Part { more: false, ..part })
}
