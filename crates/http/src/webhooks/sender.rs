//! The task that sends events: it holds the webhooks of this node, and starts a delivery of each that has something to say.

use super::batch::EVENTS_MAX;
use super::delivery::{Delivered, Delivery};
use super::rules::RETRY_AFTER_MAX;
use crate::app::App;
use crate::provider::events::{Numbered, Tail};
use crate::random;
use crate::values::time::now;
use carillon_core::model::{UnixMs, Webhook, WebhookId};
use carillon_core::ports::store::webhooks::ClaimWebhooks;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{self, AbortHandle, JoinError, JoinSet};
use tokio::time::Instant;

/// Sends events to webhooks until the node closes. What is under way then is given up: the store is closed before, and what it was not
/// told is sent again.
pub(crate) async fn run(app: App) {
    let mut closing = app.closing.subscribe();
    let mut sender = Sender {
        app,
        owner: random::number(),
        held: HashMap::new(),
        turn: 0,
        tail: None,
        deliveries: JoinSet::new(),
    };
    let mut claim_at = Instant::now();
    loop {
        if claim_at <= Instant::now() {
            let pause = if sender.claim().await { CLAIM_EVERY } else { PAUSE };
            claim_at = Instant::now() + pause;
        }
        let next = sender.start_due().min(claim_at);
        let changed = sender.app.webhooks().changed.notified();
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
    sender.deliveries.shutdown().await;
}

/// The webhooks of this node.
struct Sender {
    app: App,
    /// Names this sender to the store.
    owner: u64,
    held: HashMap<WebhookId, Held>,
    /// Deliveries that were started.
    turn: u64,
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
    delivery: Option<AbortHandle>,
    /// Its last turn: who waited longest is next.
    turn: u64,
}

impl Sender {
    /// Renews claims, takes new ones, and commits the cursors of webhooks that had nothing to send. Whether the store did it.
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
        for webhook in claimed {
            let domain = webhook.domain.map(|domain| self.app.domain_name(domain));
            let committed = webhook.progress.cursor;
            let earlier = before.remove(&webhook.id);
            let mut held = Held { webhook, domain, committed, delivery: None, turn: 0 };
            if let Some(earlier) = earlier {
                held.go_on(earlier);
            }
            self.held.insert(held.webhook.id, held);
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
        let mut idle: Vec<_> = self.held.values_mut().filter(|held| held.delivery.is_none()).collect();
        idle.sort_unstable_by_key(|held| held.turn);
        for held in idle {
            if let Some(wait) = held.wait(at) {
                next = next.min(Instant::now() + wait);
                continue;
            }
            // The others are looked at when one of these has ended.
            if self.deliveries.len() >= DELIVERIES_MAX {
                break;
            }
            let Some(events) = held.next(self.app.tail(), read) else { continue };
            let delivery = Delivery { webhook: held.webhook.clone(), owner: self.owner, next: events };
            self.turn += 1;
            held.turn = self.turn;
            let app = self.app.clone();
            held.delivery = Some(self.deliveries.spawn(async move { delivery.run(&app).await }));
        }
        let cursors = self.held.iter().map(|(id, held)| (*id, held.webhook.progress.cursor));
        let behind = cursors.clone().map(|(_, cursor)| read.saturating_sub(cursor)).max();
        self.app.webhooks().counters.set_behind(behind.unwrap_or(0));
        self.app.webhooks().note_cursors(cursors);
        next
    }

    /// Takes what came of a delivery; whether its webhook is lost.
    fn finish(&mut self, done: Result<(task::Id, Delivered), JoinError>) -> bool {
        let (delivery, delivered) = done.unwrap_or_else(|error| {
            if error.is_panic() {
                tracing::error!(%error, "a delivery to a webhook ended badly");
            }
            (error.id(), Delivered::Failed)
        });
        // One that is not held any more, or anew, goes by what the store says.
        let Some(held) = self.held.values_mut().find(|held| held.is_delivered_by(delivery)) else {
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
    /// Goes on from how it was held before.
    fn go_on(&mut self, earlier: Held) {
        // Events that are of no interest may have been passed while the store was asked.
        let cursor = &mut self.webhook.progress.cursor;
        *cursor = earlier.webhook.progress.cursor.max(*cursor);
        self.turn = earlier.turn;
        if earlier.webhook.url == self.webhook.url {
            self.delivery = earlier.delivery;
        } else if let Some(delivery) = earlier.delivery {
            // What the old receiver says must not hold up the new one.
            delivery.abort();
        }
    }

    fn is_delivered_by(&self, delivery: task::Id) -> bool {
        self.delivery.as_ref().is_some_and(|under_way| under_way.id() == delivery)
    }

    /// How long nothing is sent.
    fn wait(&self, now: UnixMs) -> Option<Duration> {
        let wait_ms = self.webhook.progress.next_attempt?.0.saturating_sub(now.0);
        // Nobody waits longer: the clock was set back.
        (1..=WAIT_MAX_MS).contains(&wait_ms).then(|| Duration::from_millis(wait_ms))
    }

    /// What is to be delivered, if anything is, when events up to `read` were read: what is in memory, or nothing when the store has to
    /// be asked. Passes what is of no interest.
    fn next(&mut self, tail: &Tail, read: u64) -> Option<Option<(Vec<Numbered>, u64)>> {
        let cursor = &mut self.webhook.progress.cursor;
        while *cursor < read {
            // A domain that this node has not heard of has no name here; the store goes by its number.
            let is_known = self.domain.as_deref() != Some("");
            let in_memory = is_known.then(|| tail.after(*cursor, EVENTS_MAX.into())).flatten();
            let Some(events) = in_memory else { return Some(None) };
            let examined = events.last().map_or(read, |(number, _)| *number);
            let (domain, wanted) = (self.webhook.domain.zip(self.domain.as_deref()), self.webhook.wanted);
            let is_wanted = |(_, event): &Numbered| {
                domain.is_none_or(|(id, name)| event.is_of(id, name)) && wanted.takes(event)
            };
            let wanted: Vec<Numbered> = events.into_iter().filter(is_wanted).collect();
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

/// Deliveries under way at once: so many batches are in memory, of some 512 KiB, and so many threads have requests.
const DELIVERIES_MAX: usize = 48;
/// How long a claim holds, in milliseconds.
const LEASE_MS: u64 = 60_000;
/// How often claims are renewed: before they end, also when the store fails once.
const CLAIM_EVERY: Duration = Duration::from_secs(20);
/// How long is waited for a store that fails.
const PAUSE: Duration = Duration::from_secs(1);
const WAIT_MAX_MS: u64 = RETRY_AFTER_MAX.as_millis() as u64;

#[cfg(test)]
mod tests {
    use super::super::batch::tests::webhook;
    use super::*;

    #[test]
    fn a_wait_ends_also_when_the_clock_is_set_back() {
        let mut held = Held { webhook: webhook(), domain: None, committed: 0, delivery: None, turn: 0 };
        let at = UnixMs(1_795_167_000_000);
        assert_eq!(held.wait(at), None);
        held.webhook.progress.next_attempt = Some(at);
        for (now, expected) in [
            (at.plus(1), None),
            (at, None),
            (UnixMs(at.0 - 7), Some(7)),
            (UnixMs(at.0 - WAIT_MAX_MS), Some(WAIT_MAX_MS)),
            (UnixMs(at.0 - WAIT_MAX_MS - 1), None),
        ] {
            assert_eq!(held.wait(now), expected.map(Duration::from_millis), "{now:?}");
        }
    }
}
