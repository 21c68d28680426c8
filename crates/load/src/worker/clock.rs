//! Conversion between this process's clock and the orchestrator's.

use std::time::{Duration, Instant, SystemTime};

/// The same time on two clocks: this process's monotonic clock and the orchestrator's Unix time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    instant: Instant,
    unix_ns: u64,
}

impl Clock {
    /// The clock of an orchestrator whose Unix time is ahead of this machine's by the offset.
    pub(super) fn new(offset_ns: i64) -> Self {
        let instant = Instant::now();
        let here = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let here = u64::try_from(here.as_nanos()).unwrap_or(u64::MAX);
        Self { instant, unix_ns: here.saturating_add_signed(offset_ns) }
    }

    /// The instant for a Unix time of the orchestrator.
    pub(super) fn instant(&self, unix_ns: u64) -> Instant {
        let moment = if unix_ns >= self.unix_ns {
            self.instant.checked_add(Duration::from_nanos(unix_ns - self.unix_ns))
        } else {
            self.instant.checked_sub(Duration::from_nanos(self.unix_ns - unix_ns))
        };
        moment.unwrap_or(self.instant)
    }

    /// The orchestrator's Unix time for an instant.
    pub(super) fn unix_ns(&self, instant: Instant) -> u64 {
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        if instant >= self.instant {
            self.unix_ns.saturating_add(nanos(instant - self.instant))
        } else {
            self.unix_ns.saturating_sub(nanos(self.instant - instant))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_go_there_and_back() {
        let clock = Clock::new(5_000_000_000);
        for shift in [Duration::ZERO, Duration::from_micros(1234)] {
            for moment in [clock.instant + shift, clock.instant.checked_sub(shift).unwrap_or(clock.instant)] {
                assert_eq!(clock.instant(clock.unix_ns(moment)), moment);
            }
        }
        let here = Clock::new(0);
        let ahead = clock.unix_ns(here.instant) - here.unix_ns(here.instant);
        assert!((4_000_000_000..6_000_000_000).contains(&ahead));
    }
}
