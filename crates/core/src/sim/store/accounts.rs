//! Accounts and logins.

use super::tables::{Account, Told};
use super::{Committed, answers};
use crate::model::{
    self, AccountId, AccountState, Affiliation, ArchivePreferences, Credentials, DomainId, DropReason,
    Generation, NotificationState, Revocations, RosterChange, SendLast, Subscription, UnixMs, ended_with,
};
use crate::ports::store::Answers;
use crate::ports::store::accounts::{
    self, Accounts, CreateAccount, CreateAccountAnswer, DeleteAccount, Enrolment, Identity, ImportAccounts,
    ImportRefused, Login, RevokeTokens, SetAccountState, SetCredentials, UnfinishedRemoval,
    UnfinishedRemovals,
};
use crate::ports::{Fault, Missing, Part};
use carillon_wire::jid::BareJid;
use std::collections::{BTreeMap, BTreeSet};

answers! {
    Identity => identity;
    Login => login;
    accounts::Account => describe;
    Accounts => list;
    SetCredentials => set_credentials;
    SetAccountState => set_state;
    RevokeTokens => revoke_tokens;
    DeleteAccount => delete;
    UnfinishedRemovals => unfinished;
}

impl Answers<CreateAccount, Fault> for Committed {
    fn answer(&mut self, asked: &CreateAccount) -> Result<CreateAccountAnswer, Fault> {
        let CreateAccount { domain, local, credentials, is_in_band, now } = asked;
        let Some(name) = self.domain_to_fill(*domain).map(|domain| domain.name.clone()) else {
            return Ok(CreateAccountAnswer::NoDomain);
        };
        let jid = prepared(local, &name)?;
        if self.account_id(*domain, local).is_some() {
            return Ok(CreateAccountAnswer::Exists);
        }
        let held = self.held_names.get(&(*domain, local.clone()));
        if *is_in_band && held.is_some_and(|until| until > now) {
            return Ok(CreateAccountAnswer::Held);
        }
        let bound = self.domains.get(domain).map_or(u32::MAX, |domain| domain.policy.accounts());
        if self.accounts.values().filter(|account| account.domain == *domain).count() >= bound as usize {
            return Ok(CreateAccountAnswer::DomainFull);
        }
        let id = put(self, *domain, jid, credentials, *now);
        Ok(CreateAccountAnswer::Created(id))
    }
}

impl Answers<ImportAccounts, Fault> for Committed {
    fn answer(&mut self, asked: &ImportAccounts) -> Result<Result<(), ImportRefused>, Fault> {
        let Some(name) = self.domain_to_fill(asked.domain).map(|domain| domain.name.clone()) else {
            return Ok(Err(ImportRefused::NoDomain));
        };
        let gone = |account: &accounts::ImportedAccount| {
            self.account_id(asked.domain, &account.local)
                .is_some_and(|id| self.removals.contains_key(&(asked.domain, Some(id))))
        };
        if asked.accounts.iter().any(gone) {
            return Ok(Err(ImportRefused::IsBeingRemoved));
        }
        // All of them before the first is written: a question that fails changes nothing.
        let jids = asked.accounts.iter().map(|account| prepared(&account.local, &name));
        let jids = jids.collect::<Result<Vec<_>, _>>()?;
        let new: BTreeSet<&str> = asked
            .accounts
            .iter()
            .map(|account| &*account.local)
            .filter(|local| self.account_id(asked.domain, local).is_none())
            .collect();
        let bound = self.domains.get(&asked.domain).map_or(u32::MAX, |domain| domain.policy.accounts());
        let present = self.accounts.values().filter(|account| account.domain == asked.domain).count();
        if !new.is_empty() && present + new.len() > bound as usize {
            return Ok(Err(ImportRefused::DomainFull));
        }
        for (account, jid) in asked.accounts.iter().zip(jids) {
            put(self, asked.domain, jid, &account.credentials, asked.now);
        }
        Ok(Ok(()))
    }
}

/// The address of an account; a local part that was not prepared would make one that nobody can name.
fn prepared(local: &str, domain: &str) -> Result<BareJid, Fault> {
    let jid = BareJid::from_parts(Some(local), domain).map_err(|_| Fault::Broken)?;
    if jid.local() == Some(local) { Ok(jid) } else { Err(Fault::Broken) }
}

