//! Domains: the tenants of a node.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use super::{Missing, Part};
use crate::model::{Domain, DomainId, Policy, RosterChange, UnixMs};

questions! {
    Domains,
    reads {
        Domains => Vec<Domain>,
        DomainUsage => Option<Usage>,
        StoredBytes => StoredPart,
    }
    writes {
        NoteStored => Result<(), Missing>,
        SetPushTemplates => Result<(), Missing>,
    }
    once {
        PutDomain => PutDomainAnswer,
        ChangePolicy => Result<Domain, Overtaken>,
        DeleteDomain => Result<Part<RosterChange>, Missing>,
    }
}

/// All domains, ordered by name.
#[derive(Clone, Debug)]
pub struct Domains;

/// How much of what is bounded by its policy a domain has; none where there is no such domain.
#[derive(Clone, Debug)]
pub struct DomainUsage {
    pub domain: DomainId,
}

/// The answer to [`DomainUsage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Accounts.
    pub accounts: u32,
    /// Topics.
    pub topics: u32,
    /// Rooms of either kind.
    pub rooms: u32,
    /// API keys that are bound to it.
    pub keys: u32,
}

/// Bytes that are stored of accounts of a domain, or of its topics, in the order of their names: those after `after`, at most `limit`.
/// Of an account these are its contacts, block list, private elements, personal nodes, vCard, archive, files, and messages that wait.
#[derive(Clone, Debug)]
pub struct StoredBytes {
    pub domain: DomainId,
    pub kind: StoredKind,
    pub after: Option<Box<str>>,
    pub limit: u32,
}

/// What [`StoredBytes`] is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredKind {
    /// Accounts.
    Accounts,
    /// Topics.
    Topics,
}

/// The answer to [`StoredBytes`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredPart {
    /// Bytes of these.
    pub bytes: u64,
    /// The last of them, where there may be more.
    pub last: Option<Box<str>>,
}

/// So many bytes are stored of a domain ([`Domain::stored_bytes`]).
#[derive(Clone, Debug)]
pub struct NoteStored {
    pub domain: DomainId,
    pub bytes: u64,
}

/// In which words devices show the pushes of a domain ([`Domain::push_templates`]).
#[derive(Clone, Debug)]
pub struct SetPushTemplates {
    pub domain: DomainId,
    pub templates: Option<Box<str>>,
}

/// Creates a domain, or changes what it is granted when it exists; its policy follows where that changes ([`Policy::after_grant`]).
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

/// Creates a domain or gives it another policy, if it is as it was when that was decided.
#[derive(Clone, Debug)]
pub struct ChangePolicy {
    pub name: Box<str>,
    /// What it was granted, and its policy; none where there was no such domain.
    pub was: Option<Box<(Policy, Policy)>>,
    pub granted: Policy,
    pub policy: Policy,
}

/// Somebody else was first: the domain is otherwise than was thought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overtaken;

/// Removes a domain with its accounts, topics, notifications and keys: a part of it, until `rows_max` rows or more have been
/// changed: of an account a part as by [`DeleteAccount`](super::accounts::DeleteAccount), whole topics and rooms. It is asked until no more follows; the last part removes the domain itself. The rosters of accounts of other
/// domains change as by [`DeleteAccount`](super::accounts::DeleteAccount): the answer is what changed in them.
///
/// In between it gets no new accounts, and [`UnfinishedRemovals`](super::accounts::UnfinishedRemovals) lists it.
#[derive(Clone, Debug)]
pub struct DeleteDomain {
    pub domain: DomainId,
    pub now: UnixMs,
    pub rows_max: u32,
}

/// What [`DeleteDomain::rows_max`] is, unless there is a reason: other writes wait for some tens of milliseconds.
pub const DOMAIN_PART_ROWS: u32 = 4096;
