//! What becomes of events after an attempt to send them: pure, so that the schedule can be tested without waiting.

use super::batch::{Batch, Prepared};
use carillon_core::model::{DeadLetter, UnixMs, WebhookFailure, WebhookProgress};
use std::time::Duration;

/// What a receiver said to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// `2xx`: it has the events.
    Taken,
    /// It does not want what was sent, for this reason.
    Refused(Box<str>),
    /// `410`: it wants nothing any more.
    Gone(Box<str>),
    /// It cannot take anything now, for this reason, until this long from now if it says so.
    Down(Box<str>, Option<Duration>),
}

impl Outcome {
    /// What a response of this status means; `said` describes it.
    pub(super) fn of(status: u16, said: Box<str>, retry_after: Option<Duration>) -> Outcome {
        match status {
            200..=299 => Outcome::Taken,
            410 => Outcome::Gone(said),
            408 | 425 | 429 => Outcome::Down(said, retry_after),
            400..=499 => Outcome::Refused(said),
            _ => Outcome::Down(said, retry_after),
        }
    }

    /// Why the events were not taken.
    pub(crate) fn error(&self) -> Option<&str> {
        match self {
            Outcome::Taken => None,
            Outcome::Refused(error) | Outcome::Gone(error) | Outcome::Down(error, _) => Some(error),
        }
    }
}

/// How long is waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Patience {
    /// After the first failure at most, in milliseconds; twice as long after each further one.
    pub(super) retry_first_ms: u64,
    /// Until an event that could not be sent is a dead letter, in milliseconds since it happened.
    pub(super) give_up_after_ms: u64,
}

/// Where a webhook is after an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settled {
    pub(super) progress: WebhookProgress,
    pub(super) is_gone: bool,
    pub(super) letters: Vec<DeadLetter>,
}

/// Where a webhook is after `batch` was sent from where it was. `random` gives a number from 0 to the one that it is given.
pub(super) fn settle(
    before: &WebhookProgress,
    batch: &Batch,
    outcome: &Outcome,
    now: UnixMs,
    patience: Patience,
    random: impl FnOnce(u64) -> u64,
) -> Settled {
    let Some(error) = outcome.error() else {
        let last_failure = before.last_failure.clone();
        let progress = WebhookProgress { cursor: batch.through, last_failure, ..WebhookProgress::default() };
        return Settled { progress, is_gone: false, letters: Vec::new() };
    };
    let failure = WebhookFailure { at: now, error: error.into() };
    let mut progress = WebhookProgress {
        failures: before.failures.saturating_add(1),
        last_failure: Some(failure.clone()),
        ..before.clone()
    };
    let back_off = |failures: u32| random(back_off_ms(patience.retry_first_ms, failures));
    let too_old = |ended: UnixMs| now >= ended.plus(patience.give_up_after_ms);
    let mut dead = batch.events.iter().take_while(|event| too_old(event.ended)).count();
    let mut is_refused_for_good = false;
    let wait_ms = match outcome {
        Outcome::Taken | Outcome::Gone(_) => {
            dead = 0;
            0
        }
        Outcome::Refused(_) => {
            // One alone was refused: it is its fault, not that of others beside it. So is a gap that is told alone.
            let is_one = batch.events.len() <= 1;
            let refusals = if is_one { before.refusals.saturating_add(1) } else { 0 };
            (progress.is_alone, progress.refusals) = (true, refusals);
            is_refused_for_good = refusals >= REFUSALS_MAX;
            if is_refused_for_good {
                dead = batch.events.len();
            }
            if is_refused_for_good || dead > 0 { 0 } else { back_off(refusals.max(1)) }
        }
        Outcome::Down(_, Some(wait)) if !wait.is_zero() => (*wait).min(RETRY_AFTER_MAX).as_millis() as u64,
        // Who says that it can be at once is not believed each time.
        Outcome::Down(..) => back_off(progress.failures),
    };
    progress.next_attempt = (wait_ms > 0).then(|| now.plus(wait_ms));
    let letter = |event: &Prepared| DeadLetter {
        event: event.number,
        body: event.body.clone(),
        failure: failure.clone(),
    };
    let letters: Vec<_> = batch.events.iter().take(dead).map(letter).collect();
    if is_refused_for_good || dead > 0 {
        let is_all = dead == batch.events.len();
        let last = letters.last().map_or(batch.through, |letter| letter.event);
        progress.cursor = if is_all { batch.through } else { last };
        progress.refusals = 0;
    }
    Settled { progress, is_gone: matches!(outcome, Outcome::Gone(_)), letters }
}

