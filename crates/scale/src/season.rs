//! The demand at the same time on the last days.

use std::collections::VecDeque;
use std::time::Duration;

use super::observation::Observation;

/// A day.
const DAY: Duration = Duration::from_secs(86_400);
/// How much of a day one entry sums up.
const SLOT: Duration = Duration::from_secs(60);

/// The highest demand of each minute, as far back as it is asked for: 16 bytes a minute, 645 KB for 28 days.
#[derive(Clone, Debug, Default)]
pub(crate) struct Season {
    /// Minutes since the Unix epoch, ascending, and the highest demand in each.
    minutes: VecDeque<(u64, f64)>,
}

impl Season {
    /// Takes an observation that is newer than all others; what is older than so many days goes.
    pub(crate) fn add(&mut self, observation: &Observation, days: u32) {
        if days == 0 {
            return;
        }
        let minute = slot(observation.until);
        match self.minutes.back_mut() {
            Some((last, most)) if *last == minute => *most = most.max(observation.demand),
            _ => self.minutes.push_back((minute, observation.demand)),
        }
        let oldest = slot(observation.until.saturating_sub(DAY * (days + 1)));
        while self.minutes.front().is_some_and(|(minute, _)| *minute < oldest) {
            self.minutes.pop_front();
        }
    }

    /// The highest demand between `now` and `ahead` later, on each of so many days before; `None` if nothing is known of it.
    pub(crate) fn highest(&self, now: Duration, ahead: Duration, days: u32) -> Option<f64> {
        let of_day = |day: u32| {
            let from = slot(now.checked_sub(DAY * day)?);
            let until = from + slot(ahead).max(1);
            let start = self.minutes.partition_point(|(minute, _)| *minute < from);
            let within = self.minutes.range(start..).take_while(|(minute, _)| *minute <= until);
            within.map(|(_, most)| *most).reduce(f64::max)
        };
        (1..=days).filter_map(of_day).reduce(f64::max)
    }
}

fn slot(time: Duration) -> u64 {
    time.as_secs() / SLOT.as_secs()
}
