//! Rosters: who an account's contacts are, and the subscriptions to presence between the two (RFC 6121 §2, §3, Appendix A).
//!
//! The tables of Appendix A are here, once, so that every store changes both sides of a subscription by the same rules, in one
//! commit.

use super::{AccountId, Generation, Node, PrivacyLists};
use bytes::Bytes;
use carillon_wire::jid::{BareJid, Jid};

/// An account's roster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    /// The generation of the account's record that last changed it: the roster's version (RFC 6121 §2.6).
    pub version: Generation,
    /// The contacts, by their addresses.
    pub contacts: Vec<Contact>,
}

/// What an account's roster says of a contact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// The contact's address.
    pub jid: BareJid,
    /// What the account calls it; empty for nothing.
    pub name: Box<str>,
    /// The groups it is in.
    pub groups: Vec<Box<str>>,
    /// The subscriptions between the two.
    pub standing: Standing,
    /// Whether it is shown. One that has only asked for a subscription is not (RFC 6121 §3.1.3).
    pub is_listed: bool,
    /// What came with its request for a subscription, while that is not answered: the content of the presence.
    pub request: Option<Bytes>,
}

crate::form! { struct Contact { jid, name, groups, standing, is_listed, request } }

/// The subscriptions between an account and a contact, as the account's side sees them (RFC 6121 Appendix A).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The account gets the contact's presence.
    pub to: bool,
    /// The contact gets the account's presence.
    pub from: bool,
    /// The account has asked for the contact's presence.
    pub pending_out: bool,
    /// The contact has asked for the account's presence.
    pub pending_in: bool,
    /// A request of the contact is granted when it comes (RFC 6121 §3.4).
    pub approved: bool,
}

crate::form! { struct Standing { to, from, pending_out, pending_in, approved } }

/// What one side of a subscription says to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscriptionAction {
    /// Asks for the other's presence.
    Subscribe,
    /// Grants that, or does so in advance.
    Subscribed,
    /// Does not want the other's presence any more.
    Unsubscribe,
    /// Does not give its own presence any more, or not at all.
    Unsubscribed,
}

/// A change of what one roster says of one contact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RosterChange {
    /// The account whose roster it is.
    pub account: BareJid,
    /// The generation of its record before.
    pub before: Generation,
    /// The generation that the change made. The same as before where nothing changed.
    pub after: Generation,
    /// The contact.
    pub contact: BareJid,
    /// What it said of the contact.
    pub was: Option<Contact>,
    /// What it says now.
    pub is: Option<Contact>,
}

crate::form! { struct RosterChange { account, before, after, contact, was, is } }

impl RosterChange {
    /// Bytes of what the account or the contact chose.
    pub fn bytes(&self) -> usize {
        [&self.was, &self.is].into_iter().flatten().map(Contact::bytes).sum()
    }
}

/// A change of a subscription: both sides of it, where they changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BothSides {
    /// That of whoever did it.
    pub own: Option<RosterChange>,
    /// The other's.
    pub other: Option<RosterChange>,
    /// The other's after that, of the request that had to go for this one.
    pub evicted: Option<RosterChange>,
}

crate::form! { struct BothSides { own, other, evicted } }

/// What the store holds of an account for its home: what the features decide by, in one piece and of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The account.
    pub account: AccountId,
    /// The generation of the record.
    pub generation: Generation,
    /// Its roster, if asked for.
    pub roster: Roster,
    /// Whom it blocks, if asked for, sorted.
    pub blocked: Vec<Jid>,
    /// Its nodes, if asked for, sorted by their names.
    pub nodes: Vec<Node>,
    /// Its privacy lists, if asked for and if there are any.
    pub privacy: Option<Box<PrivacyLists>>,
}

/// What of a record is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordParts {
    /// The roster.
    pub roster: bool,
    /// Whom it blocks.
    pub blocked: bool,
    /// Its nodes.
    pub nodes: bool,
    /// Its privacy lists. Where only some addresses are asked about, the contacts that are these are read, too, if the default list is about contacts.
    pub privacy: bool,
}

impl RecordParts {
    /// Its generation alone.
    pub const NONE: RecordParts = RecordParts { roster: false, blocked: false, nodes: false, privacy: false };

