//! Latencies in little space: a t-digest, made to be merged.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tdigest::TDigest;

/// Centroids a digest keeps: about 1 % of error in rank at the median, far less towards the ends.
const CENTROIDS: usize = 200;
/// Values taken in before they are merged: merging is what costs.
const PENDING_MAX: usize = 2000;

/// The distribution of many values, in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Digest {
    merged: TDigest,
    pending: Vec<f64>,
}

impl Default for Digest {
    fn default() -> Self {
        Self { merged: TDigest::new_with_size(CENTROIDS), pending: Vec::new() }
    }
}

impl Digest {
    /// Adds a duration.
    pub fn record(&mut self, duration: Duration) {
        self.pending.push(duration.as_secs_f64() * 1000.0);
        if self.pending.len() >= PENDING_MAX {
            self.settle();
        }
    }

    /// Adds all of another.
    pub fn merge(&mut self, mut other: Self) {
        self.settle();
        other.settle();
        let merged = std::mem::take(&mut self.merged);
        self.merged = TDigest::merge_digests(vec![merged, other.merged]);
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.merged.is_empty()
    }

    fn settle(&mut self) {
        if !self.pending.is_empty() {
            self.merged = self.merged.merge_unsorted(std::mem::take(&mut self.pending));
        }
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut whole = self.clone();
        whole.settle();
        whole.merged.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { merged: TDigest::deserialize(deserializer)?, pending: Vec::new() })
    }
}