/// How long is waited at most after so many failures in a row.
fn back_off_ms(first: u64, failures: u32) -> u64 {
    let doubled = 1u64.checked_shl(failures.saturating_sub(1)).unwrap_or(u64::MAX);
    first.saturating_mul(doubled).min(BACK_OFF_MAX_MS)
}

const BACK_OFF_MAX_MS: u64 = 5 * 60 * 1000;
/// The longest `Retry-After` that is honoured.
pub(super) const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);
/// How often an event is refused alone before it is a dead letter.
const REFUSALS_MAX: u32 = 5;

#[cfg(test)]
mod tests {
    use super::super::batch::Gap;
    use super::*;

    const NOW: UnixMs = UnixMs(1_795_167_000_000);
    const HOUR: u64 = 3_600_000;
    const PATIENCE: Patience = Patience { retry_first_ms: 1000, give_up_after_ms: HOUR };

    /// Events of these numbers, which happened a second ago, and what was examined with them.
    fn batch(numbers: &[u64]) -> Batch {
        let ended = UnixMs(NOW.0 - 1000);
        let event =
            |number: &u64| Prepared { number: *number, of: None, ended, body: format!("{number}").into() };
        Batch { events: numbers.iter().map(event).collect(), through: 99, gap: None }
    }

    fn at(cursor: u64) -> WebhookProgress {
        WebhookProgress { cursor, ..WebhookProgress::default() }
    }

    /// With the longest wait that there can be.
    fn longest(before: &WebhookProgress, batch: &Batch, outcome: &Outcome) -> Settled {
        settle(before, batch, outcome, NOW, PATIENCE, |most| most)
    }

    fn waits(settled: &Settled) -> u64 {
        settled.progress.next_attempt.map_or(0, |at| at.0 - NOW.0)
    }

    fn refused() -> Outcome {
        Outcome::Refused("400".into())
    }

    #[test]
    fn statuses_mean_what_http_says() {
        let of = |status| Outcome::of(status, "x".into(), None);
        for status in [200, 201, 204, 299] {
            assert_eq!(of(status), Outcome::Taken, "{status}");
        }
        for status in [400, 401, 404, 413, 422, 499] {
            assert_eq!(of(status), Outcome::Refused("x".into()), "{status}");
        }
        // Redirects are not followed.
        for status in [301, 307, 308, 408, 425, 429, 500, 502, 503, 504, 599, 999] {
            assert_eq!(of(status), Outcome::Down("x".into(), None), "{status}");
        }
        assert_eq!(of(410), Outcome::Gone("x".into()));
    }

