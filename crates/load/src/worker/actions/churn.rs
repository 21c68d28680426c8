//! Players chosen at random drop their connection and log in again.

use std::time::Instant;

use super::executor::{Executor, Next};
use crate::plan::{Shape, Span};
use crate::worker::context::ActionContext;
use crate::worker::player_states::PlayerStates;
use crate::worker::schedule::{Due, Schedule};
use crate::worker::setup::Setup;
use crate::worker::step::StepStart;

/// How many players are tried before the reconnection is skipped because none of them is in session.
const TRIES: u32 = 16;

/// Reconnects players.
pub(super) struct Churn {
    schedule: Schedule,
    until: Instant,
    random: SplitMix64,
}

impl Churn {
    pub(super) fn new(
        rate: &Shape,
        span: Span,
        step: &StepStart,
        setup: &Setup,
        states: &PlayerStates,
    ) -> Self {
        let share = setup.share(&states.numbers);
        let seed = u64::from(step.position.phase) << 32 | u64::from(share.first);
        let schedule = Schedule::new(rate, share, step.at);
        Self { schedule, until: step.at + span.0, random: SplitMix64::new(seed) }
    }

    fn reconnect(&mut self, due: Instant, context: &mut ActionContext<'_>) {
        let numbers = context.states.numbers.clone();
        let chosen = (0..TRIES)
            .map(|_| numbers.start + self.random.below(numbers.len()))
            .find(|number| context.states.is_in(*number));
        match chosen {
            Some(number) => {
                context.drop(number);
                context.log_in(number, due);
            }
            None => context.recorder.error("churn: too few players are in session"),
        }
    }
}

impl Executor for Churn {
    fn tick(&mut self, context: &mut ActionContext<'_>) -> Next {
        loop {
            match self.schedule.take_before(self.until, context.now) {
                Due::Now(due) => self.reconnect(due, context),
                Due::At(due) => return Next::At(Some(due)),
                Due::Never => break,
            }
        }
        if context.now < self.until {
            return Next::At(Some(self.until));
        }
        if context.states.logging_in() == 0 { Next::Done } else { Next::At(None) }
    }
}

/// A pseudo-random generator; the same share gives the same numbers in each run.
#[derive(Debug)]
struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A number from 0 to less than `end`.
    fn below(&mut self, end: usize) -> usize {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        // The high half of the product is uniform enough and needs no division.
        ((u128::from(mixed) * end as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_about_equally_frequent() {
        let mut random = SplitMix64::new(7);
        let mut counts = [0; 10];
        for _ in 0..10_000 {
            counts[random.below(10)] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
