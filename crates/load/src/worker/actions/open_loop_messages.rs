//! Open loop: players send messages to their neighbours when each is due, whatever became of earlier ones.

use std::ops::Range;
use std::time::Instant;

use carillon_wire::stanza::{Kind, MessageType, Stanza};

use super::executor::{Executor, Next};
use super::in_flight::InFlight;
use crate::client::{SendOutcome, stanzas};
use crate::plan::{Shape, Talk};
use crate::worker::context::ActionContext;
use crate::worker::mark::{self, Mark, Marks};
use crate::worker::player_states::PlayerStates;
use crate::worker::schedule::{Due, Schedule};
use crate::worker::setup::Setup;
use crate::worker::step::StepStart;

/// The messages of one thread's players.
pub(super) struct OpenLoopMessages {
    marks: Marks,
    /// The number of this phase's messages.
    number: u32,
    bucket: usize,
    payload_bytes: usize,
    schedule: Schedule,
    /// Messages tried so far; determines the next sender and recipient.
    turns: usize,
    in_flight: InFlight,
}

impl OpenLoopMessages {
    pub(super) fn new(
        talk: &Talk,
        rate: &Shape,
        step: &StepStart,
        setup: &Setup,
        states: &PlayerStates,
    ) -> Self {
        Self {
            marks: Marks::of(&setup.job.test),
            number: mark::number(step.position.phase, 0),
            bucket: talk.bucket.max(2) as usize,
            payload_bytes: talk.payload_bytes,
            schedule: Schedule::new(rate, setup.share(&states.numbers), step.at),
            turns: 0,
            in_flight: InFlight::new(step.at + talk.span.0),
        }
    }

    /// Sends the message that was due at `due`.
    fn send(&mut self, due: Instant, context: &mut ActionContext<'_>) {
        let (from, to) = pair(self.turns, &context.states.numbers, self.bucket);
        self.turns += 1;
        let Some(jid) = context.network.jid(to).filter(|_| from != to).cloned() else {
            return context.recorder.error("talk: the neighbour is not in session");
        };
        let mark = Mark { number: self.number, due_unix_ns: context.setup.clock.unix_ns(due) };
        let message = stanzas::message(jid, &self.marks.text(mark, self.payload_bytes));
        match context.network.send(from, &message) {
            SendOutcome::Sent => {
                context.sent(due);
                self.in_flight.sent();
            }
            SendOutcome::NoSession => context.recorder.error("talk: the sender is not in session"),
            SendOutcome::Full => context.recorder.error("talk: the server does not acknowledge enough"),
        }
    }
}

impl Executor for OpenLoopMessages {
    fn tick(&mut self, context: &mut ActionContext<'_>) -> Next {
        loop {
            match self.schedule.take_before(self.in_flight.until(), context.now) {
                Due::Now(due) => self.send(due, context),
                Due::At(due) => return Next::At(Some(due)),
                Due::Never => break,
            }
        }
        self.in_flight.finish(context)
    }

    fn stanza(&mut self, _number: usize, stanza: &Stanza, context: &mut ActionContext<'_>) {
        match stanza.kind {
            Kind::Message(MessageType::Chat) => {}
            Kind::Message(MessageType::Error) => {
                let condition = stanzas::error(stanza).map(|error| error.condition.to_string());
                return context.recorder.error(format!("talk: {}", condition.unwrap_or_default()));
            }
            _ => return,
        }
        let mark = self.marks.find(stanza.payload.bytes());
        let Some(mark) = mark.filter(|mark| mark.number == self.number) else { return };
        self.in_flight.arrived();
        let due = context.setup.clock.instant(mark.due_unix_ns);
        context.recorder.delivered(context.now.saturating_duration_since(due));
    }
}

/// The sender and the recipient of a turn: all players send in turn, each to all others of its bucket in turn.
fn pair(turn: usize, numbers: &Range<usize>, bucket: usize) -> (usize, usize) {
    let count = numbers.len().max(1);
    let from = turn % count;
    let first = from / bucket * bucket;
    let size = bucket.min(count - first);
    if size < 2 {
        return (numbers.start + from, numbers.start + from);
    }
    let step = 1 + turn / count % (size - 1);
    let to = first + (from - first + step) % size;
    (numbers.start + from, numbers.start + to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_player_talks_to_every_neighbour_and_to_nobody_else() {
        let numbers = 20..32;
        let pairs: Vec<_> = (0..12 * 3).map(|turn| pair(turn, &numbers, 4)).collect();
        for (from, to) in &pairs {
            assert!(from != to && (from - 20) / 4 == (to - 20) / 4);
        }
        let mut different = pairs.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), pairs.len());
    }

    #[test]
    fn a_bucket_of_one_has_no_neighbours() {
        assert_eq!(pair(4, &(0..5), 4), (4, 4));
        assert_eq!(pair(5, &(0..6), 4), (5, 4));
    }
}
