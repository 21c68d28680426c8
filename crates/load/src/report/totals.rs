//! Counts, errors and latencies added up.

use std::collections::BTreeMap;

use super::histogram::{Bucket, buckets};
use super::percentiles::{Percentiles, thousandths};
use crate::control::Progress;
use crate::measure::TDigest;

/// Kinds of errors that are counted separately; further kinds count as `others`.
const KINDS_MAX: usize = 100;

/// Counts, errors and latencies.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    pub(super) counts: BTreeMap<String, u64>,
    pub(super) errors: BTreeMap<String, u64>,
    pub(super) metrics: BTreeMap<String, TDigest>,
    /// By metric and item, the largest value of any worker.
    pub(super) largest: BTreeMap<String, BTreeMap<u32, f64>>,
}

impl Totals {
    /// Adds the progress of a worker.
    pub(super) fn add(&mut self, progress: &Progress) {
        for (name, count) in &progress.counts {
            *self.counts.entry(name.clone()).or_default() += count;
        }
        for (kind, count) in &progress.errors {
            let known = self.errors.contains_key(kind) || self.errors.len() < KINDS_MAX;
            let kind = if known { kind } else { "others" };
            *self.errors.entry(kind.to_owned()).or_default() += count;
        }
        for (name, digest) in &progress.metrics {
            self.metrics.entry(name.clone()).or_default().merge(digest.clone());
        }
        for (name, items) in &progress.largest {
            let largest = self.largest.entry(name.clone()).or_default();
            for (item, value) in items {
                let so_far = largest.entry(*item).or_insert(*value);
                *so_far = so_far.max(*value);
            }
        }
    }

    /// Adds other totals.
    pub(super) fn join(&mut self, other: &Self) {
        for (name, count) in &other.counts {
            *self.counts.entry(name.clone()).or_default() += count;
        }
        for (kind, count) in &other.errors {
            *self.errors.entry(kind.clone()).or_default() += count;
        }
        // An item belongs to one phase: its largest latency is one value of the metric.
        for (name, digest) in other.digests() {
            self.metrics.entry(name).or_default().merge(digest);
        }
    }

    fn digests(&self) -> BTreeMap<String, TDigest> {
        let mut digests = self.metrics.clone();
        for (name, items) in &self.largest {
            let digest = digests.entry(name.clone()).or_default();
            items.values().for_each(|value| digest.add(*value));
        }
        digests
    }

    /// Percentiles by metric.
    pub(super) fn percentiles(&self) -> BTreeMap<String, Percentiles> {
        let all = self.digests();
        all.into_iter().filter_map(|(name, digest)| Some((name, Percentiles::of(&digest)?))).collect()
    }

    /// The histogram of each metric.
    pub(super) fn histograms(&self) -> BTreeMap<String, Vec<Bucket>> {
        self.digests().into_iter().map(|(name, digest)| (name, buckets(&digest))).collect()
    }

    /// Events per second, by name.
    pub(super) fn rates(&self, seconds: f64) -> BTreeMap<String, f64> {
        let rate = |count: &u64| thousandths(*count as f64 / seconds.max(0.001));
        self.counts.iter().map(|(name, count)| (name.clone(), rate(count))).collect()
    }
}
