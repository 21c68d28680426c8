//! Webhooks: URLs that are told how notifications ended, and what happened to rooms.

use super::{DomainId, EventFilter, UnixMs, WebhookId};
use bytes::Bytes;
use std::fmt;

/// A URL that is told how notifications ended: a place in the events of the store, which moves on as the receiver takes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Its number.
    pub id: WebhookId,
    /// The domain whose notifications it is told of; none for all.
    pub domain: Option<DomainId>,
    /// Where requests go.
    pub url: Box<str>,
    /// The events that it is told of.
    pub wanted: EventFilter,
    /// Whether it is told what was said in rooms, and not only that something was.
    pub contents: bool,
    /// What its requests are signed with.
    pub secret: WebhookSecret,
    /// Whether events are sent.
    pub status: WebhookStatus,
    /// When it was created.
    pub created: UnixMs,
    /// How far it has come.
    pub progress: WebhookProgress,
    /// What could not be sent.
    pub dead_letters: DeadLetters,
}

/// The key of a webhook's signatures. Its `Debug` form does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(pub Box<[u8]>);

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookSecret({} bytes)", self.0.len())
    }
}

/// Whether a webhook's events are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookStatus {
    /// They are.
    Enabled,
    /// An operator disabled it.
    Disabled,
    /// Its receiver answered `410 Gone`.
    Gone,
}

/// How far a webhook has come, and how it fares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookProgress {
    /// The number of the last event that is dealt with: taken by the receiver, of no interest to it, or a dead letter.
    pub cursor: u64,
    /// Requests that failed since the last success.
    pub failures: u32,
    /// How often the next event was refused when it was sent alone.
    pub refusals: u32,
    /// Whether events are sent one by one, because the receiver refused several.
    pub is_alone: bool,
    /// Nothing is sent before this time.
    pub next_attempt: Option<UnixMs>,
    /// The last request that failed.
    pub last_failure: Option<WebhookFailure>,
}

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookFailure {
    /// When.
    pub at: UnixMs,
    /// Why, for people.
    pub error: Box<str>,
}

/// How many events a webhook's receiver did not take, and what they take up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeadLetters {
    /// Those that are kept.
    pub count: u64,
    /// What they take up, in bytes.
    pub bytes: u64,
    /// Those that were dropped because newer ones came and there was no room.
    pub dropped: u64,
}

/// An event that a webhook's receiver did not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The number of the event.
    pub event: u64,
    /// What is sent: bytes that the store does not interpret.
    pub body: Bytes,
    /// The last attempt to send it.
    pub failure: WebhookFailure,
}

impl DeadLetter {
    /// What it counts for.
    pub fn bytes(&self) -> usize {
        self.body.len() + self.failure.error.len()
    }
}
