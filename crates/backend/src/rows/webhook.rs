//! What is the same of webhooks in every store.

use crate::rows::code::Code;
use carillon_core::model::{self, NotificationState, States, WebhookId, WebhookProgress, WebhookStatus};
use carillon_core::ports::store::webhooks::CreateWebhook;

/// A webhook as it was created.
pub(crate) fn created(asked: &CreateWebhook, id: WebhookId, cursor: u64) -> model::Webhook {
    model::Webhook {
        id,
        domain: asked.domain,
        url: asked.url.clone(),
        wanted: asked.wanted,
        contents: asked.contents,
        secret: asked.secret.clone(),
        status: WebhookStatus::Enabled,
        created: asked.now,
        progress: WebhookProgress { cursor, ..WebhookProgress::default() },
        dead_letters: model::DeadLetters::default(),
    }
}

/// A set of states as a number: a bit for each, by its number in the database.
pub(crate) fn bits(states: States) -> i64 {
    states.iter().fold(0, |bits, state| bits | 1 << state.code())
}

/// The states of such a number.
pub(crate) fn states(bits: i64) -> States {
    let all = NotificationState::ALL.into_iter().filter(|state| bits & 1 << state.code() != 0);
    all.fold(States::NONE, |states, state| states.with(state.into()))
}
