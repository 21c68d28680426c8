//! Everyone who is not in session logs in.

use std::time::Instant;

use super::{Act, Next};
use crate::plan::Login;
use crate::worker::crowd::{Crowd, Roster, State};
use crate::worker::hand::Turn;
use crate::worker::schedule::Schedule;
use crate::worker::setting::Setting;

/// Logs in the players of a step.
pub(super) struct LogIn {
    /// Players to log in, the next one last.
    waiting: Vec<usize>,
    /// When each is due; without it, as soon as there is room.
    schedule: Option<Schedule>,
    in_flight_max: usize,
    at: Instant,
}

impl LogIn {
    pub(super) fn new(login: &Login, turn: &Turn, setting: &Setting, roster: &Roster) -> Self {
        let numbers = &roster.numbers;
        // A step's share of the players, whoever of them is in session already.
        let bound = |step: u32| numbers.start + numbers.len() * step as usize / login.steps.max(1) as usize;
        let step = bound(turn.position.step.saturating_sub(1))..bound(turn.position.step);
        let waiting = step.clone().rev().filter(|number| roster.state(*number) == State::Out).collect();
        let share = setting.share(numbers);
        let before = (step.start - numbers.start) as u64;
        let schedule = login.rate.as_ref().map(|rate| Schedule::new(rate, share, turn.at).after(before));
        let in_flight = f64::from(login.in_flight) * f64::from(share.count) / f64::from(share.total.max(1));
        Self { waiting, schedule, in_flight_max: (in_flight as usize).max(1), at: turn.at }
    }
}

impl Act for LogIn {
    fn tick(&mut self, crowd: &mut Crowd<'_>) -> Next {
        while let Some(number) = self.waiting.last().copied() {
            if crowd.roster.logging_in() >= self.in_flight_max {
                return Next::At(None);
            }
            let due = match &mut self.schedule {
                None => crowd.now.max(self.at),
                Some(schedule) => match schedule.take(crowd.now) {
                    Some(due) => due,
                    None if schedule.next().is_none() => {
                        // The shape is at its end: who is left stays out.
                        crowd.ledger.error("login: the rate's shape ended before all players had logged in");
                        self.waiting.clear();
                        break;
                    }
                    None => return Next::At(schedule.next()),
                },
            };
            self.waiting.pop();
            crowd.log_in(number, due);
        }
        if crowd.roster.logging_in() == 0 { Next::Done } else { Next::At(None) }
    }
}
