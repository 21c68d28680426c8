//! Accounts: their identities, their keys, and what belongs to them.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use super::{Load, Loads, Missing, Part};
use crate::model::{
    self, AccountId, AccountState, AgentId, Credentials, DomainId, LoginParts, Revocations, RosterChange,
    UnixMs,
};
use carillon_wire::jid::BareJid;

questions! {
    Accounts,
    reads {
        Identity => Option<Box<model::Identity>>,
        Login => Option<Box<model::Login>>,
        Account => Option<Box<Enrolment>>,
        Accounts => Vec<Enrolment>,
        UnfinishedRemovals => Vec<UnfinishedRemoval>,
    }
    writes {
        ImportAccounts => Result<(), ImportRefused>,
        SetCredentials => Result<(), Missing>,
        SetAccountState => Result<(), Missing>,
    }
    once {
        CreateAccount => CreateAccountAnswer,
        RevokeTokens => Option<Revocations>,
        DeleteAccount => Result<Part<RosterChange>, Missing>,
    }
    loads {
        DeleteAccount,
    }
}

/// An account's identity and keys, for a client that has proved nothing yet. `local` is prepared.
#[derive(Clone, Debug)]
pub struct Identity {
    pub domain: DomainId,
    pub local: Box<str>,
}

/// What belongs to an account whose client has proved itself: its state and `parts`; nothing else is read. Notifications that
/// expired by `now` or are not due yet do not count as waiting.
#[derive(Clone, Debug)]
pub struct Login {
    pub account: AccountId,
    pub parts: LoginParts,
    pub now: UnixMs,
}

/// An account without its keys, with the names of the topics it follows.
#[derive(Clone, Debug)]
pub struct Account {
    pub domain: DomainId,
    pub local: Box<str>,
}

/// Accounts in the order of their local part, those after `after`, at most `limit`; without topics.
#[derive(Clone, Debug)]
pub struct Accounts {
    pub domain: DomainId,
    pub after: Option<Box<str>>,
    pub limit: u16,
}

/// An account, as shown to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enrolment {
    /// Its number.
    pub id: AccountId,
    /// Its bare JID.
    pub jid: BareJid,
    /// Whether it may log in.
    pub state: AccountState,
    /// When it was created.
    pub created: UnixMs,
    /// The names of the topics it follows, where asked for.
    pub topics: Vec<Box<str>>,
    /// How many notifications wait for it.
    pub pending: u32,
}

/// Creates an account, unless the domain has as many as its policy allows. `is_in_band`: whoever comes first takes the name; one that is held back since it was removed
/// ([`DeleteAccount`]) is then not given. Anybody else may take such a name, which ends its being held back.
#[derive(Clone, Debug)]
pub struct CreateAccount {
    pub domain: DomainId,
    pub local: Box<str>,
    pub credentials: Credentials,
    pub is_in_band: bool,
    pub now: UnixMs,
}

/// What became of [`CreateAccount`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateAccountAnswer {
    /// The account was created.
    Created(AccountId),
    /// There is one with this name already.
    Exists,
    /// There was one with this name, which is held back.
    Held,
    /// There is no such domain.
    NoDomain,
    /// The domain has as many accounts as its policy's `accounts_max` allows.
    DomainFull,
}

/// Creates or replaces many accounts in one step, or none of them.
#[derive(Clone, Debug)]
pub struct ImportAccounts {
    pub domain: DomainId,
    pub accounts: Vec<ImportedAccount>,
    pub now: UnixMs,
}

/// Why [`ImportAccounts`] was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportRefused {
    /// There is no such domain.
    NoDomain,
    /// The domain would have more accounts than its policy's `accounts_max` allows.
    DomainFull,
    /// One of them is being removed: what it would be given would go with it.
    IsBeingRemoved,
}

/// One account of an import.
#[derive(Clone, Debug)]
pub struct ImportedAccount {
    /// The prepared local part.
    pub local: Box<str>,
    /// Its keys.
    pub credentials: Credentials,
}

/// Replaces an account's keys; not of one that is being removed.
#[derive(Clone, Debug)]
pub struct SetCredentials {
    pub domain: DomainId,
    pub local: Box<str>,
    pub credentials: Credentials,
}

/// Enables or disables an account; not one that is being removed.
#[derive(Clone, Debug)]
pub struct SetAccountState {
    pub domain: DomainId,
    pub local: Box<str>,
    pub state: AccountState,
}

/// Revokes the tokens of one client of an account, or of all. Returns the revocations afterwards; none if there is no such
/// account.
#[derive(Clone, Debug)]
pub struct RevokeTokens {
    pub domain: DomainId,
    pub local: Box<str>,
    pub agent: Option<AgentId>,
}

/// Removes an account with all that belongs to it; its undelivered notifications end as
/// [`DropReason::DeviceDeleted`](crate::model::DropReason::DeviceDeleted). In the same step the rosters of others lose what they say of
/// subscriptions between the two, granted in advance or only asked for included ([`ended_with`](crate::model::ended_with)); the answer is
/// what changed in them. Where the domain lets accounts register in-band, nobody takes the name that way until `held_until`.
///
/// It is done in parts of `rows_max` rows, about: it is asked until no more follows, and the last part removes the account itself. In between nobody logs in to
/// it, enables it or gives it other keys, its name is nobody else's, and [`UnfinishedRemovals`] lists it, so that whoever finds it there removes the rest. Parts that several
/// ask for at the same time do no harm: the one who comes last finds nothing.
#[derive(Clone, Debug)]
pub struct DeleteAccount {
    pub domain: DomainId,
    pub local: Box<str>,
    pub now: UnixMs,
    pub held_until: UnixMs,
    pub rows_max: u32,
}

/// What [`DeleteAccount::rows_max`] is, unless there is a reason: other writes wait for some milliseconds.
pub const ACCOUNT_PART_ROWS: u32 = 1024;

/// Removals of accounts and of whole domains that have begun and are not finished, and of which no part was removed after `before`; those that wait longest first,
/// at most `limit`.
#[derive(Clone, Debug)]
pub struct UnfinishedRemovals {
    pub before: UnixMs,
    pub limit: u16,
}

/// What is being removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnfinishedRemoval {
    /// An account, by [`DeleteAccount`] or with its domain.
    Account(DomainId, BareJid),
    /// A domain, by [`DeleteDomain`](super::domains::DeleteDomain).
    Domain(DomainId),
}

impl Loads for DeleteAccount {
    fn load(&self) -> Load<'_> {
        Load { bytes: 0, account: Some((self.domain, &self.local)) }
    }
}