/// Writes an account; one that is there keeps all but its keys.
fn put(
    store: &mut Committed,
    domain: DomainId,
    jid: BareJid,
    credentials: &Credentials,
    now: UnixMs,
) -> AccountId {
    let local: Box<str> = jid.local().unwrap_or_default().into();
    if let Some(id) = store.account_id(domain, &local)
        && let Some(account) = store.accounts.get_mut(&id)
    {
        account.credentials = credentials.clone();
        account.advance();
        return id;
    }
    let id = AccountId(u64::from(store.number()));
    let account = Account {
        jid,
        domain,
        created: now,
        credentials: credentials.clone(),
        state: AccountState::Enabled,
        revocations: Revocations::default(),
        topics: BTreeSet::new(),
        generation: Generation::default(),
        messages: BTreeMap::new(),
        record: Generation::default(),
        roster_version: Generation::default(),
        roster: BTreeMap::new(),
        asked: BTreeMap::new(),
        blocked: BTreeSet::new(),
        privacy: Default::default(),
        nodes: BTreeMap::new(),
        archive: BTreeMap::new(),
        conversations: BTreeMap::new(),
        archive_preferences: ArchivePreferences::default(),
        private: BTreeMap::new(),
        vcard: Default::default(),
        queue: BTreeMap::new(),
    };
    store.accounts.insert(id, account);
    store.held_names.remove(&(domain, local.clone()));
    store.account_names.insert((domain, local), id);
    id
}

fn identity(store: &Committed, asked: &Identity) -> Option<Box<model::Identity>> {
    let id = store.account_id(asked.domain, &asked.local)?;
    let account = store.accounts.get(&id)?;
    Some(Box::new(model::Identity {
        account: id,
        credentials: account.credentials.clone(),
        state: account.state,
        revocations: account.revocations.clone(),
    }))
}

fn login(store: &Committed, asked: &Login) -> Option<Box<model::Login>> {
    let account = store.accounts.get(&asked.account)?;
    let topics =
        asked.parts.subscriptions.then(|| account.topics.iter().filter_map(|id| store.topics.get(id)));
    let subscriptions = topics.into_iter().flatten().map(|topic| {
        let is_sent = topic.config.send_last_published_item == SendLast::OnSubAndPresence;
        Subscription {
            topic: topic.id,
            last: topic.last().filter(|_| is_sent).map(|item| item.shown(&topic.config)),
            revision: topic.config.persist_items.then_some(topic.revision),
        }
    });
    let waits = |waiting: &super::tables::Waiting| waiting.due.is_none() && waiting.is_wanted_at(asked.now);
    let mut queue = account.queue.values().filter_map(|id| store.waiting.get(id));
    Some(Box::new(model::Login {
        state: account.state,
        subscriptions: subscriptions.collect(),
        waiting: model::LoginBacklog {
            notifications: asked.parts.notifications && queue.any(waits),
            messages: asked.parts.messages && !account.messages.is_empty(),
        },
        generation: account.generation,
        record: account.record,
    }))
}

fn describe(store: &Committed, asked: &accounts::Account) -> Option<Box<Enrolment>> {
    let id = store.account_id(asked.domain, &asked.local)?;
    let account = store.accounts.get(&id)?;
    let mut topics: Vec<Box<str>> =
        account.topics.iter().filter_map(|id| store.topics.get(id)).map(|topic| topic.name.clone()).collect();
    topics.sort();
    Some(Box::new(Enrolment { topics, ..enrolment(store, id, account) }))
}

fn list(store: &Committed, asked: &Accounts) -> Vec<Enrolment> {
    let names = store.account_names.iter().filter(|((domain, local), _)| {
        *domain == asked.domain && asked.after.as_ref().is_none_or(|after| local > after)
    });
    names
        .filter_map(|(_, id)| Some(enrolment(store, *id, store.accounts.get(id)?)))
        .take(asked.limit.into())
        .collect()
}

fn enrolment(store: &Committed, id: AccountId, account: &Account) -> Enrolment {
    let pending = account.queue.values().filter_map(|id| store.waiting.get(id));
    Enrolment {
        id,
        jid: account.jid.clone(),
        state: account.state,
        created: account.created,
        topics: Vec::new(),
        pending: pending.filter(|waiting| waiting.due.is_none()).count() as u32,
    }
}

