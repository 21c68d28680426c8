//! Leases: that one of several holders has something to itself until a time, such as the right to scale a cluster.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use crate::model::UnixMs;

questions! {
    Leases,
    reads {
        Lease => Option<Held>,
        ListLeases => Vec<(Box<str>, Held)>,
    }
    writes {
        TakeLease => Result<(), Refused>,
        ReleaseLease => (),
    }
    once {}
}

/// How many leases there are at most at a time; those that have ended do not count.
pub const LEASES_MAX: u32 = 1000;

/// The longest state of a lease, in bytes.
pub const STATE_MAX: usize = 4096;

/// Who holds the lease of this name at `now`.
#[derive(Clone, Debug)]
pub struct Lease {
    pub name: Box<str>,
    pub now: UnixMs,
}

/// The leases that are held at `now`, with their names: at most `limit`, in the order of the names' bytes, only those after `after`.
#[derive(Clone, Debug)]
pub struct ListLeases {
    pub after: Option<Box<str>>,
    pub limit: u16,
    pub now: UnixMs,
}

/// Takes the lease of this name until `until`, if nobody else holds it at `now`; its holder may take it again, for longer or less. What
/// its holder says of itself is kept with it; without a new one, the state that it has stays.
#[derive(Clone, Debug)]
pub struct TakeLease {
    pub name: Box<str>,
    pub holder: Box<str>,
    pub now: UnixMs,
    pub until: UnixMs,
    pub state: Option<Box<str>>,
}

/// Ends the lease of this name, if this one holds it.
#[derive(Clone, Debug)]
pub struct ReleaseLease {
    pub name: Box<str>,
    pub holder: Box<str>,
}

/// Who holds a lease, until when, and what it last said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub holder: Box<str>,
    pub until: UnixMs,
    pub state: Option<Box<str>>,
}

/// A lease was not taken; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Somebody else holds it.
    Held(Held),
    /// There are as many leases as there may be.
    TooMany,
}
