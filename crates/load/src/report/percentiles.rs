//! What is told of a distribution.

use serde::{Deserialize, Serialize};

use crate::measure::TDigest;

/// Percentiles of latencies, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Percentiles {
    /// How many values there were.
    pub count: u64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The median.
    pub percentile50: f64,
    /// The 80th percentile.
    pub percentile80: f64,
    /// The 90th percentile.
    pub percentile90: f64,
    /// The 99th percentile.
    pub percentile99: f64,
    /// 99.9 % were not larger.
    #[serde(rename = "percentile99point9")]
    pub percentile99_9: f64,
    /// 99.99 % were not larger.
    #[serde(rename = "percentile99point99")]
    pub percentile99_99: f64,
}

impl Percentiles {
    /// Of all that was added to a digest; nothing if nothing was.
    pub fn of(digest: &TDigest) -> Option<Self> {
        let parts = [0.0, 0.5, 0.8, 0.9, 0.99, 0.999, 0.9999, 1.0];
        let [min, p50, p80, p90, p99, p99_9, p99_99, max] = digest.quantiles(parts)?.map(thousandths);
        Some(Self {
            count: digest.count(),
            min,
            max,
            percentile50: p50,
            percentile80: p80,
            percentile90: p90,
            percentile99: p99,
            percentile99_9: p99_9,
            percentile99_99: p99_99,
        })
    }
}

/// To a thousandth: microseconds of milliseconds.
pub(super) fn thousandths(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
