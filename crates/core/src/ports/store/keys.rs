//! API keys, each known by its hash.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::Missing;
use super::question::questions;
use crate::model::{ApiKey, DomainId, KeyId, Scopes, UnixMs};

questions! {
    Keys,
    reads {
        Key => Option<ApiKey>,
        Keys => Vec<ApiKey>,
    }
    writes {
        ExpireKey => Result<ApiKey, Missing>,
        NoteKeyUse => (),
    }
    once {
        CreateKey => CreateKeyAnswer,
        DeleteKey => Result<(), Missing>,
    }
}

/// The key with this hash.
#[derive(Clone, Debug)]
pub struct Key {
    pub hash: [u8; 32],
}

/// Keys, those of `domain` or all.
#[derive(Clone, Debug)]
pub struct Keys {
    pub domain: Option<DomainId>,
}

/// Creates a key, which is identified by its hash. Of no domain there are at most `node_keys_max`.
#[derive(Clone, Debug)]
pub struct CreateKey {
    pub hash: [u8; 32],
    pub name: Box<str>,
    pub domain: Option<DomainId>,
    pub scopes: Scopes,
    /// Until when it counts; none for ever.
    pub expires: Option<UnixMs>,
    /// The networks from which it may be used; empty for any.
    pub networks: Box<[Box<str>]>,
    /// Names of which the client's certificate must have one; empty for none.
    pub certificates: Box<[Box<str>]>,
    pub node_keys_max: u32,
    pub now: UnixMs,
}

/// How many keys of no domain a node has at most.
pub const NODE_KEYS_MAX: u32 = 1000;

/// What became of [`CreateKey`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateKeyAnswer {
    /// The key was created.
    Created(ApiKey),
    /// There is one with this hash already.
    Exists,
    /// There is no such domain.
    NoDomain,
    /// The domain has as many keys as it may ([`crate::model::Policy::keys_max`]), or the node.
    Full,
}

/// A key counts until this time, or for ever.
#[derive(Clone, Debug)]
pub struct ExpireKey {
    pub id: KeyId,
    pub expires: Option<UnixMs>,
}

/// A key was used at this time. What was noted of a later time stays; one that is not there is passed over.
#[derive(Clone, Debug)]
pub struct NoteKeyUse {
    pub id: KeyId,
    pub at: UnixMs,
}

/// Removes a key.
#[derive(Clone, Debug)]
pub struct DeleteKey {
    pub id: KeyId,
}