    /// The union of both.
    pub const fn and(self, other: RecordParts) -> RecordParts {
        RecordParts {
            roster: self.roster || other.roster,
            blocked: self.blocked || other.blocked,
            nodes: self.nodes || other.nodes,
            privacy: self.privacy || other.privacy,
        }
    }
}

impl Standing {
    /// The account says this to the contact. Whether the contact is to hear of it (Appendix A.2).
    pub fn says(&mut self, action: SubscriptionAction) -> bool {
        match action {
            SubscriptionAction::Subscribe => self.pending_out |= !self.to,
            SubscriptionAction::Unsubscribe => (self.to, self.pending_out) = (false, false),
            SubscriptionAction::Subscribed => {
                let is_asked = self.pending_in;
                // §3.4: nobody has asked yet.
                self.approved |= !is_asked && !self.from;
                self.from |= is_asked;
                self.pending_in = false;
                return is_asked;
            }
            SubscriptionAction::Unsubscribed => {
                let is_told = self.from || self.pending_in;
                (self.from, self.pending_in, self.approved) = (false, false, false);
                return is_told;
            }
        }
        true
    }

    /// The account hears this of the contact. Whether it grants what was asked for, at once (Appendix A.3).
    pub fn hears(&mut self, action: SubscriptionAction) -> bool {
        match action {
            SubscriptionAction::Subscribe => {
                self.from |= self.approved;
                self.pending_in |= !self.from;
                return self.from;
            }
            SubscriptionAction::Unsubscribe => (self.from, self.pending_in) = (false, false),
            SubscriptionAction::Subscribed => {
                self.to |= self.pending_out;
                self.pending_out = false;
            }
            SubscriptionAction::Unsubscribed => (self.to, self.pending_out) = (false, false),
        }
        false
    }

    /// As one number, for a store.
    pub fn bits(self) -> u8 {
        let Standing { to, from, pending_out, pending_in, approved } = self;
        let bits = [to, from, pending_out, pending_in, approved];
        bits.iter().rev().fold(0, |sum, bit| sum << 1 | u8::from(*bit))
    }

    /// The standing with these [`Standing::bits`].
    pub fn of_bits(bits: u8) -> Standing {
        let is_set = |place: u8| bits >> place & 1 == 1;
        let (to, from, pending_out) = (is_set(0), is_set(1), is_set(2));
        Standing { to, from, pending_out, pending_in: is_set(3), approved: is_set(4) }
    }
}

impl Contact {
    /// A contact of which nothing is known.
    pub fn new(jid: BareJid) -> Contact {
        let (name, groups, standing) = ("".into(), Vec::new(), Standing::default());
        Contact { jid, name, groups, standing, is_listed: false, request: None }
    }

    /// Bytes of what the account or the contact chose.
    pub fn bytes(&self) -> usize {
        self.own_bytes() + self.request.as_ref().map_or(0, Bytes::len)
    }

    /// Those that the account itself answers for: strangers use up nothing of its roster.
    fn counted(&self) -> u64 {
        if self.is_listed { self.own_bytes() as u64 } else { 0 }
    }

    fn own_bytes(&self) -> usize {
        let groups: usize = self.groups.iter().map(|group| group.len()).sum();
        self.jid.as_str().len() + self.name.len() + groups
    }

    /// The contact, unless there is nothing left to remember of it.
    fn kept(mut self) -> Option<Contact> {
        if !self.standing.pending_in {
            self.request = None;
        }
        (self.is_listed || self.standing != Standing::default()).then_some(self)
    }
}

/// How much a roster may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RosterBounds {
    /// Contacts that are listed.
    pub contacts: u32,
    /// Contacts that are not: those that have only asked for a subscription, each with at most [`REQUEST_BYTES_MAX`] beside its address. Past
    /// that the oldest goes for the newest; 0 for none.
    pub requests: u32,
    /// Bytes of the addresses, names and groups of those that are listed.
    pub bytes: u64,
}

/// Bytes of what comes with a request for a subscription that are kept until it is answered: more is not.
pub const REQUEST_BYTES_MAX: usize = 512;

/// How much a roster holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RosterUse {
    /// Contacts that are listed.
    pub contacts: u32,
    /// Contacts that are not.
    pub requests: u32,
    /// Bytes of the addresses, names and groups of those that are listed.
    pub bytes: u64,
}

