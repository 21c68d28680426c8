//! Neighbours talk while many players lose their connection at once, come back after a while and resume their streams.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use carillon_wire::stanza::Stanza;

use super::executor::{Executor, Loss, Next};
use super::open_loop_messages::OpenLoopMessages;
use crate::plan::Resume;
use crate::worker::context::ActionContext;
use crate::worker::player_states::{PlayerState, PlayerStates};
use crate::worker::setup::Setup;
use crate::worker::step::StepStart;

/// The cuts, and the messages meanwhile.
pub(super) struct CutAndResume {
    messages: Option<OpenLoopMessages>,
    plan: Resume,
    /// When the next round begins: the players are cut after `cut.after`.
    round_at: Instant,
    rounds_done: u32,
    /// Players who come back, in the order of their times.
    returning: VecDeque<(Instant, usize)>,
    until: Instant,
}

impl CutAndResume {
    pub(super) fn new(plan: &Resume, step: &StepStart, setup: &Setup, states: &PlayerStates) -> Self {
        let messages = OpenLoopMessages::of_resume(plan, step, setup, states);
        Self {
            messages,
            plan: plan.clone(),
            round_at: step.at,
            rounds_done: 0,
            returning: VecDeque::new(),
            until: step.at + plan.duration(),
        }
    }

    /// Cuts the players of a round that is due, and lets those come back who are due; returns when the next is due.
    fn cut_and_return(&mut self, context: &mut ActionContext<'_>) -> Option<Instant> {
        let cut_at = self.round_at + self.plan.cut.after.0;
        if self.rounds_done < self.plan.cut.rounds && cut_at <= context.now {
            self.cut(cut_at, context);
            self.rounds_done += 1;
            self.round_at += self.plan.round();
        }
        while let Some((due, number)) = self.returning.front().copied().filter(|(due, _)| *due <= context.now)
        {
            self.returning.pop_front();
            if context.states.state(number) == PlayerState::Out {
                context.return_to_stream(number, due);
            }
        }
        let next_cut = self.round_at + self.plan.cut.after.0;
        let next_cut = (self.rounds_done < self.plan.cut.rounds).then_some(next_cut);
        self.returning.front().map(|(due, _)| *due).into_iter().chain(next_cut).min()
    }

    fn cut(&mut self, cut_at: Instant, context: &mut ActionContext<'_>) {
        let numbers = context.states.numbers.clone();
        let round = self.rounds_done;
        let chosen: Vec<usize> = numbers
            .filter(|number| is_cut(*number, round, self.plan.cut.players) && context.states.is_in(*number))
            .collect();
        for (at, number) in chosen.iter().enumerate() {
            context.drop(*number);
            let spread = self.plan.comeback.over.0.mul_f64(at as f64 / chosen.len() as f64);
            self.comes_back(cut_at + self.plan.cut.span.0 + spread, *number);
        }
    }

    fn comes_back(&mut self, due: Instant, number: usize) {
        let at = self.returning.partition_point(|(other, _)| *other <= due);
        self.returning.insert(at, (due, number));
    }
}

impl Executor for CutAndResume {
    fn tick(&mut self, context: &mut ActionContext<'_>) -> Next {
        let next = self.cut_and_return(context);
        let messages = self.messages.as_mut().map_or(Next::Done, |messages| messages.tick(context));
        let is_over = context.now >= self.until && next.is_none() && context.states.logging_in() == 0;
        match messages {
            Next::Done if is_over => Next::Done,
            Next::Done => Next::At(Some(next.unwrap_or(self.until)).filter(|at| *at > context.now)),
            Next::At(at) => Next::At(at.into_iter().chain(next).min()),
        }
    }

    fn ready(&mut self, number: usize, context: &mut ActionContext<'_>) {
        if let Some(messages) = &mut self.messages {
            messages.ready(number, context);
        }
    }

    fn lost(&mut self, number: usize, context: &mut ActionContext<'_>) -> Loss {
        // Whoever is lost without a cut, for example because the server restarts, comes back, too; while the phase lasts.
        let numbers = &context.states.numbers;
        let part = (number - numbers.start) as f64 / numbers.len() as f64;
        let away = self.plan.cut.span.0.max(RETRY_DELAY) + self.plan.comeback.over.0.mul_f64(part);
        let due = context.now + away;
        if due >= self.until {
            return Loss::Final;
        }
        self.comes_back(due, number);
        Loss::ComesBack
    }

    fn stanza(&mut self, number: usize, stanza: &Stanza, context: &mut ActionContext<'_>) {
        if let Some(messages) = &mut self.messages {
            messages.stanza(number, stanza, context);
        }
    }

    fn not_resumed(&mut self, number: usize, unhandled: Vec<Box<[u8]>>) {
        if let Some(messages) = self.messages.as_mut().filter(|_| self.plan.resend) {
            messages.keep(number, unhandled);
        }
    }
}

/// Whether a player is among those that are cut in a round: this share of all, evenly spread, other players each round.
fn is_cut(number: usize, round: u32, share: f64) -> bool {
    let at = (number as u64 + u64::from(round)) as f64;
    ((at + 1.0) * share).floor() > (at * share).floor()
}

/// A player whose login failed waits for at least this long.
const RETRY_DELAY: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_players_is_cut_and_others_the_next_time() {
        let cut = |round, share| (0..100).filter(|number| is_cut(*number, round, share)).collect::<Vec<_>>();
        assert_eq!(cut(0, 0.5).len(), 50);
        assert_eq!(cut(0, 1.0).len(), 100);
        assert_eq!(cut(3, 0.1).len(), 10);
        assert!(cut(0, 0.5).iter().all(|number| !cut(1, 0.5).contains(number)));
    }
}
