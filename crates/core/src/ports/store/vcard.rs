//! What accounts tell of themselves (XEP-0054).

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::Missing;
use super::question::questions;
use crate::model::DomainId;
use bytes::Bytes;

questions! {
    Vcard,
    reads {
        ReadVcard => Option<Bytes>,
    }
    writes {
        StoreVcard => Result<(), Missing>,
    }
    once {
    }
}

/// The vCard of an account; none where there is none, or no such account: whoever asks is not to learn which.
#[derive(Clone, Debug)]
pub struct ReadVcard {
    pub domain: DomainId,
    pub local: Box<str>,
}

/// Keeps a vCard in place of the one before. An empty one is not kept any longer.
#[derive(Clone, Debug)]
pub struct StoreVcard {
    pub domain: DomainId,
    pub local: Box<str>,
    pub xml: Bytes,
}
