//! Domains: the tenants of a node.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::Missing;
use super::question::questions;
use crate::model::{Domain, DomainId, Policy};

questions! {
    Domains,
    reads {
        Domains => Vec<Domain>,
    }
    writes {}
    once {
        PutDomain => PutDomainAnswer,
        DeleteDomain => Result<(), Missing>,
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

/// Removes a domain with its accounts, topics, notifications and keys.
#[derive(Clone, Debug)]
pub struct DeleteDomain {
    pub domain: DomainId,
}
