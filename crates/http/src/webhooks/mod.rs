//! Webhooks: URLs that are told how notifications ended.
//!
//! Each is a cursor over the events of the store, which moves when its receiver has taken what is before it. The `sender` holds the
//! claims, sees by the same tail as the event streams that something has ended, and has one request per webhook under way; a
//! `delivery` reads, sends and commits; `rules` decide what an outcome means; `batch` is what is sent, `signature` what proves it,
//! `client` and [`crate::outgoing::address`] where it may go.

mod batch;
mod client;
mod delivery;
mod figures;
mod rules;
mod sender;
mod signature;
mod span;

pub(crate) use client::{Attempt, Call, Client};
pub(crate) use figures::Figures;
pub(crate) use rules::Outcome;
pub(crate) use sender::run;
pub(crate) use signature::{headers, new_secret, read_secret, write_secret};

use crate::app::App;
use crate::options::Options;
use crate::problem::Problem;
use batch::{Batch, Prepared};
use carillon_core::model::{DeadLetter, TraceContext, Webhook, WebhookId};
use client::Message;
use figures::Counters;
use rules::Patience;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, Semaphore};

/// What the sender and the routes of webhooks share.
pub(crate) struct Webhooks {
    client: Arc<Client>,
    counters: Counters,
    patience: Patience,
    /// Room for requests that somebody waits for, beside those of the sender.
    calls: Semaphore,
    /// A webhook was created, changed or removed.
    changed: Notify,
    /// The cursors of the webhooks that the sender holds: further than the store knows, where nothing was of interest.
    cursors: Mutex<HashMap<WebhookId, u64>>,
}

impl App {
    /// What sends events to webhooks.
    pub(crate) fn webhooks(&self) -> &Arc<Webhooks> {
        self.part()
    }
}

/// Cursors of webhooks at one moment.
pub(crate) struct Cursors(HashMap<WebhookId, u64>);

impl Cursors {
    /// The number of the last event that is dealt with.
    pub(crate) fn of(&self, webhook: &Webhook) -> u64 {
        self.0.get(&webhook.id).map_or(webhook.progress.cursor, |here| webhook.progress.cursor.max(*here))
    }
}

impl Webhooks {
    pub(crate) fn new(options: &Options) -> Webhooks {
        let settings = &options.settings.webhooks;
        let patience =
            Patience { retry_first_ms: settings.retry_first_ms, give_up_after_ms: settings.give_up_after_ms };
        Webhooks {
            client: Arc::new(Client::new(settings, options.webhook_roots.clone())),
            counters: Counters::default(),
            patience,
            calls: Semaphore::new(CALLS_MAX),
            changed: Notify::new(),
            cursors: Mutex::default(),
        }
    }

    /// Tells the sender that webhooks have changed.
    pub(crate) fn changed(&self) {
        self.changed.notify_one();
    }

    /// What was counted.
    pub(crate) fn figures(&self) -> Figures {
        self.counters.figures()
    }

    /// Checks a URL as far as that can be done without asking for its host's address.
    pub(crate) fn check_url(&self, url: &str) -> Result<(), Problem> {
        self.client.check(url)
    }

    /// Up to which event webhooks have been dealt with since the store was told. To be read before what the store knows of them: read later it would
    /// be ahead of that.
    pub(crate) fn cursors(&self) -> Cursors {
        Cursors(self.cursors.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn note_cursors(&self, now: impl Iterator<Item = (WebhookId, u64)>) {
        let mut cursors = self.cursors.lock().unwrap_or_else(PoisonError::into_inner);
        cursors.clear();
        cursors.extend(now);
    }

    /// Sends a request that tells of nothing, beside all others.
    pub(crate) async fn test(&self, webhook: &Webhook, id: String) -> Attempt {
        let _room = self.calls.acquire().await;
        self.send(webhook, id, batch::test_body(webhook), 0, None).await
    }

    /// Sends events that were not taken before, beside all others: as many of the first as a request has room for. Says how many they
    /// were.
    pub(crate) async fn send_again(&self, webhook: &Webhook, letters: Vec<DeadLetter>) -> (usize, Attempt) {
        let _room = self.calls.acquire().await;
        let batch = Batch::of(letters.into_iter().map(Prepared::again), 0, false);
        (batch.events.len(), self.send_batch(webhook, &batch, None).await)
    }

    async fn send_batch(&self, webhook: &Webhook, batch: &Batch, trace: Option<TraceContext>) -> Attempt {
        self.send(webhook, batch.id(webhook), batch.body(webhook), batch.events.len(), trace).await
    }

    async fn send(
        &self,
        webhook: &Webhook,
        id: String,
        body: Vec<u8>,
        events: usize,
        trace: Option<TraceContext>,
    ) -> Attempt {
        let (url, secret) = (webhook.url.clone(), webhook.secret.clone());
        let message = Message { url, id, secret, body, trace };
        let attempt = self.client.send(message).await;
        self.counters.request(&attempt.outcome, events);
        attempt
    }
}

/// Requests under way at once that the routes have asked for; with those of the sender, 64 per node.
const CALLS_MAX: usize = 16;
