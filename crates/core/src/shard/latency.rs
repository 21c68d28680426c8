//! How long something took, counted in buckets: for percentiles, and for the metrics page.

/// A histogram of milliseconds: 4 buckets per power of two up to about 17 minutes, so that a percentile is at most 25 % off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latency {
    counts: [u64; Latency::BUCKETS],
    sum_ms: u64,
}

impl Default for Latency {
    fn default() -> Latency {
        Latency { counts: [0; Latency::BUCKETS], sum_ms: 0 }
    }
}

impl Latency {
    const BUCKETS: usize = 80;

    /// The upper bounds, in milliseconds, of the buckets that [`Latency::cumulative`] returns. Each is also a bound of a
    /// bucket of this histogram.
    pub const BOUNDS_MS: [u64; 18] =
        [1, 2, 5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10_240, 20_480, 40_960, 81_920, 327_680];

    /// Counts one duration, in whole milliseconds.
    #[expect(clippy::indexing_slicing, reason = "the index is below the number of buckets")]
    pub fn record(&mut self, ms: u64) {
        self.counts[Latency::bucket(ms).min(Latency::BUCKETS - 1)] += 1;
        self.sum_ms += ms;
    }

    /// Adds what `other` counted.
    pub fn add(&mut self, other: &Latency) {
        self.counts.iter_mut().zip(other.counts).for_each(|(a, b)| *a += b);
        self.sum_ms += other.sum_ms;
    }

    /// What was counted since `earlier`, a copy of the same histogram.
    pub fn since(&self, earlier: &Latency) -> Latency {
        let mut counts = self.counts;
        counts.iter_mut().zip(earlier.counts).for_each(|(a, b)| *a -= b);
        Latency { counts, sum_ms: self.sum_ms - earlier.sum_ms }
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of all durations, in milliseconds.
    pub fn sum_ms(&self) -> u64 {
        self.sum_ms
    }

    /// How many took less than each of [`Latency::BOUNDS_MS`].
    #[expect(clippy::indexing_slicing, reason = "the index is below the number of buckets")]
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> {
        let (mut at, mut seen) = (0, 0);
        Latency::BOUNDS_MS.into_iter().map(move |bound| {
            while at < Latency::BUCKETS && Latency::upper(at) < bound {
                seen += self.counts[at];
                at += 1;
            }
            (bound, seen)
        })
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

    #[test]
    fn cumulative_counts_are_exact_at_their_bounds() {
        let mut latency = Latency::default();
        (0..400_000).for_each(|ms| latency.record(ms));
        for (bound, below) in latency.cumulative() {
            assert_eq!(below, bound, "durations of 0 to {} ms are less than {bound} ms", bound - 1);
        }
        assert_eq!((latency.count(), latency.sum_ms()), (400_000, 399_999 * 200_000));
    }
}
