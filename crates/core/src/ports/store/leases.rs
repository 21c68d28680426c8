//! Leases: that one of several holders has something to itself until a time, such as the right to scale a cluster.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use crate::model::UnixMs;

questions! {
    Leases,
    reads {
        Lease => Option<Held>,
    }
    writes {
        TakeLease => Result<(), Refused>,
        ReleaseLease => (),
    }
    once {}
}

/// How many leases there are at most at a time; those that have ended do not count.
pub const LEASES_MAX: u32 = 1000;

/// Who holds the lease of this name at `now`.
#[derive(Clone, Debug)]
pub struct Lease {
    pub name: Box<str>,
    pub now: UnixMs,
}

/// Takes the lease of this name until `until`, if nobody else holds it at `now`; its holder may take it again, for longer or less.
#[derive(Clone, Debug)]
pub struct TakeLease {
    pub name: Box<str>,
    pub holder: Box<str>,
    pub now: UnixMs,
    pub until: UnixMs,
}

/// Ends the lease of this name, if this one holds it.
#[derive(Clone, Debug)]
pub struct ReleaseLease {
    pub name: Box<str>,
    pub holder: Box<str>,
}

/// Who holds a lease, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub holder: Box<str>,
    pub until: UnixMs,
}

/// A lease was not taken; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Somebody else holds it.
    Held(Held),
    /// There are as many leases as there may be.
    TooMany,
}
