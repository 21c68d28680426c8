//! Closed loop: in pairs of neighbours each player answers a message at once. It measures the maximum rate of messages.

use std::ops::Range;
use std::time::Instant;

use carillon_wire::stanza::{Kind, MessageType, Stanza};

use super::executor::{Executor, Next};
use super::in_flight::InFlight;
use crate::client::{SendOutcome, stanzas};
use crate::plan::Talk;
use crate::worker::context::ActionContext;
use crate::worker::mark::{self, Mark, Marks};
use crate::worker::player_states::PlayerStates;
use crate::worker::recorder::Count;
use crate::worker::setup::Setup;
use crate::worker::step::StepStart;

/// The pairs of one thread.
pub(super) struct ClosedLoopPairs {
    marks: Marks,
    number: u32,
    numbers: Range<usize>,
    /// The message that each player sends to its partner, built once. `None` if it has no partner.
    messages: Vec<Option<Stanza>>,
    /// When each player sent the message that has not arrived.
    sent: Vec<Option<Instant>>,
    begun: bool,
    in_flight: InFlight,
}

impl ClosedLoopPairs {
    pub(super) fn new(talk: &Talk, step: &StepStart, setup: &Setup, states: &PlayerStates) -> Self {
        let marks = Marks::of(&setup.job.test);
        let number = mark::number(step.position.phase, 0);
        let body = marks.text(Mark { number, due_unix_ns: 0 }, talk.payload_bytes);
        let prepared = stanzas::message(setup.service.clone(), &body);
        Self {
            marks,
            number,
            numbers: states.numbers.clone(),
            messages: vec![Some(prepared); states.numbers.len()],
            sent: vec![None; states.numbers.len()],
            begun: false,
            in_flight: InFlight::new(step.at + talk.span.0),
        }
    }

    /// Addresses the messages, and sends the first one of each pair that is in session.
    fn begin(&mut self, context: &mut ActionContext<'_>) {
        for at in 0..self.messages.len() {
            let partner =
                context.network.jid(self.numbers.start + (at ^ 1)).filter(|_| at ^ 1 < self.numbers.len());
            match (partner, &mut self.messages[at]) {
                (Some(partner), Some(message)) => message.to = Some(partner.clone()),
                (_, message) => *message = None,
            }
        }
        for at in (0..self.messages.len()).step_by(2) {
            self.send(at, context);
        }
    }

    fn send(&mut self, at: usize, context: &mut ActionContext<'_>) {
        if let Some(message) = &self.messages[at]
            && context.network.send(self.numbers.start + at, message) == SendOutcome::Sent
        {
            self.sent[at] = Some(context.now);
            self.in_flight.sent();
            context.recorder.count(Count::Sent);
        }
    }
}

impl Executor for ClosedLoopPairs {
    fn tick(&mut self, context: &mut ActionContext<'_>) -> Next {
        if !std::mem::replace(&mut self.begun, true) {
            self.begin(context);
        }
        self.in_flight.finish(context)
    }

    fn stanza(&mut self, number: usize, stanza: &Stanza, context: &mut ActionContext<'_>) {
        let at = number - self.numbers.start;
        if let (Kind::Message(MessageType::Error), Some(error)) = (stanza.kind, stanzas::error(stanza)) {
            return context.recorder.refused("talk", &error);
        }
        if stanza.kind != Kind::Message(MessageType::Chat) || at ^ 1 >= self.sent.len() {
            return;
        }
        let mark = self.marks.find(stanza.payload.bytes());
        if mark.is_none_or(|mark| mark.number != self.number) {
            return;
        }
        // A pair has one message in flight: what comes when there is none came before.
        let Some(sent) = self.sent[at ^ 1].take() else {
            return context.recorder.count(Count::Duplicates);
        };
        self.in_flight.arrived();
        context.delivered(number, sent);
        if context.now < self.in_flight.until() {
            self.send(at, context);
        }
    }
}
