//! What clients keep for themselves (XEP-0049).

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::Missing;
use super::question::questions;
use crate::model::DomainId;
use bytes::Bytes;

questions! {
    Private,
    reads {
        ReadPrivate => Result<Option<Bytes>, Missing>,
        PrivateElements => Vec<PrivateElement>,
    }
    writes {
        StorePrivate => StorePrivateAnswer,
    }
    once {
    }
}

/// The element of this name and namespace that an account keeps, if it keeps one.
#[derive(Clone, Debug)]
pub struct ReadPrivate {
    pub domain: DomainId,
    pub local: Box<str>,
    pub name: Box<str>,
    pub ns: Box<str>,
}

/// All that an account keeps, by their namespaces and names; its bytes are bounded by what it may keep ([`StorePrivate::bytes_max`]).
#[derive(Clone, Debug)]
pub struct PrivateElements {
    pub domain: DomainId,
    pub local: Box<str>,
}

/// Keeps elements in place of those of the same names and namespaces: all of them, or none if the account would keep more than `bytes_max` bytes. One that is
/// empty is not kept any longer.
#[derive(Clone, Debug)]
pub struct StorePrivate {
    pub domain: DomainId,
    pub local: Box<str>,
    pub elements: Vec<PrivateElement>,
    pub bytes_max: usize,
}

/// An element that a client keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateElement {
    /// Its name.
    pub name: Box<str>,
    /// Its namespace.
    pub ns: Box<str>,
    /// The whole of it, with its namespace; empty for none.
    pub xml: Bytes,
}

/// What became of [`StorePrivate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorePrivateAnswer {
    /// They are kept.
    Stored,
    /// There is no room for that.
    Full,
    /// There is no such account.
    NoAccount,
}