    #[test]
    fn waits_double_up_to_five_minutes() {
        let waited: Vec<u64> = (1..=11).map(|failures| back_off_ms(1000, failures) / 1000).collect();
        assert_eq!(waited, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(back_off_ms(1000, u32::MAX), BACK_OFF_MAX_MS);
        let mut progress = at(3);
        for expected in [1000, 2000, 4000] {
            let settled = longest(&progress, &batch(&[4, 5]), &Outcome::Down("503".into(), None));
            assert_eq!((waits(&settled), settled.progress.cursor), (expected, 3));
            assert!(settled.letters.is_empty() && !settled.progress.is_alone);
            progress = settled.progress;
        }
        assert_eq!(progress.last_failure, Some(WebhookFailure { at: NOW, error: "503".into() }));
        let settled = longest(&progress, &batch(&[4, 5]), &Outcome::Taken);
        assert_eq!(settled.progress, WebhookProgress { last_failure: progress.last_failure, ..at(99) });
        // The jitter is full: no wait at all is possible.
        let settled = settle(&at(3), &batch(&[4]), &Outcome::Down("503".into(), None), NOW, PATIENCE, |_| 0);
        assert_eq!(settled.progress.next_attempt, None);
    }

    #[test]
    fn the_receiver_may_say_when_up_to_an_hour() {
        for (seconds, expected) in [(0, 1000), (7, 7000), (3600, HOUR), (86_400, HOUR)] {
            let outcome = Outcome::Down("429".into(), Some(Duration::from_secs(seconds)));
            assert_eq!(waits(&longest(&at(3), &batch(&[4]), &outcome)), expected, "{seconds}");
        }
    }

    #[test]
    fn several_that_are_refused_go_one_by_one_until_one_is_taken() {
        let settled = longest(&at(3), &batch(&[4, 5]), &refused());
        assert!(settled.progress.is_alone && settled.letters.is_empty());
        assert_eq!((settled.progress.cursor, settled.progress.refusals), (3, 0));
        assert_eq!(waits(&settled), 1000);
        let alone = Batch { through: 4, ..batch(&[4]) };
        let settled = longest(&settled.progress, &alone, &Outcome::Taken);
        assert_eq!(settled.progress.cursor, 4);
        assert!(!settled.progress.is_alone && settled.progress.failures == 0);
    }

    #[test]
    fn one_that_is_refused_five_times_is_a_dead_letter() {
        let alone = Batch { through: 4, ..batch(&[4]) };
        let mut progress = WebhookProgress { is_alone: true, failures: 1, ..at(3) };
        for expected in [1000, 2000, 4000, 8000] {
            let settled = longest(&progress, &alone, &refused());
            assert_eq!((waits(&settled), settled.progress.cursor), (expected, 3));
            assert!(settled.letters.is_empty());
            progress = settled.progress;
        }
        let settled = longest(&progress, &alone, &refused());
        let failure = WebhookFailure { at: NOW, error: "400".into() };
        assert_eq!(settled.letters, [DeadLetter { event: 4, body: "4".into(), failure }]);
        // The next one goes at once, and alone, too.
        assert_eq!((settled.progress.cursor, waits(&settled)), (4, 0));
        assert!(settled.progress.is_alone && settled.progress.refusals == 0);
        assert_eq!(settled.progress.failures, 6);
        // What interrupts the refusals does not end their count.
        let down = longest(&progress, &alone, &Outcome::Down("502".into(), None));
        assert_eq!(down.progress.refusals, 4);
    }

    /// A receiver that refuses to be told of a gap must not be told of it for ever.
    #[test]
    fn a_gap_that_is_refused_five_times_alone_is_passed() {
        let gap = Batch { gap: Some(Gap { after: 3, next: 100 }), ..batch(&[]) };
        let mut progress = at(3);
        for _ in 0..4 {
            let settled = longest(&progress, &gap, &refused());
            assert_eq!(settled.progress.cursor, 3);
            progress = settled.progress;
        }
        let settled = longest(&progress, &gap, &refused());
        assert_eq!((settled.progress.cursor, settled.letters.len(), waits(&settled)), (99, 0, 0));
        // A receiver that is down is told of it when it is back.
        let down = longest(&progress, &gap, &Outcome::Down("503".into(), None));
        assert_eq!(down.progress.cursor, 3);
    }

    #[test]
    fn what_is_too_old_is_given_up_when_it_fails() {
        let mut mixed = batch(&[4, 5, 6]);
        mixed.events[0].ended = UnixMs(NOW.0 - HOUR);
        mixed.events[2].ended = UnixMs(NOW.0 - HOUR);
        let down = Outcome::Down("refused".into(), None);
        let settled = longest(&at(3), &mixed, &down);
        assert_eq!(settled.letters.iter().map(|letter| letter.event).collect::<Vec<_>>(), [4]);
        assert_eq!((settled.progress.cursor, waits(&settled)), (4, 1000), "nothing overtakes what is left");
        mixed.events[1].ended = UnixMs(0);
        let settled = longest(&at(3), &mixed, &down);
        assert_eq!((settled.letters.len(), settled.progress.cursor), (3, 99));
        let settled = longest(&at(3), &mixed, &Outcome::Taken);
        assert!(settled.letters.is_empty(), "old as it is, it was taken");
    }

    #[test]
    fn a_receiver_that_is_gone_is_sent_nothing_and_nothing_is_lost() {
        let settled = longest(&at(3), &batch(&[4]), &Outcome::Gone("410".into()));
        assert!(settled.is_gone && settled.letters.is_empty());
        assert_eq!((settled.progress.cursor, settled.progress.failures), (3, 1));
    }
}
