//! An account as its home shows it to the features.

use crate::feature_state::PerAccount;
use crate::model::{DomainId, Generation};
use carillon_wire::jid::BareJid;

/// An account at its home.
#[derive(Debug)]
pub struct AtHome<'a> {
    /// Its address.
    pub account: &'a BareJid,
    /// The part of it before `@`: an account has one.
    pub local: &'a str,
    /// Its domain.
    pub domain: DomainId,
    /// What the features know of it.
    pub record: &'a mut PerAccount,
    /// The generation of the record.
    pub generation: Generation,
}
