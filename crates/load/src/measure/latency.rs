//! Exact percentiles of durations, from all of them, sorted.

use std::time::Duration;

use serde_json::{Value, json};

/// Durations as they were measured.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    micros: Vec<u32>,
}

/// What is told of many durations, each in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// How many there were.
    pub count: usize,
    /// The shortest.
    pub min_us: u32,
    /// Half were not longer.
    pub p50_us: u32,
    /// 90 % were not longer.
    pub p90_us: u32,
    /// 99 % were not longer.
    pub p99_us: u32,
    /// 99.9 % were not longer.
    pub p999_us: u32,
    /// The longest.
    pub max_us: u32,
}

impl Latencies {
    /// Adds one; above 71 minutes it counts as 71 minutes.
    pub fn record(&mut self, duration: Duration) {
        self.micros.push(u32::try_from(duration.as_micros()).unwrap_or(u32::MAX));
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: &Self) {
        self.micros.extend_from_slice(&other.micros);
    }

    /// How many were added.
    pub fn len(&self) -> usize {
        self.micros.len()
    }

    /// Whether none was added.
    pub fn is_empty(&self) -> bool {
        self.micros.is_empty()
    }

    /// Sorts and tells; all zero when there are none.
    pub fn percentiles(&mut self) -> Percentiles {
        self.micros.sort_unstable();
        let (Some(&min_us), Some(&max_us)) = (self.micros.first(), self.micros.last()) else {
            return Percentiles::default();
        };
        Percentiles {
            count: self.micros.len(),
            min_us,
            p50_us: self.at(500),
            p90_us: self.at(900),
            p99_us: self.at(990),
            p999_us: self.at(999),
            max_us,
        }
    }

    /// The nearest rank: the smallest value that `permille` of all do not exceed. Needs a sorted, non-empty list.
    fn at(&self, permille: usize) -> u32 {
        let rank = (self.micros.len() * permille).div_ceil(1000);
        self.micros[rank.max(1) - 1]
    }
}

impl Percentiles {
    /// As JSON, in milliseconds.
    pub fn json(&self) -> Value {
        json!({
            "count": self.count,
            "min_ms": millis(self.min_us),
            "p50_ms": millis(self.p50_us),
            "p90_ms": millis(self.p90_us),
            "p99_ms": millis(self.p99_us),
            "p999_ms": millis(self.p999_us),
            "max_ms": millis(self.max_us),
        })
    }
}

impl std::fmt::Display for Percentiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "p50 {:.2} ms, p90 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms, max {:.2} ms",
            millis(self.p50_us),
            millis(self.p90_us),
            millis(self.p99_us),
            millis(self.p999_us),
            millis(self.max_us)
        )
    }
}

fn millis(micros: u32) -> f64 {
    f64::from(micros) / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let mut latencies = Latencies::default();
        for micros in (1..=1000).rev() {
            latencies.record(Duration::from_micros(micros));
        }
        let expected = Percentiles {
            count: 1000,
            min_us: 1,
            p50_us: 500,
            p90_us: 900,
            p99_us: 990,
            p999_us: 999,
            max_us: 1000,
        };
        assert_eq!(latencies.percentiles(), expected);
    }

    #[test]
    fn one_is_every_percentile_and_none_is_zero() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentiles(), Percentiles::default());
        latencies.record(Duration::from_millis(3));
        let Percentiles { count, min_us, p50_us, p999_us, max_us, .. } = latencies.percentiles();
        assert_eq!((count, min_us, p50_us, p999_us, max_us), (1, 3000, 3000, 3000, 3000));
    }
}