fn set_credentials(store: &mut Committed, asked: &SetCredentials) -> Result<(), Missing> {
    let account = store.account_to_change(asked.domain, &asked.local)?;
    account.credentials = asked.credentials.clone();
    account.advance();
    Ok(())
}

fn set_state(store: &mut Committed, asked: &SetAccountState) -> Result<(), Missing> {
    let account = store.account_to_change(asked.domain, &asked.local)?;
    account.state = asked.state;
    account.advance();
    Ok(())
}

fn revoke_tokens(store: &mut Committed, asked: &RevokeTokens) -> Option<Revocations> {
    let account = store.account_mut(asked.domain, &asked.local)?;
    match asked.agent {
        Some(agent) => account.revocations.revoke(agent),
        None => account.revocations.revoke_all(),
    }
    account.advance();
    Some(account.revocations.clone())
}

fn unfinished(store: &Committed, asked: &UnfinishedRemovals) -> Vec<UnfinishedRemoval> {
    let mut waiting: Vec<_> = store.removals.iter().filter(|(_, at)| **at <= asked.before).collect();
    waiting.sort_by_key(|((domain, account), at)| (**at, *account, *domain));
    let of = |((domain, account), _): (&(DomainId, Option<AccountId>), &UnixMs)| match account {
        Some(id) => {
            store.accounts.get(id).map(|account| UnfinishedRemoval::Account(*domain, account.jid.clone()))
        }
        None => Some(UnfinishedRemoval::Domain(*domain)),
    };
    waiting.into_iter().filter_map(of).take(asked.limit.into()).collect()
}

/// Where something waits for it, in two parts, unless it is asked for as a whole.
fn delete(store: &mut Committed, asked: &DeleteAccount) -> Result<Part<RosterChange>, Missing> {
    let DeleteAccount { domain, local, now, held_until, rows_max } = asked;
    let id = store.account_id(*domain, local).ok_or(Missing)?;
    let account = store.accounts.get(&id).ok_or(Missing)?;
    let account_jid = account.jid.clone();
    let waiting: Vec<_> = account.queue.values().copied().collect();
    for id in &waiting {
        let reason = Some(DropReason::DeviceDeleted);
        store.end(*id, NotificationState::Dropped, reason, *now);
    }
    if !waiting.is_empty()
        && *rows_max < u32::MAX
        && let Some(account) = store.accounts.get_mut(&id)
    {
        account.state = AccountState::Disabled(*now);
        store.removals.insert((*domain, Some(id)), *now);
        return Ok(Part { entries: Vec::new(), more: true });
    }
    let left = store.own.rooms.facts_of_leaving(&store.domains, &account_jid, *now);
    left.into_iter().for_each(|(room, fact)| store.tell(Told::Room(room, fact)));
    let changes = remove(store, id);
    // Whatever the domain's policy is: strangers may have an invitation, or registration may be allowed later.
    if held_until > now {
        store.held_names.insert((*domain, local.clone()), *held_until);
    }
    Ok(Part { entries: changes, more: false })
}

/// Removes an account with all that belongs to it, whatever it is removed by; what changed in the rosters of others.
pub(super) fn remove(store: &mut Committed, id: AccountId) -> Vec<RosterChange> {
    let Some(Account { domain, jid, .. }) = store.accounts.remove(&id) else { return Vec::new() };
    for (of, trace) in store.ended.values_mut() {
        if *of == domain && trace.to == jid {
            trace.collapse_key = None;
        }
    }
    store.account_names.remove(&(domain, jid.local().unwrap_or_default().into()));
    store.removals.remove(&(domain, Some(id)));
    store.waiting.retain(|_, waiting| waiting.account != id);
    for topic in store.topics.values_mut() {
        topic.followers.remove(&id);
        // A ban is the topic's, and stays: deleting the account would be the way around it.
        topic.affiliations.retain(|holder, a| *holder != jid || *a == Affiliation::Outcast);
    }
    store.own.broadcasts.forget_account(id);
    store.own.rooms.forget_account(domain, &jid);
    let with_it = store.accounts.values_mut().filter_map(|other| {
        let said = other.roster.get(&jid)?.clone();
        other.change(&jid, ended_with(said))
    });
    let mut changes: Vec<RosterChange> = with_it.collect();
    changes.sort_by(|a, b| a.account.cmp(&b.account));
    changes
}
