//! Invitations: made, listed, revoked, and used, which makes an account or contacts in the same step.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::accounts::{CreateAccount, CreateAccountAnswer};
use super::question::questions;
use super::roster::{ChangeSubscription, ChangeSubscriptionAnswer};
use super::{Answers, Missing};
use crate::model::{
    self, BothSides, Credentials, DomainId, InvitationId, RosterBounds, RosterChange, SubscriptionAction,
    TokenHash, UnixMs,
};
use bytes::Bytes;
use carillon_wire::jid::BareJid;

questions! {
    Invitations,
    reads {
        Invitation => Option<Box<model::Invitation>>,
        Invitations => Vec<model::Invitation>,
    }
    writes {}
    once {
        CreateInvitation => CreateInvitationAnswer,
        RevokeInvitation => Result<(), Missing>,
        RegisterInvited => RegisterInvitedAnswer,
        AcceptInvitation => Result<Vec<RosterChange>, Missing>,
    }
}

/// The invitation to a domain with this token, usable or not.
#[derive(Clone, Debug)]
pub struct Invitation {
    pub domain: DomainId,
    pub hash: TokenHash,
}

/// Invitations to a domain, newest first: those whose number is below `before`, at most `limit`.
#[derive(Clone, Debug)]
pub struct Invitations {
    pub domain: DomainId,
    pub before: InvitationId,
    pub limit: u16,
}

/// Makes an invitation. In the same step those of the domain that have expired by `now` are forgotten, at most [`FORGOTTEN_MAX`]. `max` is how
/// many the domain may have, `inviter_max` how many of these the inviter may.
#[derive(Clone, Debug)]
pub struct CreateInvitation {
    pub domain: DomainId,
    pub hash: TokenHash,
    pub inviter: Option<Box<str>>,
    pub local: Option<Box<str>>,
    pub registers: bool,
    pub uses_max: u32,
    pub expires: UnixMs,
    pub max: u32,
    pub inviter_max: u32,
    pub now: UnixMs,
}

/// How many expired invitations are forgotten when one is made.
pub const FORGOTTEN_MAX: u32 = 100;

/// What became of [`CreateInvitation`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateInvitationAnswer {
    /// The invitation was made.
    Created(Box<model::Invitation>),
    /// The domain, or the inviter, has as many as it may.
    Full,
    /// There is one with this token.
    Exists,
    /// There is no such domain, or no account of the inviter.
    Missing,
}

impl CreateInvitation {
    /// The invitation that is made, with its number.
    pub fn created(&self, id: InvitationId) -> model::Invitation {
        model::Invitation {
            id,
            domain: self.domain,
            inviter: self.inviter.clone(),
            local: self.local.clone(),
            registers: self.registers,
            uses_max: self.uses_max,
            uses: 0,
            created: self.now,
            expires: self.expires,
        }
    }
}

/// Revokes an invitation: nothing is left of it.
#[derive(Clone, Debug)]
pub struct RevokeInvitation {
    pub domain: DomainId,
    pub id: InvitationId,
}

/// Registers an account by an invitation: in one step the account is created, the use counted, and the account and the inviter become each
/// other's contacts, as far as their rosters have room for that.
#[derive(Clone, Debug)]
pub struct RegisterInvited {
    pub domain: DomainId,
    pub hash: TokenHash,
    pub local: Box<str>,
    pub credentials: Credentials,
    pub bounds: RosterBounds,
    pub now: UnixMs,
}

/// What became of [`RegisterInvited`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegisterInvitedAnswer {
    /// The account is there. What changed in the rosters, if somebody invited it.
    Registered(Vec<RosterChange>),
    /// There is an account with this name, or the name is held back.
    Taken,
    /// The invitation is for another name.
    OtherName,
    /// The domain has as many accounts as its policy's `accounts_max` allows.
    DomainFull,
    /// There is no such invitation, or it cannot be used any more.
    Invalid,
}

/// Has an account that is there become a contact of whoever invited it: in one step the use is counted, and both rosters are changed.
/// [`Missing`] is an invitation of this inviter that can be used, or one of the accounts. Where nothing changes no use is counted.
#[derive(Clone, Debug)]
pub struct AcceptInvitation {
    pub inviter_domain: DomainId,
    pub inviter: BareJid,
    pub hash: TokenHash,
    pub domain: DomainId,
    pub account: BareJid,
    pub bounds: RosterBounds,
    pub now: UnixMs,
}

/// What of a store the use of an invitation needs, within one step of it.
pub trait Invites<E>: Answers<CreateAccount, E> + Answers<ChangeSubscription, E> + Sized {
    /// The invitation to a domain with this token.
    ///
    /// # Errors
    /// What the store says.
    fn invitation(&mut self, domain: DomainId, hash: &TokenHash) -> Result<Option<model::Invitation>, E>;

    /// Counts one use of an invitation.
    ///
    /// # Errors
    /// What the store says.
    fn count_use(&mut self, id: InvitationId) -> Result<(), E>;

