//! The figures of the last ten minutes: samples of two seconds each, in a ring of fixed size.
//!
//! The thread of the jobs takes the samples from what the shards publish anyway: no shard is asked or woken. The ring is
//! allocated once and has at most 32 KiB.

use crate::metrics::{Snapshot, resident_bytes};
use carillon_core::model::{Mono, UnixMs};
use carillon_core::shard::Latency;
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::time::Duration;

/// The figures of one interval. Rates and latencies are of this interval alone, so that a short peak is visible.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// The end of the interval.
    pub at: UnixMs,
    /// Connections open at its end, logged in or not.
    pub connections: u64,
    /// Sessions bound at its end.
    pub sessions: u64,
    /// Successful logins per second.
    pub logins_per_second: f64,
    /// Failed logins per second.
    pub login_failures_per_second: f64,
    /// Topic items and notifications given to connections, per second.
    pub deliveries_per_second: f64,
    /// Notifications acknowledged, per second.
    pub acknowledgements_per_second: f64,
    /// Errors sent to clients per second: stream errors, and errors of the light protocol.
    pub errors_per_second: f64,
    /// Processor time used by the process, in processors: 1.5 is one and a half of them.
    pub cpu: f64,
    /// Resident memory of the process at the end of the interval, in bytes.
    pub resident_bytes: u64,
    /// Median and 99th percentile of the time from acceptance to the connection, in milliseconds; none when nothing was
    /// delivered.
    pub delivery_ms: Option<(u32, u32)>,
}

/// The samples of the last ten minutes.
pub(crate) struct History {
    samples: VecDeque<Sample>,
    last: Totals,
}

/// Counters as they were at the last sample.
#[derive(Default)]
struct Totals {
    at: Mono,
    logins: u64,
    login_failures: u64,
    deliveries: u64,
    acknowledgements: u64,
    errors: u64,
    cpu: Duration,
    latency: Latency,
}

impl Default for History {
    fn default() -> History {
        History { samples: VecDeque::with_capacity(SAMPLES), last: Totals::default() }
    }
}

impl History {
    /// Adds a sample, if the last one is two seconds old.
    pub(crate) fn observe(&mut self, at: Mono, unix: UnixMs, connections: u64, figures: &Snapshot) {
        if at.since(self.last.at) + EARLY_MS >= INTERVAL_MS {
            self.take(at, unix, connections, figures, cpu_time());
        }
    }

    /// The samples after the one taken at `after`; all of them if `after` is none or names no sample that is kept.
    pub(crate) fn after(&self, after: Option<UnixMs>) -> Vec<Sample> {
        let seen = after.and_then(|after| self.samples.iter().rposition(|sample| sample.at == after));
        self.samples.range(seen.map_or(0, |seen| seen + 1)..).copied().collect()
    }

    fn take(&mut self, at: Mono, unix: UnixMs, connections: u64, figures: &Snapshot, cpu: Duration) {
        let core = &figures.core;
        let now = Totals {
            at,
            logins: core.logins,
            login_failures: core.login_failures.total(),
            deliveries: core.deliveries,
            acknowledgements: core.notifications_acknowledged,
            errors: core.stream_errors.total() + core.light_errors.total(),
            cpu,
            latency: core.latency.clone(),
        };
        let last = std::mem::replace(&mut self.last, now);
        let seconds = at.since(last.at) as f64 / 1000.0;
        let rate = |now: u64, last: u64| (now - last) as f64 / seconds;
        let latency = self.last.latency.since(&last.latency);
        let quantile = |q| u32::try_from(latency.quantile(q)).unwrap_or(u32::MAX);
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample {
            at: unix,
            connections,
            sessions: core.sessions,
            logins_per_second: rate(self.last.logins, last.logins),
            login_failures_per_second: rate(self.last.login_failures, last.login_failures),
            deliveries_per_second: rate(self.last.deliveries, last.deliveries),
            acknowledgements_per_second: rate(self.last.acknowledgements, last.acknowledgements),
            errors_per_second: rate(self.last.errors, last.errors),
            cpu: cpu.saturating_sub(last.cpu).as_secs_f64() / seconds,
            resident_bytes: resident_bytes(),
            delivery_ms: (latency.count() > 0).then(|| (quantile(0.5), quantile(0.99))),
        });
    }
}

/// Processor time used by the process.
fn cpu_time() -> Duration {
    // The conversion fails only for negative times.
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// Between two samples, in milliseconds.
pub const INTERVAL_MS: u64 = 2000;
/// Half a tick of the jobs, so that a tick that comes a little early counts.
const EARLY_MS: u64 = 500;
/// Ten minutes.
const SAMPLES: usize = 300;
const _: () = assert!(size_of::<Sample>() * SAMPLES <= 32 * 1024);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> (Mono, UnixMs) {
        (Mono(seconds * 1000), UnixMs(1_000_000 + seconds * 1000))
    }

    #[test]
    fn a_sample_is_of_its_own_interval() {
        let mut history = History::default();
        let mut figures = Snapshot::default();
        figures.core.sessions = 7;
        figures.core.logins = 10;
        figures.core.deliveries = 4;
        figures.core.latency.record(3);
        (0..6).for_each(|_| figures.core.stream_errors.count("not-authorized"));
        (0..2).for_each(|_| figures.core.light_errors.count("bad"));
        let (mono, unix) = at(2);
        history.take(mono, unix, 9, &figures, Duration::from_secs(3));
        figures.core.logins = 16;
        figures.core.notifications_acknowledged = 1;
        (0..2).for_each(|_| figures.core.login_failures.count("not-authorized"));
        let (mono, unix) = at(4);
        history.take(mono, unix, 8, &figures, Duration::from_secs(4));

        let [first, second] = history.after(None)[..] else { panic!("two samples") };
        assert_eq!((first.at, first.connections, first.sessions), (UnixMs(1_002_000), 9, 7));
        assert_eq!((first.logins_per_second, first.deliveries_per_second), (5.0, 2.0));
        assert_eq!((first.errors_per_second, first.cpu, first.delivery_ms), (4.0, 1.5, Some((3, 3))));
        assert_eq!((second.logins_per_second, second.login_failures_per_second), (3.0, 1.0));
        assert_eq!((second.deliveries_per_second, second.acknowledgements_per_second), (0.0, 0.5));
        assert_eq!((second.errors_per_second, second.cpu, second.delivery_ms), (0.0, 0.5, None));
        assert!(second.resident_bytes > 0);
    }

    #[test]
    fn ten_minutes_are_kept_in_what_was_allocated_at_first() {
        let mut history = History::default();
        let allocated = history.samples.capacity();
        // Ticks of a second: every second one is a sample.
        for second in 1..=1201 {
            let (mono, unix) = at(second);
            history.observe(mono, unix, second, &Snapshot::default());
        }
        let kept = history.after(None);
        assert_eq!((kept.len(), history.samples.capacity()), (300, allocated));
        assert_eq!((kept[0].connections, kept[299].connections), (602, 1200));
    }

    #[test]
    fn a_reader_goes_on_behind_the_sample_it_has() {
        let mut history = History::default();
        for second in [2, 4, 6] {
            let (mono, unix) = at(second);
            history.take(mono, unix, second, &Snapshot::default(), Duration::ZERO);
        }
        let connections = |after| history.after(after).iter().map(|s| s.connections).collect::<Vec<_>>();
        assert_eq!(connections(Some(at(2).1)), [4, 6]);
        assert!(connections(Some(at(6).1)).is_empty());
        // Of an earlier life of the node, or forgotten.
        assert_eq!(connections(Some(UnixMs(5))), [2, 4, 6]);
    }
}
