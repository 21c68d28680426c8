//! What the answer of a push service means, and what becomes of the push then: pure, so that the schedule can be tested without waiting.

use carillon_core::model::{Push, PushChannel, PushFailure, PushOutcome, UnixMs};
use std::time::Duration;

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// It was taken.
    Taken,
    /// It will never be taken, for this reason.
    Refused(Box<str>),
    /// It was not taken, for this reason; tried again no sooner than after this time, if that was said.
    Failed(Box<str>, Option<Duration>),
    /// The app is not there any more.
    Gone,
}

impl Came {
    /// What a response of this status means; `said` describes it.
    pub(super) fn of(
        channel: &PushChannel,
        status: u16,
        said: Box<str>,
        retry_after: Option<Duration>,
    ) -> Came {
        match (status, channel) {
            (200..=299, _) => Came::Taken,
            // RFC 8030 §7.3: a subscription that has ended is not found. Of any other URL that may be a mistake of its owner's.
            (410, _) | (404, PushChannel::WebPush(_)) => Came::Gone,
            (413, _) => Came::Refused(said),
            _ => Came::Failed(said, retry_after),
        }
    }

    /// Whether a push service has answered that works: what it says is about this push.
    pub(super) fn is_answer(status: Option<u16>) -> bool {
        status.is_some_and(|status| status < 500)
    }

    /// What becomes of a push. `random` gives a number from 0 to the one that it is given.
    pub(super) fn outcome(self, push: &Push, now: UnixMs, random: impl FnOnce(u64) -> u64) -> PushOutcome {
        let failures = push.registration.health.failures.saturating_add(1);
        let failure = |error| PushFailure { at: now, error };
        match self {
            Came::Taken => PushOutcome::Taken { at: now },
            Came::Gone => PushOutcome::Gone,
            Came::Refused(error) => PushOutcome::Refused { failures, failure: failure(error) },
            Came::Failed(error, retry_after) => {
                let longest = RETRY_FIRST_MS << (failures - 1).min(12);
                let longest = longest.min(BACK_OFF_MAX_MS);
                let wait_ms = match retry_after.filter(|wait| !wait.is_zero()) {
                    Some(wait) => wait.min(RETRY_AFTER_MAX).as_millis() as u64,
                    None => longest / 2 + random(longest / 2),
                };
                PushOutcome::Failed { next: now.plus(wait_ms), failures, failure: failure(error) }
            }
        }
    }
}

/// How long is waited at most after the first failure, in milliseconds; twice as long after each further one.
const RETRY_FIRST_MS: u64 = 2000;
const BACK_OFF_MAX_MS: u64 = 3_600_000;
/// The longest `Retry-After` that is honoured.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(86_400);

#[cfg(test)]
mod tests {
    use super::super::message::tests::{push, said};
    use super::*;
    use carillon_core::model::{PushHealth, PushRegistration, PushSecret};

    const NOW: UnixMs = UnixMs(1_795_167_000_000);

    #[test]
    fn statuses_mean_what_the_channel_says() {
        let web = push(1, "https://a.example/", said("hi")).registration.channel.clone();
        let hook = PushChannel::Webhook { url: "https://a.example/".into(), secret: PushSecret([1].into()) };
        let of = |channel, status| Came::of(channel, status, "x".into(), None);
        for status in [200, 201, 202, 204] {
            assert_eq!((of(&web, status), of(&hook, status)), (Came::Taken, Came::Taken), "{status}");
        }
        assert_eq!((of(&web, 404), of(&web, 410), of(&hook, 410)), (Came::Gone, Came::Gone, Came::Gone));
        assert_eq!(of(&hook, 404), Came::Failed("x".into(), None));
        assert_eq!(of(&web, 413), Came::Refused("x".into()));
        for status in [301, 400, 401, 403, 429, 500, 503] {
            assert_eq!(of(&web, status), Came::Failed("x".into(), None), "{status}");
        }
        assert!(Came::is_answer(Some(429)) && !Came::is_answer(Some(503)) && !Came::is_answer(None));
    }

    #[test]
    fn who_fails_is_tried_less_and_less_often() {
        let mut push = push(1, "https://a.example/", said("hi"));
        let next = |push: &Push, retry_after| {
            let came = Came::Failed("x".into(), retry_after);
            let PushOutcome::Failed { next, failures, .. } = came.outcome(push, NOW, |most| most) else {
                panic!("it is tried again")
            };
            (next.0 - NOW.0, failures)
        };
        assert_eq!(next(&push, None), (2000, 1));
        assert_eq!(next(&push, Some(Duration::from_secs(7))), (7000, 1));
        assert_eq!(next(&push, Some(Duration::ZERO)), (2000, 1), "it is not believed each time");
        assert_eq!(next(&push, Some(Duration::from_secs(1 << 30))), (86_400_000, 1));
        let health = PushHealth { failures: 4, ..PushHealth::default() };
        push.registration = PushRegistration { health, ..(*push.registration).clone() }.into();
        assert_eq!(next(&push, None), (32_000, 5));
        let health = PushHealth { failures: u32::MAX, ..PushHealth::default() };
        push.registration = PushRegistration { health, ..(*push.registration).clone() }.into();
        assert_eq!(next(&push, None), (3_600_000, u32::MAX));
    }
}
