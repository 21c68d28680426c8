//! How long something outside a shard took, counted in buckets for the metrics page.

use std::time::Duration;

/// A histogram of durations from 100 µs to 30 s, for what happens too seldom or too fast to be counted in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// One count per bucket; the last one is of durations longer than every bound.
    counts: [u64; Durations::BOUNDS_US.len() + 1],
    sum_us: u64,
}

impl Durations {
    /// The bounds of the buckets, in microseconds.
    pub const BOUNDS_US: [u64; 17] = [
        100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
        2_500_000, 5_000_000, 10_000_000, 30_000_000,
    ];

    /// Counts one duration.
    #[expect(clippy::indexing_slicing, reason = "there is one count more than there are bounds")]
    pub fn record(&mut self, took: Duration) {
        let us = took.as_micros() as u64;
        self.counts[Durations::BOUNDS_US.partition_point(|bound| *bound < us)] += 1;
        self.sum_us += us;
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of all durations, in microseconds.
    pub fn sum_us(&self) -> u64 {
        self.sum_us
    }

    /// For each bound, in microseconds, how many durations were at most as long.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut seen = 0;
        Durations::BOUNDS_US.into_iter().zip(self.counts).map(move |(bound, count)| {
            seen += count;
            (bound, seen)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let mut durations = Durations::default();
        for us in [100, 101, 250, 30_000_000, 30_000_001] {
            durations.record(Duration::from_micros(us));
        }
        let cumulative: Vec<_> = durations.cumulative().collect();
        assert_eq!((cumulative[0], cumulative[1], cumulative[16]), ((100, 1), (250, 3), (30_000_000, 4)));
        assert_eq!((durations.count(), durations.sum_us()), (5, 60_000_452));
    }
}
