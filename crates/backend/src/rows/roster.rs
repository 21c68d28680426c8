//! How rosters change, whatever database keeps them: both sides of a subscription in one step, within the bounds of their accounts.

use carillon_core::model::*;
use carillon_core::ports::store::roster::{
    ChangeSubscription, ChangeSubscriptionAnswer, PutContact, PutContactAnswer, RemoveContact,
    RemoveContactAnswer,
};
use carillon_wire::jid::BareJid;

/// An account whose roster is changed.
pub(crate) struct RosterOwner {
    pub(crate) account: AccountId,
    pub(crate) jid: BareJid,
    /// The generation of its record before the change.
    pub(crate) record: Generation,
    pub(crate) used: RosterUse,
}

/// The rosters of a database, within a transaction.
pub(crate) trait Rosters {
    /// What goes wrong with it.
    type Error;

    /// The account of this name, to have its roster changed.
    fn owner(&self, domain: DomainId, local: &str) -> Result<Option<RosterOwner>, Self::Error>;

    /// The domain of this name.
    fn domain_named(&self, name: &str) -> Result<Option<DomainId>, Self::Error>;

    /// What the roster of an account says of a contact.
    fn contact(&self, account: AccountId, jid: &BareJid) -> Result<Option<Contact>, Self::Error>;

    /// The oldest request for a subscription to the account that is not answered.
    fn oldest_request(&self, account: AccountId) -> Result<Option<Contact>, Self::Error>;

    /// Whether an account has blocked this address.
    fn shuns(&self, account: AccountId, other: &BareJid, by_lists: bool) -> Result<bool, Self::Error>;

    /// Writes a contact, or removes it, with the generation and the use of the account's record that follow.
    fn write_contact(
        &self,
        account: AccountId,
        after: Generation,
        used: RosterUse,
        jid: &BareJid,
        is: Option<&Contact>,
    ) -> Result<(), Self::Error>;
}

/// Puts a contact into a roster (RFC 6121 §2.3).
pub(crate) fn put<R: Rosters>(rosters: &R, asked: &PutContact) -> Result<PutContactAnswer, R::Error> {
    let Some(owner) = rosters.owner(asked.domain, &asked.local)? else {
        return Ok(PutContactAnswer::NoAccount);
    };
    let was = rosters.contact(owner.account, &asked.contact)?;
    let before = was.clone().unwrap_or_else(|| Contact::new(asked.contact.clone()));
    let (name, groups) = (asked.name.clone(), asked.groups.clone());
    let standing = asked.stand.unwrap_or(before.standing);
    let is = Contact { name, groups, standing, is_listed: true, ..before.clone() };
    if !owner.used.has_room(&before, &is, asked.bounds) {
        return Ok(PutContactAnswer::Full);
    }
    let change = put_contact(rosters, &owner, &asked.contact, was, Some(is))?;
    Ok(PutContactAnswer::Put(Box::new(change)))
}

/// Removes a contact from a roster, with the subscriptions between the two (RFC 6121 §2.5).
pub(crate) fn remove<R: Rosters>(
    rosters: &R,
    asked: &RemoveContact,
) -> Result<RemoveContactAnswer, R::Error> {
    let Some(owner) = rosters.owner(asked.domain, &asked.local)? else {
        return Ok(RemoveContactAnswer::NoAccount);
    };
    let said = rosters.contact(owner.account, &asked.contact)?;
    let Some(was) = said.filter(|contact| contact.is_listed) else {
        return Ok(RemoveContactAnswer::Missing);
    };
    let own = put_contact(rosters, &owner, &asked.contact, Some(was), None)?;
    let other = match other(rosters, asked.other, &asked.contact)? {
        Some(other) => match rosters.contact(other.account, &owner.jid)? {
            Some(said) => change_contact(rosters, &other, &owner.jid, removed_by(said))?,
            None => None,
        },
        None => None,
    };
    Ok(RemoveContactAnswer::Removed(Box::new(BothSides { own: Some(own), other, evicted: None })))
}

