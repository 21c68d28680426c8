//! How long to wait before the next attempt: twice as long each time, and never the same for all devices of a server that
//! was restarted.

use std::time::{Duration, Instant};

/// The wait after the first failure.
const FIRST: Duration = Duration::from_secs(1);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(60);
/// A session that lasted so long was a good one: the next wait is short again.
const STEADY: Duration = Duration::from_secs(30);

/// Counts failures.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    since: Option<Instant>,
}

impl Backoff {
    /// The wait before the next attempt: between half of its length and all of it.
    pub(super) fn next(&mut self) -> Duration {
        if self.since.take().is_some_and(|since| since.elapsed() >= STEADY) {
            self.failures = 0;
        }
        let longest = FIRST.saturating_mul(1 << self.failures.min(6)).min(LONGEST);
        self.failures += 1;
        let mut byte = [0];
        // Without randomness all wait the full time.
        let part = getrandom::fill(&mut byte).map_or(1.0, |()| f64::from(byte[0]) / 255.0);
        longest.mul_f64(0.5 + part / 2.0)
    }

    /// An attempt succeeded.
    pub(super) fn logged_in(&mut self) {
        self.since = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_minute_and_begin_anew_after_a_good_session() {
        let mut backoff = Backoff::default();
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            let (pause, longest) = (backoff.next(), Duration::from_secs(seconds));
            assert!(pause >= longest / 2 && pause <= longest, "{pause:?} is not within {longest:?}");
        }
        backoff.logged_in();
        assert!(backoff.next() >= LONGEST / 2, "a session that is lost at once changes nothing");
        backoff.since = Instant::now().checked_sub(STEADY);
        assert!(backoff.since.is_none() || backoff.next() <= FIRST);
    }
}
