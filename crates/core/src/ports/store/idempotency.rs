//! Requests that may be sent again: an idempotency key of an API key stands for one request and its response.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use crate::model::{KeyId, UnixMs};
use bytes::Bytes;

questions! {
    Idempotency,
    reads {}
    writes {
        Reserve => Reservation,
        Remember => (),
        Release => (),
    }
}

/// Reserves an idempotency key of an API key for 24 hours.
#[derive(Clone, Debug)]
pub struct Reserve {
    pub key: KeyId,
    pub idempotency_key: Box<str>,
    pub body_hash: [u8; 32],
    pub now: UnixMs,
}

/// What an idempotency key stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reservation {
    /// Not seen before, or released, or seen and never finished: do it. `since` is when it was first reserved, so that ids
    /// made from it are the same each time.
    Go { since: UnixMs },
    /// Done before: give this response again. It is what [`Remember`] was given, whatever that means to whoever asked.
    Replay { response: Bytes },
    /// Used with another body.
    Mismatch,
    /// Another request with it is being worked on (reserved less than 60 s ago, no response yet).
    InProgress,
}

/// Remembers the response that was given under a reservation: bytes that mean something to whoever asks, and nothing to the
/// store.
#[derive(Clone, Debug)]
pub struct Remember {
    pub key: KeyId,
    pub idempotency_key: Box<str>,
    pub response: Bytes,
}

/// The request under a reservation is over and has no response to be given again: the next with the same key and body goes
/// at once. One that has a response keeps it.
#[derive(Clone, Debug)]
pub struct Release {
    pub key: KeyId,
    pub idempotency_key: Box<str>,
}
