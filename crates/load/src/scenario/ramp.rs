//! How fast clients are started: so many a second, so many logging in at once.

use std::time::{Duration, Instant};

/// The pace of logins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    /// Logins started a second; `None` for as fast as they complete.
    pub rate: Option<f64>,
    /// The most clients that are logging in at once.
    pub in_flight_max: usize,
}

/// A [`Ramp`] under way.
#[derive(Debug)]
pub(super) struct Pacer {
    ramp: Ramp,
    since: Instant,
    started: usize,
    total: usize,
}

impl Default for Ramp {
    fn default() -> Self {
        Self { rate: None, in_flight_max: 128 }
    }
}

impl Pacer {
    pub(super) fn new(ramp: Ramp, total: usize, now: Instant) -> Self {
        Self { ramp, since: now, started: 0, total }
    }

    /// How many may start now, given how many are logging in; they count as started.
    pub(super) fn take(&mut self, in_flight: usize, now: Instant) -> usize {
        let due = match self.ramp.rate {
            None => self.total,
            // The first is due at once.
            Some(rate) => (rate * now.duration_since(self.since).as_secs_f64()) as usize + 1,
        };
        let room = self.ramp.in_flight_max.saturating_sub(in_flight);
        let count = due.min(self.total).saturating_sub(self.started).min(room);
        self.started += count;
        count
    }

    /// When the next is due by rate; `None` if rate is not what holds it back.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let rate = self.ramp.rate.filter(|_| self.started < self.total)?;
        Some(self.since + Duration::from_secs_f64(self.started as f64 / rate))
    }

    pub(super) fn started(&self) -> usize {
        self.started
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_rate_only_those_in_flight_hold_back() {
        let now = Instant::now();
        let mut pacer = Pacer::new(Ramp { rate: None, in_flight_max: 4 }, 10, now);
        assert_eq!(pacer.take(0, now), 4);
        assert_eq!(pacer.take(4, now), 0);
        assert_eq!(pacer.take(1, now), 3);
        assert_eq!(pacer.take(0, now), 3);
        assert_eq!(pacer.started(), pacer.total);
        assert_eq!(pacer.take(0, now), 0);
        assert_eq!(pacer.next_due(), None);
    }

    #[test]
    fn a_rate_spreads_starts_over_time() {
        let start = Instant::now();
        let mut pacer = Pacer::new(Ramp { rate: Some(100.0), in_flight_max: 1000 }, 50, start);
        assert_eq!(pacer.take(0, start), 1);
        assert_eq!(pacer.take(1, start), 0);
        assert_eq!(pacer.next_due(), Some(start + Duration::from_millis(10)));
        assert_eq!(pacer.take(1, start + Duration::from_millis(205)), 20);
        assert_eq!(pacer.take(0, start + Duration::from_secs(60)), 29);
        assert_eq!(pacer.started(), pacer.total);
    }
}
