//! Webhooks: URLs that are told of events, how far each has come, and what its receiver did not take.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use super::{Missing, Page, Part};
use crate::model::{
    self, DeadLetter, DomainId, EventFilter, EventTypes, States, UnixMs, WebhookId, WebhookProgress,
    WebhookSecret, WebhookStatus,
};

questions! {
    Webhooks,
    reads {
        Webhook => Option<Box<model::Webhook>>,
        Webhooks => Vec<model::Webhook>,
        DeadLetters => Part<DeadLetter>,
    }
    writes {
        UpdateWebhook => Option<Box<model::Webhook>>,
        ClaimWebhooks => Vec<model::Webhook>,
        CommitWebhook => Result<(), Lost>,
        DeleteDeadLetters => (),
    }
    once {
        CreateWebhook => CreateWebhookAnswer,
        DeleteWebhook => Result<(), Missing>,
    }
}

/// How many webhooks a store has at most: their owner keeps all of them in memory, some 5 KiB each with the longest URL.
pub const WEBHOOKS_MAX: u32 = 1000;
/// How many of them may be one domain's, so that ten domains at least have room for theirs.
pub const WEBHOOKS_PER_DOMAIN_MAX: u32 = 100;
/// How many dead letters are kept of a webhook.
pub const DEAD_LETTERS_MAX: u64 = 10_000;
/// What they may take up, in bytes ([`DeadLetter::bytes`]).
pub const DEAD_LETTER_BYTES_MAX: u64 = 16 << 20;

/// The webhook of this number.
#[derive(Clone, Debug)]
pub struct Webhook {
    pub id: WebhookId,
}

/// Webhooks, those of `domain` or all, by their numbers.
#[derive(Clone, Debug)]
pub struct Webhooks {
    pub domain: Option<DomainId>,
}

/// Creates a webhook. It is enabled, and told of what happens from now on: its cursor is the newest event.
#[derive(Clone, Debug)]
pub struct CreateWebhook {
    pub domain: Option<DomainId>,
    pub url: Box<str>,
    pub wanted: EventFilter,
    pub contents: bool,
    pub secret: WebhookSecret,
    pub now: UnixMs,
}

/// What became of [`CreateWebhook`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateWebhookAnswer {
    /// It was created.
    Created(Box<model::Webhook>),
    /// There is no such domain.
    NoDomain,
    /// There are as many webhooks as there may be: of its domain, or in all.
    TooMany,
}

/// Changes what is named of a webhook. With another URL, or when its status is set to enabled, its failures are forgotten and the next
/// attempt is due at once.
#[derive(Clone, Debug)]
pub struct UpdateWebhook {
    pub id: WebhookId,
    pub url: Option<Box<str>>,
    pub types: Option<EventTypes>,
    pub states: Option<States>,
    pub contents: Option<bool>,
    pub secret: Option<WebhookSecret>,
    pub status: Option<WebhookStatus>,
}

/// Removes a webhook with its dead letters.
#[derive(Clone, Debug)]
pub struct DeleteWebhook {
    pub id: WebhookId,
}

/// Claims the webhooks that are enabled and that nobody else holds, until `until`; those that `owner` holds already are claimed anew.
/// Returns all that it then holds, by their numbers. Before that it moves the cursors of those that it held past events that are of
/// no interest to them: to the numbers in `passed`, and none back.
///
/// A store that has one owner at a time may end all claims when it is opened.
#[derive(Clone, Debug)]
pub struct ClaimWebhooks {
    pub owner: u64,
    pub now: UnixMs,
    pub until: UnixMs,
    pub passed: Vec<(WebhookId, u64)>,
}

/// Notes how far a webhook has come, as the owner of its claim, and keeps the events that its receiver did not take: both or none. A
/// letter whose event is there already is left as it is. The oldest letters beyond [`DEAD_LETTERS_MAX`] and
/// [`DEAD_LETTER_BYTES_MAX`] are dropped, and counted.
#[derive(Clone, Debug)]
pub struct CommitWebhook {
    pub id: WebhookId,
    pub owner: u64,
    pub progress: WebhookProgress,
    /// The receiver is gone: it is disabled.
    pub is_gone: bool,
    pub letters: Vec<DeadLetter>,
}

/// Somebody else holds the webhook, or it does not exist any more; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

/// The dead letters of a webhook with higher numbers than `after`, in the order of their events, as many as `page` has room for.
#[derive(Clone, Debug)]
pub struct DeadLetters {
    pub webhook: WebhookId,
    pub after: u64,
    pub page: Page,
}

/// Removes dead letters, by the numbers of their events. Those that are not there are gone already.
#[derive(Clone, Debug)]
pub struct DeleteDeadLetters {
    pub webhook: WebhookId,
    pub events: Vec<u64>,
}
