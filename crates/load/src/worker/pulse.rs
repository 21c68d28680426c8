//! Signs of life: the light protocol's server closes connections that say nothing for too long.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::crowd::Roster;
use crate::light;
use crate::swarm::Network;

/// Each player pings once in this time.
const INTERVAL: Duration = Duration::from_secs(20);

/// The pings of one thread's players, one after the other, spread evenly over the interval.
#[derive(Debug)]
pub(super) struct Pulse {
    numbers: Range<usize>,
    /// Pings so far; `None` if nobody has to ping.
    beats: Option<u64>,
    since: Option<Instant>,
}

impl Pulse {
    /// The pulse of players who live by it, or do not.
    pub(super) fn new(lives_by_pings: bool, numbers: &Range<usize>) -> Self {
        let beats = (lives_by_pings && !numbers.is_empty()).then_some(0);
        Self { numbers: numbers.clone(), beats, since: None }
    }

    /// Lets those ping whose turn has come.
    pub(super) fn beat(&mut self, roster: &Roster, now: Instant, network: &mut Network) {
        let Some(beats) = &mut self.beats else { return };
        let since = *self.since.get_or_insert(now);
        let rounds = now.duration_since(since).as_secs_f64() / INTERVAL.as_secs_f64();
        let due = (rounds * self.numbers.len() as f64) as u64;
        while *beats < due {
            let number = self.numbers.start + (*beats % self.numbers.len() as u64) as usize;
            *beats += 1;
            if roster.is_in(number) {
                network.speak_light(number, light::Client::ping);
            }
        }
    }
}