/// Changes both sides of a subscription (RFC 6121 §3).
pub(crate) fn change<R: Rosters>(
    rosters: &R,
    asked: &ChangeSubscription,
) -> Result<ChangeSubscriptionAnswer, R::Error> {
    let Some(owner) = rosters.owner(asked.domain, &asked.local)? else {
        return Ok(ChangeSubscriptionAnswer::NoAccount);
    };
    let mut other = other(rosters, Some(asked.other), &asked.contact)?;
    // Whoever is blocked cannot ask.
    if let Some(heard) = &other
        && asked.action == SubscriptionAction::Subscribe
        && rosters.shuns(heard.account, &owner.jid, asked.by_lists)?
    {
        other = None;
    }
    let own = side(rosters, &owner, &asked.contact)?;
    let there = other.as_ref().map(|other| side(rosters, other, &owner.jid)).transpose()?;
    let changed = change_subscription(asked.action, &own, there.as_ref(), &asked.request, asked.bounds);
    let Some((own, there)) = changed else { return Ok(ChangeSubscriptionAnswer::Full) };
    let own = change_contact(rosters, &owner, &asked.contact, own)?;
    let other = match other {
        Some(other) => change_contact(rosters, &other, &owner.jid, there)?,
        None => None,
    };
    let evicted = match (&other, asked.contact.local()) {
        (Some(_), Some(local)) => evict(rosters, asked.other, local, asked.bounds)?,
        _ => None,
    };
    Ok(ChangeSubscriptionAnswer::Changed(Box::new(BothSides { own, other, evicted })))
}

/// Ends what the roster of a contact says of the subscriptions between it and an account that is being removed; what changed in it, if it is
/// the roster of an account of this database.
pub(crate) fn end_at_contact<R: Rosters>(
    rosters: &R,
    removed: &BareJid,
    contact: &BareJid,
) -> Result<Option<RosterChange>, R::Error> {
    let Some(local) = contact.local() else { return Ok(None) };
    let Some(domain) = rosters.domain_named(contact.domain())? else { return Ok(None) };
    let Some(owner) = rosters.owner(domain, local)? else { return Ok(None) };
    match rosters.contact(owner.account, removed)? {
        Some(said) => change_contact(rosters, &owner, removed, ended_with(said)),
        None => Ok(None),
    }
}

/// Removes the oldest request for a subscription to an account, if there are more of these than there may be.
fn evict<R: Rosters>(
    rosters: &R,
    domain: DomainId,
    local: &str,
    bounds: RosterBounds,
) -> Result<Option<RosterChange>, R::Error> {
    let owner = rosters.owner(domain, local)?;
    let Some(owner) = owner.filter(|owner| owner.used.requests > bounds.requests) else { return Ok(None) };
    let oldest = rosters.oldest_request(owner.account)?;
    oldest.map(|oldest| put_contact(rosters, &owner, &oldest.jid.clone(), Some(oldest), None)).transpose()
}

/// The account that a contact is, if it is one of this database.
fn other<R: Rosters>(
    rosters: &R,
    domain: Option<DomainId>,
    contact: &BareJid,
) -> Result<Option<RosterOwner>, R::Error> {
    match (domain, contact.local()) {
        (Some(domain), Some(local)) => rosters.owner(domain, local),
        _ => Ok(None),
    }
}

/// What a roster says of a contact, and how much it holds.
fn side<R: Rosters>(rosters: &R, owner: &RosterOwner, jid: &BareJid) -> Result<Side, R::Error> {
    let said = rosters.contact(owner.account, jid)?.unwrap_or_else(|| Contact::new(jid.clone()));
    Ok(Side { contact: said, used: owner.used })
}

/// Has a roster say this of a contact, if it says something else.
fn change_contact<R: Rosters>(
    rosters: &R,
    owner: &RosterOwner,
    jid: &BareJid,
    is: Option<Contact>,
) -> Result<Option<RosterChange>, R::Error> {
    let was = rosters.contact(owner.account, jid)?;
    if was == is { Ok(None) } else { put_contact(rosters, owner, jid, was, is).map(Some) }
}

fn put_contact<R: Rosters>(
    rosters: &R,
    owner: &RosterOwner,
    contact: &BareJid,
    was: Option<Contact>,
    is: Option<Contact>,
) -> Result<RosterChange, R::Error> {
    let after = Generation(owner.record.0 + 1);
    let others = was.as_ref().map_or(owner.used, |was| owner.used.without(was));
    let used = is.as_ref().map_or(others, |is| others.and(is));
    rosters.write_contact(owner.account, after, used, contact, is.as_ref())?;
    let (account, before, contact) = (owner.jid.clone(), owner.record, contact.clone());
    Ok(RosterChange { account, before, after, contact, was, is })
}
