//! One delivery: the next events of a webhook are read and sent, and where it is then is committed.

use super::batch::{Batch, EVENTS_MAX, Gap, Prepared};
use super::rules::{Settled, settle};
use super::span::Traced;
use crate::app::App;
use crate::provider::events::Numbered;
use crate::random;
use crate::values::time::now;
use carillon_core::model::{Event, Webhook, WebhookProgress};
use carillon_core::ports::store::notifications::Events;
use carillon_core::ports::store::webhooks::{CommitWebhook, Lost};
use std::time::Duration;

/// What is to be delivered of a webhook, and by whom.
pub(super) struct Delivery {
    pub(super) webhook: Webhook,
    pub(super) owner: u64,
    /// The events that come next and the number up to which they were looked at, if they are in memory.
    pub(super) next: Option<(Vec<Numbered>, u64)>,
}

/// How a delivery ended.
pub(super) enum Delivered {
    /// The webhook is here now.
    At(WebhookProgress),
    /// Nothing up to this event is of interest to it.
    Passed(u64),
    /// The webhook is somebody else's, disabled or gone.
    Lost,
    /// The store did not say what comes next: once more, later.
    Failed,
}

impl Delivery {
    /// Delivers.
    pub(super) async fn run(self, app: &App) -> Delivered {
        let Delivery { webhook, owner, next } = self;
        let batch = match next {
            Some((events, examined)) => {
                let prepare = |(number, event): &Numbered| Prepared::new(*number, event, webhook.contents);
                let events = events.iter().map(prepare);
                Batch::of(events, examined, webhook.progress.is_alone)
            }
            None => match read(app, &webhook).await {
                Some(batch) => batch,
                None => return Delivered::Failed,
            },
        };
        if batch.is_empty() {
            return Delivered::Passed(batch.through);
        }
        let traced = Traced::begin(app, &batch);
        let context = traced.as_ref().map(|traced| traced.context);
        let attempt = app.webhooks().send_batch(&webhook, &batch, context).await;
        if let Some(traced) = traced {
            traced.end(app, &webhook, &attempt);
        }
        let settled =
            settle(&webhook.progress, &batch, &attempt.outcome, now(), app.webhooks().patience, |most| {
                random::number() % (most + 1)
            });
        tell(&webhook, &settled);
        app.webhooks().counters.letters(settled.letters.len());
        commit(app, &webhook, owner, settled).await
    }
}

/// The next events, from the store; none if it does not answer.
async fn read(app: &App, webhook: &Webhook) -> Option<Batch> {
    let (domain, wanted, after) = (webhook.domain, webhook.wanted, webhook.progress.cursor);
    let answer = app.ask(Events { after, domain, wanted, max: EVENTS_MAX }).await.ok()?;
    let gap = answer.next_after_gap(after).map(|next| Gap { after, next });
    let examined = gap.map_or(answer.examined, |gap| answer.examined.max(gap.next - 1));
    let prepare = |(number, event): &(u64, Event)| Prepared::new(*number, event, webhook.contents);
    let batch = Batch::of(answer.events.iter().map(prepare), examined, webhook.progress.is_alone);
    Some(Batch { gap, ..batch })
}

/// Notes where the webhook is; until the store has done it nothing else is sent.
async fn commit(app: &App, webhook: &Webhook, owner: u64, settled: Settled) -> Delivered {
    let Settled { progress, is_gone, letters } = settled;
    let commit = CommitWebhook { id: webhook.id, owner, progress: progress.clone(), is_gone, letters };
    loop {
        match app.ask(commit.clone()).await {
            Ok(Ok(())) if is_gone => return Delivered::Lost,
            Ok(Ok(())) => return Delivered::At(progress),
            Ok(Err(Lost)) => return Delivered::Lost,
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Says when a webhook begins to fail, and when it works again.
fn tell(webhook: &Webhook, settled: &Settled) {
    let (id, url) = (webhook.id, &*webhook.url);
    let error = settled.progress.last_failure.as_ref().map(|failure| &*failure.error);
    match (webhook.progress.failures, settled.progress.failures) {
        _ if settled.is_gone => {
            tracing::warn!(%id, url, error, "the receiver of a webhook is gone: it is disabled");
        }
        (0, 1..) => tracing::warn!(%id, url, error, "a webhook fails; it is tried again"),
        (1.., 0) => tracing::info!(%id, url, "a webhook works again"),
        _ => {}
    }
}

/// How long is waited for a store that did not do it.
const PAUSE: Duration = Duration::from_secs(1);
