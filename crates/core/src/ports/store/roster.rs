//! Rosters, and the subscriptions to presence between accounts.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use crate::model::{
    BothSides, DomainId, Record, RecordParts, RosterBounds, RosterChange, Standing, SubscriptionAction,
};
use bytes::Bytes;
use carillon_wire::jid::{BareJid, Jid};

questions! {
    Roster,
    reads {
        ReadRecord => Option<Box<Record>>,
    }
    writes {}
    once {
        PutContact => PutContactAnswer,
        RemoveContact => RemoveContactAnswer,
        ChangeSubscription => ChangeSubscriptionAnswer,
    }
}

/// `parts` of an account's record; none if there is no such account. Its generation is 0 as long as there was never anything in it. Unless
/// `about` is empty, the roster and the block list have only what they say of these addresses, each of which is looked up.
#[derive(Clone, Debug)]
pub struct ReadRecord {
    pub domain: DomainId,
    pub local: Box<str>,
    pub parts: RecordParts,
    pub about: Vec<Jid>,
}

/// Adds a contact to an account's roster, or gives it another name and other groups, unless there is no room
/// for that ([`RosterUse::has_room`](crate::model::RosterUse::has_room)). The subscriptions stay as they are, unless it is imported with where they
/// `stand`: then the contact's roster still says what it said.
#[derive(Clone, Debug)]
pub struct PutContact {
    pub domain: DomainId,
    pub local: Box<str>,
    pub contact: BareJid,
    pub name: Box<str>,
    pub groups: Vec<Box<str>>,
    pub stand: Option<Standing>,
    pub bounds: RosterBounds,
}

/// What became of [`PutContact`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutContactAnswer {
    /// It is in the roster.
    Put(Box<RosterChange>),
    /// There is no such account.
    NoAccount,
    /// The roster is full.
    Full,
}

/// Removes a contact from an account's roster, with the subscriptions between the two (RFC 6121 §2.5). `other`: the domain of the contact, if
/// that is one of this store.
#[derive(Clone, Debug)]
pub struct RemoveContact {
    pub domain: DomainId,
    pub local: Box<str>,
    pub contact: BareJid,
    pub other: Option<DomainId>,
}

/// What became of [`RemoveContact`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoveContactAnswer {
    /// It is not in the roster any more.
    Removed(Box<BothSides>),
    /// It was not listed there.
    Missing,
    /// There is no such account.
    NoAccount,
}

/// An account says something about the subscriptions between it and a contact: both rosters are changed in one step, by the rules of
/// [`change_subscription`](crate::model::change_subscription). `request` is the content of the presence with which it asks. A contact
/// that does not exist, or whose roster takes no requests, hears nothing of it. If the contact has more requests then than it may have, the
/// one that came first is removed. The bounds are those of both rosters. A contact that blocks the account is not asked; `by_lists`: nor is one whose
/// default privacy list has nothing of the account pass.
#[derive(Clone, Debug)]
pub struct ChangeSubscription {
    pub domain: DomainId,
    pub local: Box<str>,
    pub contact: BareJid,
    pub other: DomainId,
    pub action: SubscriptionAction,
    pub request: Bytes,
    pub bounds: RosterBounds,
    pub by_lists: bool,
}

/// What became of [`ChangeSubscription`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeSubscriptionAnswer {
    /// What changed: neither side where nothing did.
    Changed(Box<BothSides>),
    /// There is no such account.
    NoAccount,
    /// The account's own roster is full.
    Full,
}
