//! Everyone subscribes to a topic.

use std::collections::VecDeque;

use carillon_wire::stanza::Stanza;

use super::{Act, Next};
use crate::client::stanzas;
use crate::light;
use crate::plan::Protocol;
use crate::worker::crowd::{Crowd, Roster};
use crate::worker::hand::Turn;
use crate::worker::tally::Count;

/// Requests of one thread that are under way at once.
const IN_FLIGHT_MAX: usize = 256;
/// The id of a request: a player has one at a time.
const ID: &str = "subscribe";

/// Subscribes the players who are in session.
pub(super) struct Subscribe {
    topic: String,
    waiting: VecDeque<usize>,
    in_flight: usize,
}

impl Subscribe {
    pub(super) fn new(topic: &str, turn: &Turn, roster: &Roster) -> Self {
        // In the first step the publisher makes the topic.
        let waiting = if turn.position.step > 1 { roster.members().collect() } else { VecDeque::new() };
        Self { topic: topic.to_owned(), waiting, in_flight: 0 }
    }
}

impl Subscribe {
    fn ask(&self, number: usize, crowd: &mut Crowd<'_>) -> bool {
        if crowd.setting.job.scenario.players.protocol == Protocol::Light {
            return crowd.network.speak_light(number, |client, out| client.subscribe(&self.topic, out));
        }
        let Some(jid) = crowd.network.jid(number) else { return false };
        let request = stanzas::subscribe(crowd.setting.service.clone(), &self.topic, jid).with_id(ID);
        crowd.network.send(number, &request)
    }

    fn answered(&mut self, number: usize, refusal: Option<&str>, crowd: &mut Crowd<'_>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        match refusal {
            Some(condition) => crowd.ledger.error(format!("subscribe: {condition}")),
            None => {
                crowd.roster.follow(number);
                crowd.ledger.count(Count::Subscribed);
            }
        }
    }
}

impl Act for Subscribe {
    fn tick(&mut self, crowd: &mut Crowd<'_>) -> Next {
        while self.in_flight < IN_FLIGHT_MAX
            && let Some(number) = self.waiting.pop_front()
        {
            self.in_flight += usize::from(self.ask(number, crowd));
        }
        if self.in_flight == 0 && self.waiting.is_empty() { Next::Done } else { Next::At(None) }
    }

    fn stanza(&mut self, number: usize, stanza: &Stanza, crowd: &mut Crowd<'_>) {
        if stanzas::is_response(stanza, ID) {
            let refusal = stanzas::error(stanza).map(|error| error.condition.to_string());
            self.answered(number, refusal.as_deref(), crowd);
        }
    }

    fn light(&mut self, number: usize, event: &light::Event, crowd: &mut Crowd<'_>) {
        match event {
            light::Event::Done => self.answered(number, None, crowd),
            light::Event::Error(code) => self.answered(number, Some(code), crowd),
            _ => {}
        }
    }

    fn gone(&mut self, number: usize, _crowd: &mut Crowd<'_>) {
        let waiting = self.waiting.len();
        self.waiting.retain(|other| *other != number);
        if waiting == self.waiting.len() {
            // Its request may have been answered already: then the step is done a little early.
            self.in_flight = self.in_flight.saturating_sub(1);
        }
    }
}
