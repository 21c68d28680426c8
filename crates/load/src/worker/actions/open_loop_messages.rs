//! Open loop: players send messages to their neighbours when each is due, whatever became of earlier ones.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Instant;

use carillon_wire::stanza::{Kind, MessageType, Stanza};

use super::executor::{Executor, Next};
use super::in_flight::InFlight;
use crate::client::{SendOutcome, stanzas};
use crate::plan::{Resume, Shape, Span, Talk};
use crate::worker::arrivals::Arrivals;
use crate::worker::context::ActionContext;
use crate::worker::mark::{self, Mark, Marks};
use crate::worker::player_states::PlayerStates;
use crate::worker::recorder::Count;
use crate::worker::schedule::{Due, Schedule};
use crate::worker::setup::Setup;
use crate::worker::step::StepStart;

/// The messages of one thread's players.
pub(super) struct OpenLoopMessages {
    marks: Marks,
    phase: u32,
    bucket: usize,
    payload_bytes: usize,
    schedule: Schedule,
    /// Messages tried so far; determines the next sender and recipient.
    turns: usize,
    /// Whether players come and go, so that a missing one is no error.
    absence: Absence,
    in_flight: InFlight,
    /// What has arrived, by recipient and sender.
    arrivals: HashMap<(usize, usize), Arrivals>,
    /// What players send again when they have logged in.
    kept: HashMap<usize, Vec<Box<[u8]>>>,
}

/// What it means that a player is not in session when it is to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absence {
    Error,
    Expected,
}

/// A message by its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NextMessage {
    from: usize,
    to: usize,
    /// How many messages the sender has sent to the recipient before.
    ordinal: u32,
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
            phase: step.position.phase,
            bucket: talk.bucket.max(2) as usize,
            payload_bytes: talk.payload_bytes,
            schedule: Schedule::new(rate, setup.share(&states.numbers), step.at),
            turns: 0,
            absence: Absence::Error,
            in_flight: InFlight::new(step.at + talk.span.0),
            arrivals: HashMap::new(),
            kept: HashMap::new(),
        }
    }

    /// The messages while players are cut and come back, if there are any.
    pub(super) fn of_resume(
        resume: &Resume,
        step: &StepStart,
        setup: &Setup,
        states: &PlayerStates,
    ) -> Option<Self> {
        let rate = resume.traffic()?;
        let talk = Talk {
            bucket: resume.bucket,
            rate: Some(rate.clone()),
            span: Span(resume.duration()),
            payload_bytes: resume.payload_bytes,
        };
        Some(Self { absence: Absence::Expected, ..Self::new(&talk, rate, step, setup, states) })
    }

    /// Keeps stanzas that a player sends again when it has logged in.
    pub(super) fn keep(&mut self, number: usize, stanzas: Vec<Box<[u8]>>) {
        self.kept.insert(number, stanzas);
    }

    /// Sends the message that was due at `due`.
    fn send(&mut self, due: Instant, context: &mut ActionContext<'_>) {
        let NextMessage { from, to, .. } = turn(self.turns, &context.states.numbers, self.bucket);
        let item = u32::try_from(self.turns).unwrap_or(u32::MAX).min(mark::UNTRACKED);
        self.turns += 1;
        let Some(jid) = context.network.address(to).filter(|_| from != to).cloned() else {
            return self.skip("talk: the neighbour is not in session", context);
        };
        let number = mark::number(self.phase, item);
        let mark = Mark { number, due_unix_ns: context.setup.clock.unix_ns(due) };
        let message = stanzas::message(jid, &self.marks.text(mark, self.payload_bytes));
        match context.network.send(from, &message) {
            SendOutcome::Sent => {
                context.sent(due);
                self.in_flight.sent();
            }
            SendOutcome::NoSession => self.skip("talk: the sender is not in session", context),
            SendOutcome::Full => context.recorder.error("talk: the server does not acknowledge enough"),
        }
    }

    fn skip(&self, error: &str, context: &ActionContext<'_>) {
        match self.absence {
            Absence::Error => context.recorder.error(error),
            Absence::Expected => context.recorder.count(Count::Skipped),
        }
    }

    /// Whether a message arrives for the first time.
    fn is_new(&mut self, number: usize, item: u32, context: &ActionContext<'_>) -> bool {
        if item == mark::UNTRACKED {
            return true;
        }
        let NextMessage { from, ordinal, .. } = turn(item as usize, &context.states.numbers, self.bucket);
        self.arrivals.entry((number, from)).or_default().count(ordinal, context.recorder)
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

    fn ready(&mut self, number: usize, context: &mut ActionContext<'_>) {
        let kept = self.kept.remove(&number).unwrap_or_default();
        context.recorder.add(Count::Resent, kept.len() as u64);
        for stanza in &kept {
            context.network.send_xml(number, &String::from_utf8_lossy(stanza));
        }
    }

    fn stanza(&mut self, number: usize, stanza: &Stanza, context: &mut ActionContext<'_>) {
        match stanza.kind {
            Kind::Message(MessageType::Chat) => {}
            Kind::Message(MessageType::Error) => {
                return match stanzas::error(stanza) {
                    Some(error) => context.recorder.refused("talk", &error),
                    None => context.recorder.error("talk: an error without a condition"),
                };
            }
            _ => return,
        }
        let Some(mark) = self.marks.find(stanza.payload.bytes()) else { return };
        let (phase, item) = mark::phase_and_item(mark.number);
        if phase != self.phase || !self.is_new(number, item, context) {
            return;
        }
        self.in_flight.arrived();
        let due = context.setup.clock.instant(mark.due_unix_ns);
        if context.states.last_dropped(number).is_some_and(|dropped| due < dropped) {
            context.recorder.count(Count::Redelivered);
        }
        context.delivered(number, due);
    }
}

/// The sender and the recipient of a turn: all players send in turn, each to all others of its bucket in turn.
fn turn(turn: usize, numbers: &Range<usize>, bucket: usize) -> NextMessage {
    let count = numbers.len().max(1);
    let from = turn % count;
    let first = from / bucket * bucket;
    let size = bucket.min(count - first);
    if size < 2 {
        return NextMessage { from: numbers.start + from, to: numbers.start + from, ordinal: 0 };
    }
    let round = turn / count;
    let step = 1 + round % (size - 1);
    let to = first + (from - first + step) % size;
    let ordinal = u32::try_from(round / (size - 1)).unwrap_or(u32::MAX);
    NextMessage { from: numbers.start + from, to: numbers.start + to, ordinal }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_player_talks_to_every_neighbour_and_to_nobody_else() {
        let numbers = 20..32;
        let turns = |begin| (begin..begin + 12 * 3).map(|at| turn(at, &numbers, 4));
        let pairs: Vec<_> = turns(0).map(|NextMessage { from, to, .. }| (from, to)).collect();
        assert!(turns(0).all(|turn| turn.ordinal == 0) && turns(12 * 3).all(|turn| turn.ordinal == 1));
        assert!(turns(12 * 3).map(|NextMessage { from, to, .. }| (from, to)).eq(pairs.iter().copied()));
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
        assert_eq!(turn(4, &(0..5), 4), NextMessage { from: 4, to: 4, ordinal: 0 });
        assert_eq!(turn(5, &(0..6), 4), NextMessage { from: 5, to: 4, ordinal: 0 });
    }
}
