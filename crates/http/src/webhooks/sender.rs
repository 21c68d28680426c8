//! The task that sends events: it holds the webhooks of this node, and starts a delivery of each that has something to say.

use super::batch::EVENTS_MAX;
use super::delivery::{Delivered, Delivery};
use crate::app::App;
use crate::provider::events::{Event, Tail};
use crate::random;
use crate::time::now;
use carillon_core::model::{UnixMs, Webhook, WebhookId};
use carillon_core::ports::store::webhooks::ClaimWebhooks;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{self, JoinError, JoinSet};
use tokio::time::Instant;

/// Sends events to webhooks until the node closes. What is under way then is waited for.
pub(crate) async fn run(app: App) {
    let mut closing = app.closing.subscribe();
    let mut sender =
        Sender { app, owner: random::number(), held: HashMap::new(), tail: None, deliveries: JoinSet::new() };
    let mut claim_at = Instant::now();
    loop {
        if claim_at <= Instant::now() {
            let pause = if sender.claim().await { CLAIM_EVERY } else { PAUSE };
            claim_at = Instant::now() + pause;
        }
        let next = sender.start_due().min(claim_at);
        let changed = sender.app.webhooks.changed.notified();
        tokio::select! {
            Some(done) = sender.deliveries.join_next_with_id() => {
                if sender.finish(done) {
                    claim_at = Instant::now();
                }
            }
            () = grown(&mut sender.tail) => {}
            () = changed => claim_at = Instant::now(),
            () = tokio::time::sleep_until(next) => {}
            _ = closing.wait_for(|closing| *closing) => break,
        }
    }
    while sender.deliveries.join_next().await.is_some() {}
}

/// The webhooks of this node.
struct Sender {
    app: App,
    /// Names this sender to the store.
    owner: u64,
    held: HashMap<WebhookId, Held>,
    /// How far the newest events were read, as long as somebody wants to know.
    tail: Option<watch::Receiver<u64>>,
    deliveries: JoinSet<Delivered>,
}

/// A webhook that is held.
struct Held {
    /// As it was when it was claimed, with its progress as it is.
    webhook: Webhook,
    /// The name of its domain; none for all domains.
    domain: Option<Arc<str>>,
    /// Its cursor, as the store knows it.
    committed: u64,
    /// The delivery that is under way.
    delivery: Option<task::Id>,
}

impl Sender {
    /// Claims what is there, and says how far those have come that had nothing to send; whether the store did it.
    async fn claim(&mut self) -> bool {
        let idle = self
            .held
            .values()
            .filter(|held| held.delivery.is_none() && held.webhook.progress.cursor > held.committed);
        let passed = idle.map(|held| (held.webhook.id, held.webhook.progress.cursor)).collect();
        let at = now();
        let claim = ClaimWebhooks { owner: self.owner, now: at, until: at.plus(LEASE_MS), passed };
        let Ok(claimed) = self.app.ask(claim).await else { return false };
        let mut before = std::mem::take(&mut self.held);
        for mut webhook in claimed {
            let domain = webhook.domain.map(|domain| self.app.domain_name(domain));
            let (id, committed) = (webhook.id, webhook.progress.cursor);
            let earlier = before.remove(&id);
            let delivery = earlier.as_ref().and_then(|held| held.delivery);
            // What is read on while the store was asked.
            let cursor = earlier.map_or(committed, |held| held.webhook.progress.cursor.max(committed));
            webhook.progress.cursor = cursor;
            self.held.insert(id, Held { webhook, domain, committed, delivery });
        }
        self.tail = match (self.held.is_empty(), self.tail.take()) {
            (true, _) => None,
            (false, None) => Some(Tail::follow(&self.app)),
            (false, tail) => tail,
        };
        true
    }

