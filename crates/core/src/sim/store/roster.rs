//! Rosters.

use super::tables::Account;
use super::{Committed, answers};
use crate::model::{
    AccountId, BothSides, Contact, DomainId, Record, Roster, RosterBounds, RosterChange, RosterUse, Side,
    SubscriptionAction, change_subscription, is_covered, removed_by,
};
use crate::ports::store::roster::{
    ChangeSubscription, ChangeSubscriptionAnswer, PutContact, PutContactAnswer, ReadRecord, RemoveContact,
    RemoveContactAnswer,
};
use carillon_wire::jid::{BareJid, Jid};

answers! {
    ReadRecord => record;
    PutContact => put;
    RemoveContact => remove;
    ChangeSubscription => change;
}

fn record(store: &Committed, asked: &ReadRecord) -> Option<Box<Record>> {
    let account = store.account_id(asked.domain, &asked.local)?;
    let held = store.accounts.get(&account)?;
    let is_all = asked.about.is_empty();
    let mut about: Vec<BareJid> = asked.about.iter().map(Jid::bare).collect();
    about.sort();
    about.dedup();
    let contacts = match is_all {
        true => held.roster.values().cloned().collect(),
        false => about.iter().filter_map(|jid| held.roster.get(jid)).cloned().collect(),
    };
    let privacy = (asked.parts.privacy && !held.privacy.is_empty()).then(|| Box::new(held.privacy.clone()));
    let by_lists = !is_all && privacy.as_ref().is_some_and(|lists| lists.is_about_contacts());
    let roster = match asked.parts.roster || by_lists {
        true => Roster { version: held.roster_version, contacts },
        false => Roster::default(),
    };
    let is_about = |entry: &&Jid| is_all || asked.about.iter().any(|jid| is_covered(jid, entry));
    let blocked = held.blocked.iter().filter(|_| asked.parts.blocked).filter(is_about).cloned().collect();
    let nodes = held.nodes.values().filter(|_| asked.parts.nodes).map(|held| held.node.clone()).collect();
    Some(Box::new(Record { account, generation: held.record, roster, blocked, nodes, privacy }))
}

fn put(store: &mut Committed, asked: &PutContact) -> PutContactAnswer {
    let Some(account) = store.account_mut(asked.domain, &asked.local) else {
        return PutContactAnswer::NoAccount;
    };
    let Side { contact: was, used } = account.side(&asked.contact);
    let (name, groups) = (asked.name.clone(), asked.groups.clone());
    let standing = asked.stand.unwrap_or(was.standing);
    let is = Contact { name, groups, standing, is_listed: true, ..was.clone() };
    if !used.has_room(&was, &is, asked.bounds) {
        return PutContactAnswer::Full;
    }
    PutContactAnswer::Put(Box::new(account.put(&asked.contact, Some(is))))
}

fn remove(store: &mut Committed, asked: &RemoveContact) -> RemoveContactAnswer {
    let Some(account) = store.account_mut(asked.domain, &asked.local) else {
        return RemoveContactAnswer::NoAccount;
    };
    if !account.roster.get(&asked.contact).is_some_and(|contact| contact.is_listed) {
        return RemoveContactAnswer::Missing;
    }
    let jid = account.jid.clone();
    let own = account.put(&asked.contact, None);
    let other = other(store, asked.other, &asked.contact).and_then(|id| store.accounts.get_mut(&id));
    let other = other.and_then(|other| {
        let was = other.roster.get(&jid)?.clone();
        other.change(&jid, removed_by(was))
    });
    RemoveContactAnswer::Removed(Box::new(BothSides { own: Some(own), other, evicted: None }))
}

fn change(store: &mut Committed, asked: &ChangeSubscription) -> ChangeSubscriptionAnswer {
    let Some(account) = store.account(asked.domain, &asked.local) else {
        return ChangeSubscriptionAnswer::NoAccount;
    };
    let (jid, own) = (account.jid.clone(), account.side(&asked.contact));
    let id = other(store, Some(asked.other), &asked.contact);
    let other_account = id.and_then(|id| store.accounts.get(&id));
    // Whoever is blocked cannot ask.
    let hears = |other: &&Account| {
        asked.action != SubscriptionAction::Subscribe || !other.shuns(&jid, asked.by_lists)
    };
    let there = other_account.filter(hears).map(|other| other.side(&jid));
    let is_heard = there.is_some();
    let changed = change_subscription(asked.action, &own, there.as_ref(), &asked.request, asked.bounds);
    let Some((own, there)) = changed else { return ChangeSubscriptionAnswer::Full };
    let own = store
        .account_mut(asked.domain, &asked.local)
        .and_then(|own_account| own_account.change(&asked.contact, own));
    let mut other_account = id.filter(|_| is_heard).and_then(|id| store.accounts.get_mut(&id));
    let other = other_account.as_mut().and_then(|other| other.change(&jid, there));
    let evicted = other_account.filter(|_| other.is_some()).and_then(|other| other.evict(asked.bounds));
    ChangeSubscriptionAnswer::Changed(Box::new(BothSides { own, other, evicted }))
}

fn other(store: &Committed, domain: Option<DomainId>, contact: &BareJid) -> Option<AccountId> {
    store.account_id(domain?, contact.local()?)
}

impl Account {
    /// Whether nothing passes between it and another account: by its block list, or by its default list, if these are looked at.
    pub(super) fn shuns(&self, account: &BareJid, by_lists: bool) -> bool {
        let is_it = |jid: &Jid| jid.as_str() == account.as_str() || jid.as_str() == account.domain();
        self.blocked.iter().any(is_it) || (by_lists && self.privacy.shuns(account, self.roster.get(account)))
    }

    /// What the roster says of a contact, and how much it holds.
    fn side(&self, contact: &BareJid) -> Side {
        let said = self.roster.get(contact).cloned();
        let used = self.roster.values().fold(RosterUse::default(), RosterUse::and);
        Side { contact: said.unwrap_or_else(|| Contact::new(contact.clone())), used }
    }

    /// Removes the oldest request, if there are more than there may be.
    fn evict(&mut self, bounds: RosterBounds) -> Option<RosterChange> {
        let is_over = self.asked.len() > bounds.requests as usize;
        let oldest = self.asked.iter().min_by_key(|(_, asked)| **asked).filter(|_| is_over);
        let oldest = oldest.map(|(jid, _)| jid.clone())?;
        Some(self.put(&oldest, None))
    }

    /// Has the roster say this of a contact, if it says something else.
    pub(super) fn change(&mut self, contact: &BareJid, is: Option<Contact>) -> Option<RosterChange> {
        (self.roster.get(contact) != is.as_ref()).then(|| self.put(contact, is))
    }

    fn put(&mut self, contact: &BareJid, is: Option<Contact>) -> RosterChange {
        let before = self.record;
        self.record.0 += 1;
        self.roster_version = self.record;
        match &is {
            Some(is) if !is.is_listed => drop(self.asked.insert(contact.clone(), self.record)),
            _ => drop(self.asked.remove(contact)),
        }
        let was = match is.clone() {
            Some(is) => self.roster.insert(contact.clone(), is),
            None => self.roster.remove(contact),
        };
        let (account, contact) = (self.jid.clone(), contact.clone());
        RosterChange { account, before, after: self.record, contact, was, is }
    }
}
