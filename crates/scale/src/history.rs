//! The last observations, in order.

use std::collections::VecDeque;
use std::time::Duration;

use super::observation::Observation;
use super::settings::LOOK_BACK_MAX;

/// The most that is kept: scaling down looks back furthest, and the first interval of that looks back in turn.
const KEPT: usize = LOOK_BACK_MAX as usize + 16;

/// The last observations, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    kept: VecDeque<Observation>,
}

impl History {
    /// Adds one that is newer than all others; whether it is.
    pub(crate) fn add(&mut self, observation: Observation) -> bool {
        if self.newest().is_some_and(|newest| observation.until <= newest.until) {
            return false;
        }
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(observation);
        true
    }

    /// The newest one.
    pub(crate) fn newest(&self) -> Option<&Observation> {
        self.kept.back()
    }

    /// What there was `back` observations ago: 0 is all.
    pub(crate) fn before(&self, back: usize) -> impl DoubleEndedIterator<Item = &Observation> + Clone {
        self.kept.iter().take(self.kept.len().saturating_sub(back))
    }

    /// How many of the newest cover the time since `from` without a gap; `None` if they do not. A gap is more than half an
    /// interval.
    pub(crate) fn covering(&self, from: Duration, interval: Duration) -> Option<usize> {
        let mut next: Option<&Observation> = None;
        for (count, observation) in self.kept.iter().rev().enumerate() {
            if next.is_some_and(|next| next.from.saturating_sub(observation.until) > interval / 2) {
                return None;
            }
            if observation.from <= from {
                return Some(count + 1);
            }
            next = Some(observation);
        }
        None
    }
}