    /// Starts a delivery of each webhook that may have something to send now, and says when the next attempt is due.
    fn start_due(&mut self) -> Instant {
        let read = self.tail.as_mut().map_or(0, |tail| *tail.borrow_and_update());
        let (at, mut next) = (now(), Instant::now() + CLAIM_EVERY);
        for held in self.held.values_mut().filter(|held| held.delivery.is_none()) {
            if let Some(wait) = held.wait(at) {
                next = next.min(Instant::now() + wait);
                continue;
            }
            let Some(events) = held.next(&self.app.tail, read) else { continue };
            let delivery = Delivery { webhook: held.webhook.clone(), owner: self.owner, next: events };
            let app = self.app.clone();
            held.delivery = Some(self.deliveries.spawn(async move { delivery.run(&app).await }).id());
        }
        let cursors: HashMap<_, _> =
            self.held.iter().map(|(id, held)| (*id, held.webhook.progress.cursor)).collect();
        let behind = cursors.values().map(|cursor| read.saturating_sub(*cursor)).max();
        self.app.webhooks.counters.set_behind(behind.unwrap_or(0));
        self.app.webhooks.note_cursors(cursors);
        next
    }

    /// Takes what came of a delivery; whether its webhook is lost.
    fn finish(&mut self, done: Result<(task::Id, Delivered), JoinError>) -> bool {
        let (delivery, delivered) = done.unwrap_or_else(|error| {
            tracing::error!(%error, "a delivery to a webhook ended badly");
            (error.id(), Delivered::Failed)
        });
        // One that is not held any more, or anew, goes by what the store says.
        let Some(held) = self.held.values_mut().find(|held| held.delivery == Some(delivery)) else {
            return false;
        };
        held.delivery = None;
        let progress = &mut held.webhook.progress;
        match delivered {
            Delivered::At(there) => {
                held.committed = there.cursor;
                *progress = there;
            }
            Delivered::Passed(cursor) => progress.cursor = cursor,
            Delivered::Failed => progress.next_attempt = Some(now().plus(PAUSE.as_millis() as u64)),
            Delivered::Lost => {
                let id = held.webhook.id;
                self.held.remove(&id);
                return true;
            }
        }
        false
    }
}

impl Held {
    /// How long nothing is sent.
    fn wait(&self, now: UnixMs) -> Option<Duration> {
        let at = self.webhook.progress.next_attempt.filter(|at| *at > now)?;
        // A clock that was set back must not silence it.
        Some(Duration::from_millis((at.0 - now.0).min(WAIT_MAX_MS)))
    }

    /// What is to be delivered, if anything is, when events up to `read` were read: what is in memory, or nothing when the store has to
    /// be asked. Passes what is of no interest.
    fn next(&mut self, tail: &Tail, read: u64) -> Option<Option<(Vec<Event>, u64)>> {
        let cursor = &mut self.webhook.progress.cursor;
        while *cursor < read {
            let Some(events) = tail.after(*cursor, EVENTS_MAX.into()) else { return Some(None) };
            let examined = events.last().map_or(read, |(number, _)| *number);
            let (domain, states) = (self.domain.as_deref(), self.webhook.states);
            let is_wanted = |(_, trace): &Event| {
                domain.is_none_or(|name| trace.to.domain() == name) && states.contains(trace.state)
            };
            let wanted: Vec<Event> = events.into_iter().filter(is_wanted).collect();
            if !wanted.is_empty() {
                return Some(Some((wanted, examined)));
            }
            *cursor = examined;
        }
        None
    }
}

/// Waits until more events were read; for ever when nobody reads them.
async fn grown(tail: &mut Option<watch::Receiver<u64>>) {
    let is_read_on = match tail {
        Some(tail) => tail.changed().await.is_ok(),
        None => false,
    };
    if !is_read_on {
        std::future::pending::<()>().await;
    }
}

/// How long a claim holds, in milliseconds.
const LEASE_MS: u64 = 60_000;
/// How often claims are renewed: before they end, also when the store fails once.
const CLAIM_EVERY: Duration = Duration::from_secs(20);
/// How long is waited for a store that fails.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest that an attempt may be away: `Retry-After` may say an hour.
const WAIT_MAX_MS: u64 = 3_600_000;
