//! All players without a session log in.

use std::time::Instant;

use super::executor::{Executor, Next};
use crate::plan::Login;
use crate::worker::context::ActionContext;
use crate::worker::player_states::{PlayerState, PlayerStates};
use crate::worker::schedule::Schedule;
use crate::worker::setup::Setup;
use crate::worker::step::StepStart;

/// Logs in the players of a step.
pub(super) struct LogIn {
    /// Players to log in, the next one last.
    waiting: Vec<usize>,
    /// When each is due; without a schedule, when fewer than `in_flight_max` are logging in.
    schedule: Option<Schedule>,
    in_flight_max: usize,
    at: Instant,
}

impl LogIn {
    pub(super) fn new(login: &Login, step: &StepStart, setup: &Setup, states: &PlayerStates) -> Self {
        let numbers = &states.numbers;
        // The step's part of the players, including those that are in session already.
        let bound = |step: u32| numbers.start + numbers.len() * step as usize / login.steps.max(1) as usize;
        let part = bound(step.position.step.saturating_sub(1))..bound(step.position.step);
        let waiting = part.clone().rev().filter(|number| states.state(*number) == PlayerState::Out).collect();
        let share = setup.share(numbers);
        let before = (part.start - numbers.start) as u64;
        let schedule = login.rate.as_ref().map(|rate| Schedule::new(rate, share, step.at).after(before));
        let in_flight = f64::from(login.in_flight) * f64::from(share.count) / f64::from(share.total.max(1));
        Self { waiting, schedule, in_flight_max: (in_flight as usize).max(1), at: step.at }
    }
}

impl Executor for LogIn {
    fn tick(&mut self, context: &mut ActionContext<'_>) -> Next {
        self.log_in_beside(0, context)
    }
}

impl LogIn {
    /// The most players of this thread that are in flight.
    pub(super) fn in_flight_max(&self) -> usize {
        self.in_flight_max
    }

    /// Lets players log in while others are in flight for another reason.
    pub(super) fn log_in_beside(&mut self, others: usize, context: &mut ActionContext<'_>) -> Next {
        while let Some(number) = self.waiting.last().copied() {
            if context.states.logging_in() + others >= self.in_flight_max {
                return Next::At(None);
            }
            let due = match &mut self.schedule {
                None => context.now.max(self.at),
                Some(schedule) => match schedule.take(context.now) {
                    Some(due) => due,
                    None if schedule.next().is_none() => {
                        // The shape has ended: the remaining players do not log in.
                        context
                            .recorder
                            .error("login: the rate's shape ended before all players had logged in");
                        self.waiting.clear();
                        break;
                    }
                    None => return Next::At(schedule.next()),
                },
            };
            self.waiting.pop();
            context.log_in(number, due);
        }
        if context.states.logging_in() == 0 { Next::Done } else { Next::At(None) }
    }
}
