//! The address of an account.

use super::BareJid;
use super::error::JidError;
use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

/// The address of an account: a bare address that has a local part.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountJid(BareJid);

impl AccountJid {
    /// An address as that of an account; none if it is a host's.
    pub fn of(address: BareJid) -> Option<Self> {
        address.local().is_some().then_some(Self(address))
    }

    /// Prepares both parts and joins them.
    ///
    /// # Errors
    /// As [`Jid::new`](super::Jid::new).
    pub fn from_parts(local: &str, domain: &str) -> Result<Self, JidError> {
        BareJid::from_parts(Some(local), domain).map(Self)
    }

    /// The part before `@`.
    pub fn local(&self) -> &str {
        self.0.local().expect("an account's address has a local part")
    }

    /// The same address as any bare address, sharing its text.
    pub fn to_bare(&self) -> BareJid {
        self.0.clone()
    }
}

impl Deref for AccountJid {
    type Target = BareJid;

    fn deref(&self) -> &BareJid {
        &self.0
    }
}

impl Borrow<str> for AccountJid {
    fn borrow(&self) -> &str {
        self.0.as_str()
    }
}

impl From<AccountJid> for BareJid {
    fn from(account: AccountJid) -> BareJid {
        account.0
    }
}

impl fmt::Display for AccountJid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for AccountJid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccountJid({})", self.0.as_str())
    }
}
