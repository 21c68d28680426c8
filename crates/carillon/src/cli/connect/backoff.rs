//! How long to wait before the next attempt: as long as the server asks for, else twice as long each time and never the same for
//! all devices of a server that was restarted.

use carillon_wire::ns;
use carillon_wire::xml::Element;
use std::time::{Duration, Instant};

/// The wait after the first failure.
const FIRST: Duration = Duration::from_secs(1);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(60);
/// The longest wait that a server may ask for.
const ASKED_MAX: Duration = Duration::from_secs(3600);
/// A session that lasted so long was a good one: the next wait is short again.
const STEADY: Duration = Duration::from_secs(30);

/// Counts failures.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    since: Option<Instant>,
}

impl Backoff {
    /// The wait before the next attempt: between half of its length and all of it, and no shorter than the server asks for.
    pub(super) fn next(&mut self, asked: Option<Duration>) -> Duration {
        if self.since.take().is_some_and(|since| since.elapsed() >= STEADY) {
            self.failures = 0;
        }
        let longest = FIRST.saturating_mul(1 << self.failures.min(6)).min(LONGEST);
        self.failures += 1;
        let mut byte = [0];
        // Without randomness all wait the full time.
        let part = getrandom::fill(&mut byte).map_or(1.0, |()| f64::from(byte[0]) / 255.0);
        longest.mul_f64(0.5 + part / 2.0).max(asked.unwrap_or_default())
    }

    /// An attempt succeeded.
    pub(super) fn logged_in(&mut self) {
        self.since = Some(Instant::now());
    }
}

/// How long the server asks to wait, in the application-specific condition of an error (`docs/book/protocol.md`).
pub(super) fn retry_after(app: Option<&Element>) -> Option<Duration> {
    let seconds = app.filter(|app| app.is("retry-after", ns::RETRY))?.attr("seconds")?;
    Some(Duration::from_secs(seconds.parse().ok()?).min(ASKED_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_minute_and_begin_anew_after_a_good_session() {
        let mut backoff = Backoff::default();
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            let (pause, longest) = (backoff.next(None), Duration::from_secs(seconds));
            assert!(pause >= longest / 2 && pause <= longest, "{pause:?} is not within {longest:?}");
        }
        backoff.logged_in();
        assert!(backoff.next(None) >= LONGEST / 2, "a session that is lost at once changes nothing");
        backoff.since = Instant::now().checked_sub(STEADY);
        assert!(backoff.since.is_none() || backoff.next(None) <= FIRST);
    }

    #[test]
    fn a_server_may_ask_for_a_longer_wait_and_not_for_a_shorter_one() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.next(Some(Duration::from_secs(20))), Duration::from_secs(20));
        (0..8).for_each(|_| assert!(backoff.next(None) >= FIRST / 2));
        assert!(backoff.next(Some(Duration::from_secs(2))) >= LONGEST / 2);
    }

    #[test]
    fn what_a_server_asks_for_is_read() {
        let asked = |name, namespace, seconds| {
            retry_after(Some(&Element::new(name, namespace).with_attr("seconds", seconds)))
        };
        assert_eq!(asked("retry-after", ns::RETRY, "7"), Some(Duration::from_secs(7)));
        assert_eq!(asked("retry-after", ns::RETRY, "99999999999"), Some(ASKED_MAX));
        for (name, namespace, seconds) in [
            ("retry-after", ns::RETRY, "soon"),
            ("retry-after", ns::CLIENT, "7"),
            ("closed-node", ns::RETRY, "7"),
        ] {
            assert_eq!(asked(name, namespace, seconds), None);
        }
        assert_eq!(retry_after(None), None);
    }
}
