//! Invitations.

use super::{Committed, answers};
use crate::model::{self, AccountId, DomainId, InvitationId, RosterChange, TokenHash};
use crate::ports::store::Answers;
use crate::ports::store::invitations::{
    self, AcceptInvitation, CreateInvitation, CreateInvitationAnswer, FORGOTTEN_MAX, Invitation, Invitations,
    Invites, RegisterInvited, RegisterInvitedAnswer, RevokeInvitation,
};
use crate::ports::{Fault, Missing};
use std::collections::BTreeMap;

answers! {
    Invitation => find;
    Invitations => list;
    CreateInvitation => create;
    RevokeInvitation => revoke;
}

/// All invitations.
pub(super) type Table = BTreeMap<InvitationId, Stored>;

/// An invitation, with what finds it and whom it goes with.
#[derive(Clone, Debug)]
pub(in crate::sim) struct Stored {
    invitation: model::Invitation,
    hash: TokenHash,
    inviter: Option<AccountId>,
}

impl Answers<RegisterInvited, Fault> for Committed {
    fn answer(&mut self, asked: &RegisterInvited) -> Result<RegisterInvitedAnswer, Fault> {
        invitations::register(self, asked)
    }
}

impl Answers<AcceptInvitation, Fault> for Committed {
    fn answer(&mut self, asked: &AcceptInvitation) -> Result<Result<Vec<RosterChange>, Missing>, Fault> {
        invitations::accept(self, asked)
    }
}

impl Invites<Fault> for Committed {
    fn invitation(&mut self, domain: DomainId, hash: &TokenHash) -> Result<Option<model::Invitation>, Fault> {
        Ok(self.invitations_of(domain).find(|stored| stored.hash == *hash).map(|s| s.invitation.clone()))
    }

    fn count_use(&mut self, id: InvitationId) -> Result<(), Fault> {
        if let Some(stored) = self.own.invitations.get_mut(&id) {
            stored.invitation.uses += 1;
        }
        Ok(())
    }

    fn name_of(&mut self, domain: DomainId) -> Result<Option<Box<str>>, Fault> {
        Ok(self.domains.get(&domain).map(|domain| (*domain.name).into()))
    }
}

impl Committed {
    /// Those to a domain whose inviters are there.
    fn invitations_of(&self, domain: DomainId) -> impl DoubleEndedIterator<Item = &Stored> {
        let is_there = move |stored: &&Stored| {
            stored.invitation.domain == domain
                && self.domains.contains_key(&domain)
                && stored.inviter.is_none_or(|inviter| self.accounts.contains_key(&inviter))
        };
        self.own.invitations.values().filter(is_there)
    }
}

fn find(store: &Committed, asked: &Invitation) -> Option<Box<model::Invitation>> {
    let mut of_domain = store.invitations_of(asked.domain);
    of_domain.find(|stored| stored.hash == asked.hash).map(|stored| Box::new(stored.invitation.clone()))
}

fn list(store: &Committed, asked: &Invitations) -> Vec<model::Invitation> {
    let older = store.invitations_of(asked.domain).rev();
    let older = older.map(|stored| &stored.invitation).filter(|invitation| invitation.id < asked.before);
    older.take(asked.limit.into()).cloned().collect()
}

fn create(store: &mut Committed, asked: &CreateInvitation) -> CreateInvitationAnswer {
    let inviter = asked.inviter.as_ref().map(|local| store.account_id(asked.domain, local));
    if !store.domains.contains_key(&asked.domain) || inviter == Some(None) {
        return CreateInvitationAnswer::Missing;
    }
    let expired = store.invitations_of(asked.domain).filter(|s| s.invitation.expires <= asked.now);
    let mut expired: Vec<_> = expired.map(|s| (s.invitation.expires, s.invitation.id)).collect();
    expired.sort();
    for (_, id) in expired.into_iter().take(FORGOTTEN_MAX as usize) {
        store.own.invitations.remove(&id);
    }
    if store.own.invitations.values().any(|stored| stored.hash == asked.hash) {
        return CreateInvitationAnswer::Exists;
    }
    let of_domain = store.invitations_of(asked.domain).count();
    let is_its = |stored: &&Stored| stored.invitation.inviter == asked.inviter;
    let of_inviter = store.invitations_of(asked.domain).filter(is_its).count();
    let is_full =
        of_domain >= asked.max as usize || (inviter.is_some() && of_inviter >= asked.inviter_max as usize);
    if is_full {
        return CreateInvitationAnswer::Full;
    }
    let invitation = asked.created(InvitationId(store.number().into()));
    let stored = Stored { invitation: invitation.clone(), hash: asked.hash, inviter: inviter.flatten() };
    store.own.invitations.insert(invitation.id, stored);
    CreateInvitationAnswer::Created(Box::new(invitation))
}

fn revoke(store: &mut Committed, asked: &RevokeInvitation) -> Result<(), Missing> {
    let is_there = store.invitations_of(asked.domain).any(|stored| stored.invitation.id == asked.id);
    if is_there { store.own.invitations.remove(&asked.id).map(drop).ok_or(Missing) } else { Err(Missing) }
}
