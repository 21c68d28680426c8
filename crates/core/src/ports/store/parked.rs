//! Parked sessions between the end of a process and the start of the next (docs/adr/0019).

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use super::{Page, Part};
use crate::model::UnixMs;
use bytes::Bytes;

questions! {
    Parked,
    reads {
        ParkedGroups => Part<ParkedGroup>,
    }
    writes {
        StoreParked => StoreParkedAnswer,
        ForgetParked => (),
    }
    once {}
}

/// Sessions that a shard parked when its process ended. Whoever starts next reads all groups, has them forgotten, and only then restores
/// the sessions: so none is restored twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkedGroup {
    /// Its number among those of its process.
    pub number: u32,
    /// The shard that wrote it: with as many shards, it is the home of all of the group's accounts.
    pub shard: u16,
    /// How many shards there were.
    pub shards: u16,
    /// How many sessions are in it.
    pub sessions: u32,
    /// When it was written.
    pub written: UnixMs,
    /// The sessions, in the form of docs/session-form.md.
    pub bytes: Bytes,
}

/// Keeps a group. One with the same number is replaced. It is refused if the bytes of all groups would then be more than `bytes_max`.
#[derive(Clone, Debug)]
pub struct StoreParked {
    pub group: ParkedGroup,
    pub bytes_max: u64,
}

/// What became of [`StoreParked`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreParkedAnswer {
    /// It is kept.
    Stored,
    /// There is no room for it; nothing was changed.
    Full,
}

/// The groups with higher numbers than `after` (all, if there is none), in the order of their numbers, as many as `page` has room for.
#[derive(Clone, Debug)]
pub struct ParkedGroups {
    pub after: Option<u32>,
    pub page: Page,
}

/// Removes all groups.
#[derive(Clone, Debug)]
pub struct ForgetParked;