    /// The name of a domain.
    ///
    /// # Errors
    /// What the store says.
    fn name_of(&mut self, domain: DomainId) -> Result<Option<Box<str>>, E>;
}

/// Does what [`RegisterInvited`] asks for, within one step of a store.
///
/// # Errors
/// What the store says.
pub fn register<E>(store: &mut impl Invites<E>, asked: &RegisterInvited) -> Result<RegisterInvitedAnswer, E> {
    let RegisterInvited { domain, hash, local, credentials, bounds, now } = asked;
    let found = store.invitation(*domain, hash)?.filter(|found| found.registers && found.is_usable(*now));
    let Some(invitation) = found else { return Ok(RegisterInvitedAnswer::Invalid) };
    if !invitation.allows(local) {
        return Ok(RegisterInvitedAnswer::OtherName);
    }
    let create = CreateAccount {
        domain: *domain,
        local: local.clone(),
        credentials: credentials.clone(),
        // Whoever made the invitation chose the name: it may be one that is held back.
        is_in_band: invitation.local.is_none(),
        now: *now,
    };
    match store.answer(&create)? {
        CreateAccountAnswer::Created(_) => {}
        CreateAccountAnswer::Exists | CreateAccountAnswer::Held => return Ok(RegisterInvitedAnswer::Taken),
        CreateAccountAnswer::NoDomain => return Ok(RegisterInvitedAnswer::Invalid),
        CreateAccountAnswer::DomainFull => return Ok(RegisterInvitedAnswer::DomainFull),
    }
    store.count_use(invitation.id)?;
    let (Some(inviter), Some(name)) = (&invitation.inviter, store.name_of(*domain)?) else {
        return Ok(RegisterInvitedAnswer::Registered(Vec::new()));
    };
    let sides = [BareJid::from_parts(Some(local), &name), BareJid::from_parts(Some(inviter), &name)];
    let [Ok(account), Ok(inviter)] = sides else {
        return Ok(RegisterInvitedAnswer::Registered(Vec::new()));
    };
    let changes = introduce(store, [(*domain, &account), (*domain, &inviter)], *bounds)?;
    Ok(RegisterInvitedAnswer::Registered(changes))
}

/// Does what [`AcceptInvitation`] asks for, within one step of a store.
///
/// # Errors
/// What the store says.
pub fn accept<E>(
    store: &mut impl Invites<E>,
    asked: &AcceptInvitation,
) -> Result<Result<Vec<RosterChange>, Missing>, E> {
    let AcceptInvitation { inviter_domain, inviter, hash, domain, account, bounds, now } = asked;
    let found = store.invitation(*inviter_domain, hash)?;
    let is_its = |found: &model::Invitation| found.inviter.as_deref() == inviter.local();
    let Some(invitation) = found.filter(|found| is_its(found) && found.is_usable(*now)) else {
        return Ok(Err(Missing));
    };
    if inviter == account {
        return Ok(Err(Missing));
    }
    let changes = introduce(store, [(*domain, account), (*inviter_domain, inviter)], *bounds)?;
    if !changes.is_empty() {
        store.count_use(invitation.id)?;
    }
    Ok(Ok(changes))
}

/// Has two accounts see each other's presence: each asks, and the other grants. What changed in both rosters, one change each.
fn introduce<E>(
    store: &mut impl Invites<E>,
    [one, other]: [(DomainId, &BareJid); 2],
    bounds: RosterBounds,
) -> Result<Vec<RosterChange>, E> {
    let mut changes = Vec::new();
    for (asks, grants) in [(one, other), (other, one)] {
        for (own, contact, action) in
            [(asks, grants, SubscriptionAction::Subscribe), (grants, asks, SubscriptionAction::Subscribed)]
        {
            let question = ChangeSubscription {
                domain: own.0,
                local: own.1.local().unwrap_or_default().into(),
                contact: contact.1.clone(),
                other: contact.0,
                action,
                request: Bytes::new(),
                // The request is answered in this step: it takes the place of nobody else's.
                bounds: RosterBounds { requests: u32::MAX, ..bounds },
                by_lists: false,
            };
            // Where a roster has no room, or the other side is blocked, the rest is left as it is.
            let ChangeSubscriptionAnswer::Changed(both) = store.answer(&question)? else {
                return Ok(combined(changes));
            };
            let BothSides { own, other, evicted } = *both;
            changes.extend([own, other, evicted].into_iter().flatten());
        }
    }
    Ok(combined(changes))
}

/// One change for each roster, of all that were made one after the other.
fn combined(changes: Vec<RosterChange>) -> Vec<RosterChange> {
    let mut combined: Vec<RosterChange> = Vec::new();
    for change in changes {
        match combined.iter_mut().find(|known| known.account == change.account) {
            Some(known) => (known.after, known.is) = (change.after, change.is),
            None => combined.push(change),
        }
    }
    combined
}
