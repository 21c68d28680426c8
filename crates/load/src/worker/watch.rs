//! What players receive around an event during a phase: deliveries by slices of time, and how long each player waited in
//! silence.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::recorder::{Metric, Recorder};
use crate::control::SLICE;

/// The most slices before and after the event: an hour.
const SLICES_MAX: i32 = 36_000;

/// The observation of one thread's players in one phase.
#[derive(Debug)]
pub(super) struct Watch {
    phase: u32,
    /// When the event happens.
    event: Instant,
    numbers: Range<usize>,
    players: Vec<Silence>,
}

/// The silence of a player: the times in which something was due to it and nothing came.
#[derive(Clone, Copy, Debug, Default)]
struct Silence {
    last: Option<Instant>,
    /// The longest that ended before the event, and after it.
    before: Option<Duration>,
    after: Option<Duration>,
}

impl Watch {
    /// Begins when a phase begins.
    pub(super) fn new(phase: u32, event: Instant, numbers: Range<usize>) -> Self {
        let players = vec![Silence::default(); numbers.len()];
        Self { phase, event, numbers, players }
    }

    /// The phase that is observed.
    pub(super) fn phase(&self) -> u32 {
        self.phase
    }

    /// A player received something that was due then.
    pub(super) fn delivered(&mut self, number: usize, due: Instant, now: Instant, recorder: &Recorder) {
        recorder.delivered_in(self.slice(now));
        let silence = &mut self.players[number - self.numbers.start];
        // What comes behind something else ended no longer silence than that since the last arrival.
        let since = silence.last.map_or(due, |last| last.max(due));
        silence.last = Some(now);
        let longest = if now < self.event { &mut silence.before } else { &mut silence.after };
        *longest = Some(longest.unwrap_or_default().max(now.saturating_duration_since(since)));
    }

    /// A player lost its session.
    pub(super) fn disconnected(&self, now: Instant, recorder: &Recorder) {
        recorder.disconnected_in(self.slice(now));
    }

    /// Records the longest silence of each player, at the end of the phase.
    pub(super) fn finish(self, recorder: &Recorder) {
        for silence in self.players {
            for (metric, longest) in
                [(Metric::SilenceBefore, silence.before), (Metric::Silence, silence.after)]
            {
                if let Some(longest) = longest {
                    recorder.time(metric, longest);
                }
            }
        }
    }

    /// The slice of a time; slice 0 begins with the event.
    fn slice(&self, now: Instant) -> i32 {
        let slices = |time: Duration| i32::try_from(time.as_nanos() / SLICE.as_nanos()).unwrap_or(SLICES_MAX);
        match now.checked_duration_since(self.event) {
            Some(after) => slices(after).min(SLICES_MAX),
            None => -1 - slices(self.event - now).min(SLICES_MAX - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Progress, Slice};

    #[test]
    fn silence_is_the_time_in_which_something_was_due_and_nothing_came() {
        let (start, recorder) = (Instant::now(), Recorder::default());
        let at = |ms| start + Duration::from_millis(ms);
        let mut watch = Watch::new(1, at(1000), 5..7);
        watch.delivered(5, at(100), at(110), &recorder);
        // Nothing was due from 110 to 900.
        watch.delivered(5, at(900), at(930), &recorder);
        watch.disconnected(at(1050), &recorder);
        // Due at 950 and 1300, both received late and at once: silence from 950 to 1400.
        watch.delivered(5, at(950), at(1400), &recorder);
        watch.delivered(5, at(1300), at(1401), &recorder);
        watch.finish(&recorder);
        let mut progress = Progress::default();
        recorder.take_into(&mut progress);
        let only = |metric: &str| progress.metrics[metric].quantiles([1.0]).map(|[max]| max.round());
        assert_eq!((only("silence_before"), only("silence")), (Some(30.0), Some(450.0)));
        let slice = |deliveries, disconnects| Slice { deliveries, disconnects };
        let expected = [(-9, slice(1, 0)), (-1, slice(1, 0)), (0, slice(0, 1)), (4, slice(2, 0))];
        assert_eq!(progress.slices, expected.into());
    }
}
