//! A question on its way, with the promise that it is answered once.

use carillon_core::model::Payload;
use carillon_core::ports::{Answer, Ask, Fault, Reply};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A question and where its answer goes.
pub(super) struct Question {
    pub(super) ask: Ask,
    pub(super) respond: Respond,
}

impl Question {
    /// What it carries, about, beyond what every question does: the memory that it takes while it waits.
    pub(super) fn bytes(&self) -> usize {
        match &self.ask {
            Ask::StoreNotification { notification, .. } => match &notification.payload {
                Payload::Json(text) => text.len(),
                Payload::Xml(bytes) => bytes.len(),
            },
            Ask::Publish { item, .. } => item.payload.len(),
            Ask::StoreOffline { stanza, .. } => stanza.len(),
            Ask::Remember { response, .. } => response.len(),
            Ask::ImportAccounts { accounts, .. } => accounts.len() * IMPORTED_ACCOUNT_BYTES,
            _ => 0,
        }
    }
}

/// An account with its keys.
const IMPORTED_ACCOUNT_BYTES: usize = 512;

/// Where an answer goes. One that is dropped unanswered, because a thread of the store came to grief, answers
/// [`Fault::Broken`].
pub(super) struct Respond(Option<Reply<Answer>>);

impl Respond {
    pub(super) fn new(reply: Reply<Answer>) -> Respond {
        Respond(Some(reply))
    }

    pub(super) fn with(mut self, answer: Answer) {
        self.call(answer);
    }

    /// An asker that panics must not take the store along.
    fn call(&mut self, answer: Answer) {
        let Some(reply) = self.0.take() else { return };
        if catch_unwind(AssertUnwindSafe(|| reply(answer))).is_err() {
            tracing::error!("an asker of the store panicked on its answer");
        }
    }
}

impl Drop for Respond {
    fn drop(&mut self) {
        self.call(Answer::Failed(Fault::Broken));
    }
}