impl RosterUse {
    /// With one contact more.
    #[must_use]
    pub fn and(self, contact: &Contact) -> RosterUse {
        RosterUse {
            contacts: self.contacts + u32::from(contact.is_listed),
            requests: self.requests + u32::from(!contact.is_listed),
            bytes: self.bytes + contact.counted(),
        }
    }

    /// Without one of those it holds.
    #[must_use]
    pub fn without(self, contact: &Contact) -> RosterUse {
        RosterUse {
            contacts: self.contacts.saturating_sub(u32::from(contact.is_listed)),
            requests: self.requests.saturating_sub(u32::from(!contact.is_listed)),
            bytes: self.bytes.saturating_sub(contact.counted()),
        }
    }

    /// Whether a contact may be put in the place of what there was of it. One that does not grow always may.
    pub fn has_room(self, was: &Contact, is: &Contact, bounds: RosterBounds) -> bool {
        let is_new = *was == Contact::new(was.jid.clone());
        let listed = is.is_listed && (is_new || !was.is_listed);
        let asks = !is.is_listed && is_new;
        let (before, after) = (if is_new { 0 } else { was.counted() }, is.counted());
        (!listed || self.contacts < bounds.contacts)
            && (!asks || bounds.requests > 0)
            && (after <= before || self.bytes.saturating_sub(before) + after <= bounds.bytes)
    }
}

/// One side of a subscription: what a roster says of the other side, and how much it holds.
#[derive(Clone, Debug)]
pub struct Side {
    /// What it says; a [`Contact::new`] for nothing.
    pub contact: Contact,
    /// How much it holds.
    pub used: RosterUse,
}

/// What both rosters say after an account has said this to a contact, `request` being the content of the presence with which it did; none
/// where the account's own has no room for it. A contact that does not exist, or whose roster takes no requests, hears nothing. Where that
/// makes more requests than the contact's roster may hold, the store removes the oldest ([`RosterBounds::requests`]).
pub fn change_subscription(
    action: SubscriptionAction,
    own: &Side,
    other: Option<&Side>,
    request: &Bytes,
    bounds: RosterBounds,
) -> Option<(Option<Contact>, Option<Contact>)> {
    let heard = other.map(|other| speak(action, own.contact.clone(), Some(other.contact.clone()), request));
    let has_room =
        |is: Option<&Contact>, side: &Side| is.is_none_or(|is| side.used.has_room(&side.contact, is, bounds));
    let (own_is, other_is) = match (heard, other) {
        (Some((own_is, other_is)), Some(other)) if has_room(other_is.as_ref(), other) => (own_is, other_is),
        (_, other) => {
            let (own_is, _) = speak(action, own.contact.clone(), None, request);
            (own_is, other.and_then(|other| other.contact.clone().kept()))
        }
    };
    has_room(own_is.as_ref(), own).then_some((own_is, other_is))
}

fn speak(
    action: SubscriptionAction,
    mut own: Contact,
    mut other: Option<Contact>,
    request: &Bytes,
) -> (Option<Contact>, Option<Contact>) {
    let is_told = own.standing.says(action);
    // What the account wants of the contact, or grants it, belongs to its roster; a refusal does not.
    own.is_listed |= match action {
        SubscriptionAction::Subscribe => true,
        SubscriptionAction::Subscribed => own.standing.from || own.standing.approved,
        SubscriptionAction::Unsubscribe | SubscriptionAction::Unsubscribed => false,
    };
    if let Some(other) = other.as_mut().filter(|_| is_told) {
        let was_asked = other.standing.pending_in;
        if other.standing.hears(action) {
            own.standing.hears(SubscriptionAction::Subscribed);
            other.is_listed = true;
        }
        if other.standing.pending_in && !was_asked {
            other.request = Some(request.clone());
        }
    }
    (own.kept(), other.and_then(Contact::kept))
}

/// What the contact's roster says of an account that has removed it from its own (RFC 6121 §2.5).
pub fn removed_by(mut other: Contact) -> Option<Contact> {
    other.standing.hears(SubscriptionAction::Unsubscribe);
    other.standing.hears(SubscriptionAction::Unsubscribed);
    other.kept()
}

/// What a roster says of a contact whose account was removed: whoever gets the name next has asked for nothing, and was granted nothing.
pub fn ended_with(mut other: Contact) -> Option<Contact> {
    other.standing = Standing::default();
    other.kept()
}

#[cfg(test)]
mod tests;
