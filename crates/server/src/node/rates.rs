//! Rates and latencies over time, from counters sampled once per second.

use crate::metrics::{Snapshot, Status};
use carillon_core::model::Mono;
use carillon_core::shard::Latency;
use std::collections::VecDeque;

/// The samples of the last minute.
#[derive(Default)]
pub(crate) struct Rates(VecDeque<Sample>);

struct Sample {
    at: Mono,
    logins: u64,
    deliveries: u64,
    latency: Latency,
}

impl Rates {
    /// Adds a sample.
    pub(crate) fn sample(&mut self, at: Mono, figures: &Snapshot) {
        let core = &figures.core;
        let (logins, deliveries) = (core.logins, core.deliveries);
        self.0.push_back(Sample { at, logins, deliveries, latency: core.latency.clone() });
        while self.0.front().is_some_and(|oldest| at.since(oldest.at) > MINUTE_MS) {
            self.0.pop_front();
        }
    }

    /// Fills in the rates and latencies.
    pub(crate) fn fill(&self, status: &mut Status) {
        let Some(last) = self.0.back() else { return };
        let recent = self.0.iter().find(|sample| last.at.since(sample.at) <= RATE_MS).unwrap_or(last);
        let seconds = last.at.since(recent.at) as f64 / 1000.0;
        if seconds > 0.0 {
            status.logins_per_second = (last.logins - recent.logins) as f64 / seconds;
            status.deliveries_per_second = (last.deliveries - recent.deliveries) as f64 / seconds;
        }
        if let Some(first) = self.0.front() {
            let latency = last.latency.since(&first.latency);
            status.delivery_p50_ms = latency.quantile(0.5) as f64;
            status.delivery_p99_ms = latency.quantile(0.99) as f64;
        }
    }
}

const MINUTE_MS: u64 = 60_000;
/// Ten seconds, and a little for a tick that came late.
const RATE_MS: u64 = 10_500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_over_ten_seconds_and_latencies_over_a_minute() {
        let mut rates = Rates::default();
        let mut figures = Snapshot::default();
        for second in 0..=90u64 {
            // 2 logins a second at first, 5 in the last ten; early deliveries are slow.
            figures.core.logins += if second > 80 { 5 } else { 2 };
            figures.core.latency.record(if second <= 30 { 1000 } else { 1 });
            rates.sample(Mono(second * 1000), &figures);
        }
        let mut status = Status::default();
        rates.fill(&mut status);
        assert_eq!((status.logins_per_second, status.deliveries_per_second), (5.0, 0.0));
        assert_eq!((status.delivery_p50_ms, status.delivery_p99_ms), (1.0, 1.0));
        assert_eq!(rates.0.len(), 61);
    }
}
