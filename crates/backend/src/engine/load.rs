//! When a thread of a store gives back the memory that a storm needed: not only when nobody asks anything, because a node asks for some things
//! again and again (what is due, what is claimed), but as soon as little is asked.

use std::time::{Duration, Instant};

/// What was asked is looked at so often.
pub(super) const WINDOW: Duration = Duration::from_secs(10);

/// So little in a window is what a node asks by itself, and needs no memory of a storm.
const LITTLE: usize = 64;

/// How much a thread was asked.
#[derive(Debug)]
pub(super) struct Load {
    /// When the present window began.
    began: Instant,
    /// Questions in it.
    asked: usize,
    /// Questions since memory was given back.
    since_rest: usize,
}

impl Load {
    pub(super) fn new(now: Instant) -> Load {
        Load { began: now, asked: 0, since_rest: 0 }
    }

    /// So many questions were answered.
    pub(super) fn answered(&mut self, questions: usize) {
        self.asked += questions;
        self.since_rest += questions;
    }

    /// How long to wait for a question; none where there is nothing to give back.
    pub(super) fn patience(&self) -> Option<Duration> {
        (self.since_rest > 0).then_some(WINDOW)
    }

    /// Whether memory is given back now, where nothing was asked for as long as [`Load::patience`].
    pub(super) fn rests_idle(&mut self, now: Instant) -> bool {
        let rests = self.since_rest > 0;
        *self = Load::new(now);
        rests
    }

    /// The same where something was asked: a storm was before, and in the last window there was little.
    pub(super) fn rests(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.began) < WINDOW {
            return false;
        }
        let is_over = self.asked <= LITTLE && self.since_rest > LITTLE;
        let since_rest = if is_over { 0 } else { self.since_rest };
        *self = Load { since_rest, ..Load::new(now) };
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_though_a_node_goes_on_asking() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut load = Load::new(start);
        load.answered(15_000);
        assert!(!load.rests(at(5)));
        // The window with the storm.
        assert!(!load.rests(at(10)));
        let mut rested = Vec::new();
        for second in 11..=120 {
            load.answered(1);
            if load.rests(at(second)) {
                rested.push(second);
            }
        }
        // Once for the storm; what is asked meanwhile is little, and adds up to a rest a minute at most.
        assert_eq!(rested, [20, 90]);
    }

    #[test]
    fn a_storm_that_goes_on_keeps_its_memory() {
        let start = Instant::now();
        let mut load = Load::new(start);
        for second in 1..=60 {
            load.answered(100);
            assert!(!load.rests(start + Duration::from_secs(second)));
        }
    }

    #[test]
    fn memory_is_given_back_once_when_nobody_asks() {
        let start = Instant::now();
        let mut load = Load::new(start);
        assert_eq!((load.patience(), load.rests_idle(start)), (None, false));
        load.answered(1);
        assert_eq!((load.patience(), load.rests_idle(start)), (Some(WINDOW), true));
        assert_eq!((load.patience(), load.rests_idle(start)), (None, false));
    }
}
