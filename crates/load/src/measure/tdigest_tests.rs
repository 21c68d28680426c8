//! A digest against all the values, sorted.

use proptest::prelude::*;

use super::*;

const PARTS: [f64; 9] = [0.0, 0.01, 0.5, 0.8, 0.9, 0.99, 0.999, 0.9999, 1.0];

/// JSON text may change the last bit of a number.
const LAST_BIT: f64 = 1e-12;

/// How far from `part` the ranks are that `value` has among `sorted`.
fn rank_distance(sorted: &[f64], value: f64, part: f64) -> f64 {
    let count = sorted.len() as f64;
    let below = sorted.partition_point(|other| *other < value) as f64 / count;
    let not_above = sorted.partition_point(|other| *other <= value) as f64 / count;
    (below - part).max(part - not_above).max(0.0)
}

fn check(digest: &TDigest, values: &mut [f64]) {
    values.sort_unstable_by(f64::total_cmp);
    let count = values.len() as u64;
    assert_eq!(digest.count(), count);
    let told = digest.quantiles(PARTS).expect("there are values");
    assert!(told.is_sorted_by(|a, b| *a <= b * (1.0 + LAST_BIT)), "{told:?}");
    for (part, value) in PARTS.into_iter().zip(told) {
        let distance = rank_distance(values, value, part);
        let error = TDigest::rank_error(part, count);
        assert!(distance <= error, "{part} of {count}: {value} is off by {distance}, {error} is stated");
    }
    let ends = digest.ends().expect("there are values");
    for (told, value) in [(ends.0, values[0]), (ends.1, values[values.len() - 1])] {
        assert!((told - value).abs() <= value * LAST_BIT, "{told} is not {value}");
    }
    assert!(digest.whole.centroids.len() <= 510, "{}", digest.whole.centroids.len());
}

/// Values as latencies are: many small ones, a long tail, and lumps of equal ones.
fn latencies(max: usize) -> impl Strategy<Value = Vec<f64>> {
    let one = prop_oneof![
        4 => (0.0f64..8.0).prop_map(f64::exp),
        1 => (0.0f64..100.0).prop_map(|value| 1.0 / (1.0001 - value / 100.0)),
        1 => Just(3.0),
    ];
    prop::collection::vec(one, 1..max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn percentiles_are_within_the_stated_error(mut values in latencies(20_000)) {
        let mut digest = TDigest::default();
        values.iter().for_each(|value| digest.add(*value));
        digest.settle();
        check(&digest, &mut values);
    }

    #[test]
    fn shares_of_many_workers_merge_into_the_same(
        shares in prop::collection::vec(latencies(3_000), 3..20), through_json: bool
    ) {
        let mut whole = TDigest::default();
        for share in &shares {
            let mut digest = TDigest::default();
            share.iter().for_each(|value| digest.add(*value));
            if through_json {
                let text = serde_json::to_string(&digest).expect("plain data");
                digest = serde_json::from_str(&text).expect("what was written");
            }
            whole.merge(digest);
        }
        check(&whole, &mut shares.concat());
    }
}

#[test]
fn few_values_are_exact() {
    let mut digest = TDigest::default();
    (0..99).for_each(|_| digest.add(1.0));
    digest.add(1000.0);
    assert_eq!(digest.quantiles([0.5, 0.99, 1.0]), Some([1.0, 1.0, 1000.0]));
}

#[test]
fn a_million_ones_in_order_stay_within_the_error() {
    let mut digest = TDigest::default();
    let mut values: Vec<f64> = (0..1_000_000).map(f64::from).collect();
    values.iter().for_each(|value| digest.add(*value));
    digest.settle();
    check(&digest, &mut values);
}

#[test]
fn nothing_has_no_percentiles_and_adds_nothing() {
    let mut digest = TDigest::default();
    digest.merge(TDigest::default());
    digest.add(f64::NAN);
    assert!(digest.is_empty());
    assert_eq!(digest.quantiles([0.5]), None);
    digest.record(Duration::from_millis(2));
    digest.merge(TDigest::default());
    assert_eq!(digest.ends(), Some((2.0, 2.0)));
}
