//! Pairs of neighbours throw one message to and fro, each as soon as it has caught it: a closed loop, which finds how
//! many messages go through.

use std::ops::Range;
use std::time::{Duration, Instant};

use carillon_wire::stanza::{Kind, MessageType, Stanza};

use super::{Act, Next};
use crate::client::stanzas;
use crate::plan::Talk;
use crate::worker::crowd::{Crowd, Roster};
use crate::worker::hand::Turn;
use crate::worker::mark::{self, Mark, Marks};
use crate::worker::setting::Setting;
use crate::worker::tally::Count;

/// What has not arrived so long after the end is missing.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pairs of one thread.
pub(super) struct Volley {
    marks: Marks,
    number: u32,
    numbers: Range<usize>,
    /// What each sends to its partner; the same each time, made once. `None` if it has no partner.
    messages: Vec<Option<Stanza>>,
    /// When each sent last.
    thrown: Vec<Option<Instant>>,
    until: Instant,
    begun: bool,
    under_way: u64,
    over: bool,
}

impl Volley {
    pub(super) fn new(talk: &Talk, turn: &Turn, setting: &Setting, roster: &Roster) -> Self {
        let marks = Marks::of(&setting.job.test);
        let number = mark::number(turn.position.phase, 0);
        let body = marks.text(Mark { number, due_unix_ns: 0 }, talk.payload_bytes);
        let prepared = stanzas::message(setting.service.clone(), &body);
        Self {
            marks,
            number,
            numbers: roster.numbers.clone(),
            messages: vec![Some(prepared); roster.numbers.len()],
            thrown: vec![None; roster.numbers.len()],
            until: turn.at + talk.span.0,
            begun: false,
            under_way: 0,
            over: false,
        }
    }

    /// Addresses the messages; every pair of whom both are in session begins.
    fn begin(&mut self, crowd: &mut Crowd<'_>) {
        for at in 0..self.messages.len() {
            let partner =
                crowd.network.jid(self.numbers.start + (at ^ 1)).filter(|_| at ^ 1 < self.numbers.len());
            match (partner, &mut self.messages[at]) {
                (Some(partner), Some(message)) => message.to = Some(partner.clone()),
                (_, message) => *message = None,
            }
        }
        for at in (0..self.messages.len()).step_by(2) {
            self.throw(at, crowd);
        }
    }

    fn throw(&mut self, at: usize, crowd: &mut Crowd<'_>) {
        if let Some(message) = &self.messages[at]
            && crowd.network.send(self.numbers.start + at, message)
        {
            self.thrown[at] = Some(crowd.now);
            self.under_way += 1;
            crowd.ledger.count(Count::Sent);
        }
    }
}

impl Act for Volley {
    fn tick(&mut self, crowd: &mut Crowd<'_>) -> Next {
        if !std::mem::replace(&mut self.begun, true) {
            self.begin(crowd);
        }
        if crowd.now < self.until {
            return Next::At(Some(self.until));
        }
        if self.under_way > 0 && crowd.now < self.until + PATIENCE {
            return Next::At(Some(self.until + PATIENCE));
        }
        if !std::mem::replace(&mut self.over, true) {
            crowd.ledger.add(Count::Missing, self.under_way);
        }
        Next::Done
    }

    fn stanza(&mut self, number: usize, stanza: &Stanza, crowd: &mut Crowd<'_>) {
        let at = number - self.numbers.start;
        if stanza.kind != Kind::Message(MessageType::Chat) || at ^ 1 >= self.thrown.len() {
            return;
        }
        let mark = self.marks.find(stanza.payload.bytes());
        let Some(thrown) =
            self.thrown[at ^ 1].filter(|_| mark.is_some_and(|mark| mark.number == self.number))
        else {
            return;
        };
        self.under_way = self.under_way.saturating_sub(1);
        crowd.ledger.delivered(crowd.now.saturating_duration_since(thrown));
        if crowd.now < self.until {
            self.throw(at, crowd);
        }
    }
}
