//! Players chosen at random drop their connection and log in again.

use std::time::Instant;

use super::{Act, Next};
use crate::plan::{Shape, Span};
use crate::worker::crowd::{Crowd, Roster};
use crate::worker::hand::Turn;
use crate::worker::schedule::Schedule;
use crate::worker::setting::Setting;

/// How often one is looked for who is in session, before the reconnection is given up.
const TRIES: u32 = 16;

/// Reconnections as they are due.
pub(super) struct Churn {
    schedule: Schedule,
    until: Instant,
    dice: Dice,
}

impl Churn {
    pub(super) fn new(rate: &Shape, span: Span, turn: &Turn, setting: &Setting, roster: &Roster) -> Self {
        let share = setting.share(&roster.numbers);
        let seed = u64::from(turn.position.phase) << 32 | u64::from(share.first);
        let schedule = Schedule::new(rate, share, turn.at);
        Self { schedule, until: turn.at + span.0, dice: Dice::new(seed) }
    }

    fn reconnect(&mut self, due: Instant, crowd: &mut Crowd<'_>) {
        let numbers = crowd.roster.numbers.clone();
        let chosen = (0..TRIES)
            .map(|_| numbers.start + self.dice.below(numbers.len()))
            .find(|number| crowd.roster.is_in(*number));
        match chosen {
            Some(number) => {
                crowd.drop(number);
                crowd.log_in(number, due);
            }
            None => crowd.ledger.error("churn: too few players are in session"),
        }
    }
}

impl Act for Churn {
    fn tick(&mut self, crowd: &mut Crowd<'_>) -> Next {
        while let Some(due) = self.schedule.next().filter(|due| *due < self.until) {
            if self.schedule.take(crowd.now).is_none() {
                return Next::At(Some(due));
            }
            self.reconnect(due, crowd);
        }
        if crowd.now < self.until {
            return Next::At(Some(self.until));
        }
        if crowd.roster.logging_in() == 0 { Next::Done } else { Next::At(None) }
    }
}

/// Numbers that look random, the same in each run of the same share (splitmix64).
#[derive(Debug)]
struct Dice {
    state: u64,
}

impl Dice {
    fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn below(&mut self, end: usize) -> usize {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        // The high half of a product is even enough, and needs no division.
        ((u128::from(mixed) * end as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dice_show_every_side_about_as_often() {
        let mut dice = Dice::new(7);
        let mut sides = [0; 10];
        for _ in 0..10_000 {
            sides[dice.below(10)] += 1;
        }
        assert!(sides.iter().all(|count| (850..1150).contains(count)), "{sides:?}");
    }
}
