//! What a shard counts. Plain numbers, read by the server between two turns of the shard's loop.

use super::Backlog;
use carillon_wire::stream::Condition;

/// Counts since the start, and sizes now (the first five).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections now.
    pub connections: u64,
    /// Bound sessions now.
    pub sessions: u64,
    /// Sessions with available presence now.
    pub available: u64,
    /// Sessions of the light protocol now.
    pub light: u64,
    /// Deliveries of topics that wait now.
    pub backlog: Backlog,
    /// Logins that succeeded.
    pub logins: u64,
    /// Of these, those that asked no store.
    pub logins_remembered: u64,
    /// Logins that failed.
    pub login_failures: u64,
    /// Stanzas received from clients.
    pub stanzas_in: u64,
    /// Stanzas sent to clients.
    pub stanzas_out: u64,
    /// Topic items and notifications given to connections.
    pub deliveries: u64,
    /// Notifications accepted.
    pub notifications_accepted: u64,
    /// Notifications acknowledged.
    pub notifications_acknowledged: u64,
    /// Notifications that ended otherwise.
    pub notifications_ended: u64,
    /// Items published on topics that live here.
    pub published: u64,
    /// What was not published to topics that live here, because their followers could not be given it as fast.
    pub too_fast: u64,
    /// Faults of observers and stores, each also logged as an event.
    pub faults: u64,
    /// Stream errors sent, by condition.
    pub stream_errors: Vec<(Condition, u64)>,
    /// Errors sent to those who speak the light protocol, by code.
    pub light_errors: Vec<(&'static str, u64)>,
    /// Time from acceptance to the connection of deliveries.
    pub latency: Latency,
}

impl Counters {
    /// Counts a stream error.
    pub fn stream_error(&mut self, condition: Condition) {
        match self.stream_errors.iter_mut().find(|(c, _)| *c == condition) {
            Some((_, n)) => *n += 1,
            None => self.stream_errors.push((condition, 1)),
        }
    }
}

impl Counters {
    /// Counts an error of the light protocol.
    pub fn light_error(&mut self, code: &'static str) {
        match self.light_errors.iter_mut().find(|(c, _)| *c == code) {
            Some((_, n)) => *n += 1,
            None => self.light_errors.push((code, 1)),
        }
    }
}

/// A histogram of milliseconds: 4 buckets a power of two up to about 17 minutes, so that a percentile is at most 25 % off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latency {
    counts: [u64; Latency::BUCKETS],
}

impl Default for Latency {
    fn default() -> Latency {
        Latency { counts: [0; Latency::BUCKETS] }
    }
}

impl Latency {
    const BUCKETS: usize = 80;

    /// Counts one delivery.
    pub fn record(&mut self, ms: u64) {
        self.counts[Latency::bucket(ms).min(Latency::BUCKETS - 1)] += 1;
    }

    /// Adds what `other` counted.
    pub fn add(&mut self, other: &Latency) {
        self.counts.iter_mut().zip(other.counts).for_each(|(a, b)| *a += b);
    }

    /// What was counted since `earlier`, a copy of the same histogram.
    pub fn since(&self, earlier: &Latency) -> Latency {
        let mut counts = self.counts;
        counts.iter_mut().zip(earlier.counts).for_each(|(a, b)| *a -= b);
        Latency { counts }
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The upper edge, in milliseconds, of the bucket that holds the `quantile` (0 to 1); 0 when nothing was counted.
    pub fn quantile(&self, quantile: f64) -> u64 {
        let total = self.count();
        let rank = ((total as f64 * quantile).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0;
        for (i, n) in self.counts.iter().enumerate() {
            seen += n;
            if seen >= rank {
                return Latency::upper(i);
            }
        }
        0
    }

    fn bucket(ms: u64) -> usize {
        if ms < 4 {
            return ms as usize;
        }
        let power = 63 - ms.leading_zeros() as usize;
        4 * (power - 1) + (ms >> (power - 2)) as usize - 4
    }

    fn upper(bucket: usize) -> u64 {
        if bucket < 4 {
            return bucket as u64;
        }
        let (power, quarter) = (bucket / 4 + 1, (bucket % 4) as u64);
        ((4 + quarter + 1) << (power - 2)) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::Latency;

    #[test]
    fn buckets_hold_what_they_say() {
        for ms in 0..100_000u64 {
            let upper = Latency::upper(Latency::bucket(ms));
            assert!(upper >= ms && upper <= ms + ms / 4, "{ms} in a bucket up to {upper}");
        }
    }

    #[test]
    fn quantiles() {
        let mut latency = Latency::default();
        assert_eq!(latency.quantile(0.99), 0);
        (1..=100).for_each(|ms| latency.record(ms));
        assert_eq!((latency.quantile(0.5), latency.quantile(0.99), latency.count()), (55, 111, 100));
    }
}
