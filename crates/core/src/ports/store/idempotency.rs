//! Requests that may be repeated: an idempotency key of an API key identifies one request and its response.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use crate::model::{KeyId, UnixMs};
use bytes::Bytes;

questions! {
    Idempotency,
    reads {}
    writes {
        Remember => (),
        Release => (),
        NoteLines => Vec<u64>,
    }
    once {
        Reserve => Reservation,
    }
}

/// How long an idempotency key is remembered, from its first reservation on.
pub const RESERVED_MS: u64 = 24 * 60 * 60 * 1000;

/// Reserves an idempotency key of an API key for [`RESERVED_MS`], unless what is kept for those of this API key has `kept_bytes_max`
/// already: their names, responses and noted lines, and [`ENTRY_BYTES`] each. Nor is it reserved where all API keys of its domain have
/// [`DOMAIN_TIMES`] as much, unless this one is small ([`SMALL_PART`]): those with the most are refused first.
#[derive(Clone, Debug)]
pub struct Reserve {
    pub key: KeyId,
    pub idempotency_key: Box<str>,
    pub body_hash: [u8; 32],
    pub kept_bytes_max: u64,
    pub now: UnixMs,
}

/// All API keys of a domain may have so many times what one may have.
pub const DOMAIN_TIMES: u64 = 4;
/// An API key that has less than this part of what it may have is not refused because of others of its domain.
pub const SMALL_PART: u64 = 16;

impl Reserve {
    /// Whether there is no room for one more, where so much is kept for the API key, and for all of its domain what is asked then.
    ///
    /// # Errors
    /// That of the question.
    pub fn is_full<E>(&self, kept: u64, of_domain: impl FnOnce() -> Result<u64, E>) -> Result<bool, E> {
        let max = self.kept_bytes_max;
        let is_small = kept < max / SMALL_PART;
        Ok(kept >= max || (!is_small && of_domain()? >= max.saturating_mul(DOMAIN_TIMES)))
    }
}

/// What an idempotency key counts as beside its name and what is kept under it.
pub const ENTRY_BYTES: u64 = 128;

/// The state of an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reservation {
    /// New, released, or never finished: handle the request. `since` is when it was first reserved, so that ids made from it
    /// are the same each time.
    Go { since: UnixMs },
    /// Handled before: give this response again. It is what [`Remember`] was given.
    Replay { response: Bytes },
    /// The key was used with another body.
    Mismatch,
    /// Another request with this key is being handled: reserved less than 60 s ago, no response yet. A store that has one owner at a
    /// time need not wait for requests of an owner that is gone.
    InProgress,
    /// It is new, and as much is kept for others of the API key as may be.
    Full,
}

/// Notes lines of a reserved request that is a stream of them, before they are done, and renews the reservation. Answers the numbers of
/// those under which another line is noted: these are left as they are. Numbers above [`LINES_MAX`] are not noted. Without a reservation
/// nothing is.
#[derive(Clone, Debug)]
pub struct NoteLines {
    pub key: KeyId,
    pub idempotency_key: Box<str>,
    /// By ascending numbers.
    pub lines: Vec<LineDigest>,
    pub now: UnixMs,
}

/// How many lines of a request are noted: those with the numbers from 1 to this, 8 MiB of digests.
pub const LINES_MAX: u64 = 1 << 20;

/// A line of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineDigest {
    /// Counted from 1.
    pub number: u64,
    /// Tells it from other lines. Not 0.
    pub digest: u64,
}

/// Remembers the response to a reserved request: bytes that the store does not interpret.
#[derive(Clone, Debug)]
pub struct Remember {
    pub key: KeyId,
    pub idempotency_key: Box<str>,
    pub response: Bytes,
}

/// Releases a reservation whose request has no response to be repeated: the next request with the same key and body is
/// handled at once. A response that is remembered is kept.
#[derive(Clone, Debug)]
pub struct Release {
    pub key: KeyId,
    pub idempotency_key: Box<str>,
}
