//! What a thread of a worker counts and times until somebody asks.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::control::Progress;
use crate::measure::Digest;

/// A send that leaves later than this after it was due is late.
const LATE: Duration = Duration::from_millis(10);

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// Logins that succeeded.
    Logins,
    /// TLS handshakes that a ticket shortened.
    Resumed,
    /// Messages, notifications or items that were sent.
    Sent,
    /// Messages, notifications or items that were received.
    Deliveries,
    /// Receipts of notifications.
    Receipts,
    /// Subscriptions that are there.
    Subscribed,
    /// Sessions that ended unasked.
    Lost,
    /// Connections dropped on purpose.
    Dropped,
    /// What was sent and had not arrived when its phase was over.
    Missing,
    /// Sends that left later than they were due by more than 10 ms: the tester, not the server, was slow.
    Late,
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metric {
    /// From when a login was due to its end.
    Login,
    /// From when a message was due to its arrival.
    Rtt,
    /// From when a notification was due to its receipt.
    Receipt,
}

/// Counts, errors and latencies since they were last taken.
#[derive(Debug, Default)]
pub(super) struct Tally {
    counts: [u64; Count::ALL.len()],
    metrics: [Digest; Metric::ALL.len()],
    last_delivery: BTreeMap<u32, Duration>,
    errors: BTreeMap<String, u64>,
    failed: u64,
    online: u32,
}

/// A tally that its thread writes and the engine takes.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Tally>);

impl Count {
    const ALL: [Self; 10] = [
        Self::Logins,
        Self::Resumed,
        Self::Sent,
        Self::Deliveries,
        Self::Receipts,
        Self::Subscribed,
        Self::Lost,
        Self::Dropped,
        Self::Missing,
        Self::Late,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Logins => "logins",
            Self::Resumed => "resumed",
            Self::Sent => "sent",
            Self::Deliveries => "deliveries",
            Self::Receipts => "receipts",
            Self::Subscribed => "subscribed",
            Self::Lost => "lost",
            Self::Dropped => "dropped",
            Self::Missing => "missing",
            Self::Late => "late",
        }
    }
}

impl Metric {
    const ALL: [Self; 3] = [Self::Login, Self::Rtt, Self::Receipt];

    fn name(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::Rtt => "RTT",
            Self::Receipt => "receipt",
        }
    }
}

impl Ledger {
    /// Counts one.
    pub(super) fn count(&self, count: Count) {
        self.add(count, 1);
    }

    /// Counts so many.
    pub(super) fn add(&self, count: Count, many: u64) {
        self.lock().counts[count as usize] += many;
    }

    /// Counts something that is sent so long after it was due.
    pub(super) fn sent(&self, lateness: Duration) {
        let mut tally = self.lock();
        tally.counts[Count::Sent as usize] += 1;
        tally.counts[Count::Late as usize] += u64::from(lateness > LATE);
    }

    /// Adds a latency.
    pub(super) fn time(&self, metric: Metric, latency: Duration) {
        self.lock().metrics[metric as usize].record(latency);
    }

    /// Counts something that arrived, and how long it took.
    pub(super) fn delivered(&self, latency: Duration) {
        let mut tally = self.lock();
        tally.counts[Count::Deliveries as usize] += 1;
        tally.metrics[Metric::Rtt as usize].record(latency);
    }

    /// The same for an item that goes to everyone: the last arrival is what counts.
    pub(super) fn delivered_item(&self, item: u32, latency: Duration) {
        self.delivered(latency);
        let mut tally = self.lock();
        let last = tally.last_delivery.entry(item).or_default();
        *last = latency.max(*last);
    }

    /// Counts what went wrong, in a few words that are the same each time.
    pub(super) fn error(&self, kind: impl Into<String>) {
        *self.lock().errors.entry(kind.into()).or_default() += 1;
    }

    /// Counts a player that failed.
    pub(super) fn failed(&self) {
        self.lock().failed += 1;
    }

    /// Says how many players are in session.
    pub(super) fn set_online(&self, online: usize) {
        self.lock().online = u32::try_from(online).unwrap_or(u32::MAX);
    }

    /// Adds to a progress what happened since the last time.
    pub(super) fn take_into(&self, progress: &mut Progress) {
        let tally = {
            let mut tally = self.lock();
            let online = tally.online;
            std::mem::replace(&mut *tally, Tally { online, ..Tally::default() })
        };
        progress.online += tally.online;
        progress.failed += tally.failed;
        for (count, many) in Count::ALL.into_iter().zip(tally.counts).filter(|(_, many)| *many > 0) {
            *progress.counts.entry(count.name().to_owned()).or_default() += many;
        }
        for (metric, digest) in Metric::ALL.into_iter().zip(tally.metrics) {
            if !digest.is_empty() {
                progress.metrics.entry(metric.name().to_owned()).or_default().merge(digest);
            }
        }
        for (kind, many) in tally.errors {
            *progress.errors.entry(kind).or_default() += many;
        }
        if !tally.last_delivery.is_empty() {
            let largest = progress.largest.entry("last_delivery".to_owned()).or_default();
            for (item, latency) in tally.last_delivery {
                let largest = largest.entry(item).or_default();
                *largest = largest.max(latency.as_secs_f64() * 1000.0);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tally> {
        // Numbers are whole whatever panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_taken_once() {
        let ledger = Ledger::default();
        ledger.set_online(3);
        ledger.count(Count::Logins);
        ledger.error("login: not-authorized");
        ledger.sent(LATE);
        ledger.sent(LATE * 2);
        ledger.delivered_item(7, Duration::from_millis(2));
        ledger.delivered_item(7, Duration::from_millis(1));
        let mut progress = Progress::default();
        ledger.take_into(&mut progress);
        let counts = [("logins", 1), ("deliveries", 2), ("sent", 2), ("late", 1)];
        assert_eq!(progress.counts, counts.map(|(name, many)| (name.to_owned(), many)).into());
        assert_eq!(progress.errors, BTreeMap::from([("login: not-authorized".into(), 1)]));
        assert_eq!(progress.largest["last_delivery"], BTreeMap::from([(7, 2.0)]));
        assert!(!progress.metrics["RTT"].is_empty());
        let mut again = Progress::default();
        ledger.take_into(&mut again);
        assert_eq!(again, Progress { online: 3, ..Progress::default() });
    }

    #[test]
    fn names_are_in_the_order_of_the_arrays() {
        assert!(Count::ALL.into_iter().enumerate().all(|(at, count)| count as usize == at));
        assert!(Metric::ALL.into_iter().enumerate().all(|(at, metric)| metric as usize == at));
    }
}
