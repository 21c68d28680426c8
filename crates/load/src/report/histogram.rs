//! How many latencies lie in which range.

use serde::{Deserialize, Serialize};

use super::svg::{Anchor, Svg};
use super::{chart::compact, percentiles::thousandths};
use crate::measure::TDigest;

/// Ranges per power of ten.
const PER_DECADE: i32 = 8;
/// Ranges of one histogram; values below the first bound or above the last are counted in these.
const DECADES: std::ops::Range<i32> = -2..6;
const HEIGHT: f64 = 210.0;
const LEFT: f64 = 54.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 176.0;

/// A range of latencies, and how many lie in it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bucket {
    /// The lower end, in milliseconds; not in the range itself.
    pub from_ms: f64,
    /// The upper end, in milliseconds.
    pub to_ms: f64,
    /// Values in the range, as far as the digest knows: to the width of a centroid.
    pub count: u64,
}

/// The values of a digest by ranges that each are a third wider than the one before. Empty ranges are there between
/// others, but not at the ends.
pub(super) fn buckets(digest: &TDigest) -> Vec<Bucket> {
    let bounds = (DECADES.start * PER_DECADE..=DECADES.end * PER_DECADE)
        .map(|at| thousandths(10_f64.powf(f64::from(at) / f64::from(PER_DECADE))));
    let mut all: Vec<Bucket> = std::iter::once(0.0)
        .chain(bounds.clone())
        .zip(bounds)
        .map(|(from_ms, to_ms)| Bucket { from_ms, to_ms, count: 0 })
        .collect();
    for (value, weight) in digest.centroids() {
        let at = all.partition_point(|bucket| bucket.to_ms < value).min(all.len() - 1);
        all[at].count += weight;
    }
    let first = all.iter().position(|bucket| bucket.count > 0).unwrap_or(all.len());
    let last = all.iter().rposition(|bucket| bucket.count > 0).map_or(first, |last| last + 1);
    all[first..last].to_vec()
}

/// The picture: a bar per range, as high as its part of all values.
pub(super) fn svg(name: &str, buckets: &[Bucket], wide: f64) -> String {
    let mut svg = Svg::new(wide, HEIGHT, &format!("Histogram of {name} in milliseconds"));
    let total: u64 = buckets.iter().map(|bucket| bucket.count).sum();
    let highest = buckets.iter().map(|bucket| bucket.count).max().unwrap_or(1).max(1);
    let percent = |count: u64| 100.0 * count as f64 / total.max(1) as f64;
    let width = (wide - LEFT - RIGHT) / buckets.len().max(1) as f64;
    for part in [0.0, 0.5, 1.0] {
        let y = BOTTOM - part * (BOTTOM - TOP);
        svg.line("grid", (LEFT, y), (wide - RIGHT, y));
        let words = format!("{} %", compact(part * percent(highest)));
        svg.text("tick", (LEFT - 6.0, y + 3.5), Anchor::End, &words);
    }
    let mut up_to = 0;
    // Labels of bounds must not run into each other.
    let every = (46.0 / width).ceil().max(1.0) as usize;
    for (at, bucket) in buckets.iter().enumerate() {
        let x = LEFT + at as f64 * width;
        let height = bucket.count as f64 / highest as f64 * (BOTTOM - TOP);
        // What is there must be seen, however little it is.
        let height = if bucket.count > 0 { height.max(1.5) } else { 0.0 };
        svg.rect("fill s1", (x + 0.5, BOTTOM - height), (width - 1.0).max(1.0), height, 1.0);
        up_to += bucket.count;
        let words = format!(
            "{} to {} ms: {} ({} %); {} % are not above",
            compact(bucket.from_ms),
            compact(bucket.to_ms),
            bucket.count,
            compact(percent(bucket.count)),
            compact(percent(up_to))
        );
        svg.hover((x, TOP), width, BOTTOM - TOP, &words);
        if at % every == 0 {
            svg.text("tick", (x, BOTTOM + 16.0), Anchor::Middle, &compact(bucket.from_ms));
        }
    }
    svg.line("axis", (LEFT, BOTTOM), (wide - RIGHT, BOTTOM));
    svg.text("label", (f64::midpoint(LEFT, wide - RIGHT), BOTTOM + 30.0), Anchor::Middle, "milliseconds");
    svg.finish(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_one_range() {
        let mut digest = TDigest::default();
        [0.0, 0.001, 1.0, 1.0, 5.0, 1e9].into_iter().for_each(|value| digest.add(value));
        let all = buckets(&digest);
        assert_eq!(all.iter().map(|bucket| bucket.count).sum::<u64>(), 6);
        let one = all.iter().find(|bucket| bucket.to_ms == 1.0).expect("a bound");
        assert_eq!(one.count, 2, "a value that is a bound belongs below it");
        assert!(all.windows(2).all(|pair| pair[0].to_ms == pair[1].from_ms));
        assert!(
            all.first().is_some_and(|first| first.count == 2) && all.last().is_some_and(|l| l.count == 1)
        );
        assert!(buckets(&TDigest::default()).is_empty());
    }
}
