//! Domains: the tenants of a node.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use super::{Missing, Part};
use crate::model::{Domain, DomainId, Policy, RosterChange};

questions! {
    Domains,
    reads {
        Domains => Vec<Domain>,
    }
    writes {}
    once {
        PutDomain => PutDomainAnswer,
        DeleteDomain => Result<Part<RosterChange>, Missing>,
    }
}

/// All domains, ordered by name.
#[derive(Clone, Debug)]
pub struct Domains;

/// Creates a domain, or changes its policy when it exists.
#[derive(Clone, Debug)]
pub struct PutDomain {
    pub name: Box<str>,
    pub policy: Policy,
}

/// The result of [`PutDomain`].
#[derive(Clone, Debug)]
pub struct PutDomainAnswer {
    /// The domain as it is now.
    pub domain: Domain,
    /// Whether it was created.
    pub created: bool,
}

/// Removes a domain with its accounts, topics, notifications and keys: a part of it, which is whole accounts and topics, until `rows_max` rows or
/// more have been changed. It is asked until no more follows; the last part removes the domain itself. The rosters of accounts of other
/// domains change as by [`DeleteAccount`](super::accounts::DeleteAccount): the answer is what changed in them.
#[derive(Clone, Debug)]
pub struct DeleteDomain {
    pub domain: DomainId,
    pub rows_max: u32,
}

/// What [`DeleteDomain::rows_max`] is, unless there is a reason: other writes wait for some tens of milliseconds.
pub const DOMAIN_PART_ROWS: u32 = 4096;
