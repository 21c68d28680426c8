//! All players subscribe to a topic.

use std::collections::VecDeque;

use carillon_wire::stanza::{Stanza, StanzaError};

use super::executor::{Executor, Loss, Next};
use crate::client::{SendOutcome, stanzas};
use crate::light::LightEvent;
use crate::plan::Protocol;
use crate::worker::context::ActionContext;
use crate::worker::player_states::PlayerStates;
use crate::worker::recorder::Count;
use crate::worker::step::StepStart;

/// Requests of one thread in flight at the same time.
const IN_FLIGHT_MAX: usize = 256;
/// The id of a request: each player has one in flight.
const ID: &str = "subscribe";

/// Subscribes the players who are in session.
pub(super) struct Subscribe {
    topic: String,
    waiting: VecDeque<usize>,
    in_flight: usize,
}

impl Subscribe {
    pub(super) fn new(topic: &str, step: &StepStart, states: &PlayerStates) -> Self {
        // In the first step the publisher creates the topic.
        let waiting = if step.position.step > 1 { states.members().collect() } else { VecDeque::new() };
        Self { topic: topic.to_owned(), waiting, in_flight: 0 }
    }

    fn request(&self, number: usize, context: &mut ActionContext<'_>) -> bool {
        if context.setup.job.scenario.players.protocol == Protocol::Light {
            return context
                .network
                .with_light_client(number, |client, out| client.subscribe(&self.topic, out));
        }
        let Some(jid) = context.network.jid(number) else { return false };
        let request = stanzas::subscribe(context.setup.service.clone(), &self.topic, jid).with_id(ID);
        context.network.send(number, &request) == SendOutcome::Sent
    }

    fn answered(&mut self, number: usize, refusal: Option<StanzaError>, context: &mut ActionContext<'_>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        match refusal {
            Some(error) => context.recorder.refused("subscribe", &error),
            None => {
                context.states.subscribe(number);
                context.recorder.count(Count::Subscribed);
            }
        }
    }
}

impl Executor for Subscribe {
    fn tick(&mut self, context: &mut ActionContext<'_>) -> Next {
        while self.in_flight < IN_FLIGHT_MAX
            && let Some(number) = self.waiting.pop_front()
        {
            self.in_flight += usize::from(self.request(number, context));
        }
        if self.in_flight == 0 && self.waiting.is_empty() { Next::Done } else { Next::At(None) }
    }

    fn stanza(&mut self, number: usize, stanza: &Stanza, context: &mut ActionContext<'_>) {
        if stanzas::is_response(stanza, ID) {
            self.answered(number, stanzas::error(stanza), context);
        }
    }

    fn light(&mut self, number: usize, event: &LightEvent, context: &mut ActionContext<'_>) {
        match event {
            LightEvent::Done => self.answered(number, None, context),
            LightEvent::Error(code) => {
                self.in_flight = self.in_flight.saturating_sub(1);
                context.recorder.error(format!("subscribe: {code}"));
            }
            _ => {}
        }
    }

    fn lost(&mut self, number: usize, _context: &mut ActionContext<'_>) -> Loss {
        let waiting = self.waiting.len();
        self.waiting.retain(|other| *other != number);
        if waiting == self.waiting.len() {
            // If its request was answered already, the step ends a little early.
            self.in_flight = self.in_flight.saturating_sub(1);
        }
        Loss::Final
    }
}
