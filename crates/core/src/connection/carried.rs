//! A client that claims an account, on its way to a home on another node: the connection stays where it is, and what the client says is
//! carried to its session.

use super::{Claim, Claimed, Client, Invited, Io, Proof};
use crate::model::{DomainId, Domains, Mono};
use crate::sasl::Protection;
use carillon_wire::jid::AccountJid;

/// What [`Claimed`] is between two nodes, each of which has its own table of domains.
#[derive(Debug)]
pub struct CarriedClaim {
    io: Io,
    domain: DomainId,
    protection: Protection,
    attempts: u8,
    misfits: u8,
    began: Mono,
    invited: Option<Box<Invited>>,
    account: AccountJid,
    proof: Proof,
}

crate::form! {
    struct CarriedClaim { io, domain, protection, attempts, misfits, began, invited, account, proof }
}

impl From<Claimed> for CarriedClaim {
    fn from(claimed: Claimed) -> CarriedClaim {
        let Claimed { client, claim } = claimed;
        let Client { io, domain, protection, attempts, misfits, began, invited } = client;
        let Claim { account, proof } = claim;
        CarriedClaim { io, domain: domain.id, protection, attempts, misfits, began, invited, account, proof }
    }
}

impl CarriedClaim {
    /// The account that is claimed.
    pub fn account(&self) -> &AccountJid {
        &self.account
    }

    /// The client where it comes to; none if its domain is not known there.
    pub fn arrived(self, domains: &Domains) -> Option<Claimed> {
        let CarriedClaim { io, domain, protection, attempts, misfits, began, invited, account, proof } = self;
        let domain = domains.numbered(domain)?.clone();
        let client = Client { io, domain, protection, attempts, misfits, began, invited };
        Some(Claimed { client, claim: Claim { account, proof } })
    }
}
