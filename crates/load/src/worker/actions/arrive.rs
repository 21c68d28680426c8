//! Players log in, ask for their rosters, become available, and are told which of their contacts are.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use carillon_wire::stanza::{Kind, PresenceType, Stanza};

use super::executor::{Executor, Loss, Next};
use super::login::LogIn;
use super::meeting::{Meeting, Sight};
use crate::client::{SendOutcome, stanzas};
use crate::plan;
use crate::worker::context::ActionContext;
use crate::worker::player_states::PlayerStates;
use crate::worker::recorder::{Count, Metric};
use crate::worker::ring::Ring;
use crate::worker::setup::Setup;
use crate::worker::step::StepStart;

/// Presence that has not come when nothing has happened for this long is missing.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(10);
/// The id of a request: each player has one in flight.
const ID: &str = "roster";

/// The arrivals of one thread's players.
pub(super) struct Arrive {
    login: LogIn,
    /// Players who are in session already and have not begun.
    waiting: VecDeque<usize>,
    ring: Ring,
    meeting: Meeting,
    first: usize,
    stages: Vec<Stage>,
    /// Players who wait for their rosters.
    asking: usize,
    /// When something happened last.
    last: Instant,
    reported: bool,
}

/// How far a player has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Away,
    /// It has asked for its roster; in session since.
    Asking(Instant),
    /// It has sent its presence; in session since, and when it sent it.
    Available(Instant, Instant),
}

impl Arrive {
    pub(super) fn new(plan: &plan::Arrive, step: &StepStart, setup: &Setup, states: &PlayerStates) -> Self {
        let ring = Ring::new(plan.contacts, setup.job.total);
        let (first, players) = (states.numbers.start, states.numbers.len());
        Self {
            login: LogIn::new(&plan.login(), step, setup, states),
            waiting: states.members().collect(),
            ring,
            meeting: Meeting::new(ring, first, players),
            first,
            stages: vec![Stage::Away; players],
            asking: 0,
            last: step.at,
            reported: false,
        }
    }

    fn ask(&mut self, number: usize, context: &mut ActionContext<'_>) {
        let request = stanzas::roster().with_id(ID);
        if context.network.send(number, &request) == SendOutcome::Sent {
            self.set(number, Stage::Asking(context.now));
        }
    }

    fn answered(&mut self, number: usize, since: Instant, answer: &Stanza, context: &mut ActionContext<'_>) {
        match stanzas::error(answer) {
            Some(error) => context.recorder.refused("roster", &error),
            None => {
                context.recorder.count(Count::Rosters);
                context.recorder.time(Metric::Roster, context.now.saturating_duration_since(since));
                let mutual = stanzas::roster_items(answer).into_iter().filter(stanzas::RosterItem::is_mutual);
                let numbers = mutual.filter_map(|item| context.setup.number(item.jid.local()?));
                let contacts = numbers.filter(|other| self.ring.place(number, *other as usize).is_some());
                context.recorder.add(Count::Contacts, contacts.count() as u64);
            }
        }
        self.set(number, Stage::Available(since, context.now));
        self.meeting.arrive(number);
        // A player whose session is over is lost, which is heard of by itself.
        let _ = context.network.send(number, &Stanza::presence(PresenceType::Available));
    }

    fn presence(&mut self, number: usize, contact: usize, context: &ActionContext<'_>) {
        let (Stage::Available(since, own), Some(Stage::Available(_, other))) =
            (self.stage(number), self.stages.get(contact.wrapping_sub(self.first)).copied())
        else {
            return context.recorder.error("arrive: presence of one who is not there");
        };
        let sight = self.meeting.see(number, contact);
        match sight {
            Sight::Unexpected => {
                return context.recorder.error("arrive: presence of one who is no contact");
            }
            Sight::Again => context.recorder.count(Count::Duplicates),
            Sight::New | Sight::LastAwaited => {
                let latency = context.now.saturating_duration_since(own.max(other));
                context.recorder.time(Metric::Presence, latency);
            }
        }
        context.recorder.count(Count::Presences);
        if sight == Sight::LastAwaited {
            context.recorder.time(Metric::Contacts, context.now.saturating_duration_since(since));
        }
    }

    fn stage(&self, number: usize) -> Stage {
        self.stages[number - self.first]
    }

    fn set(&mut self, number: usize, stage: Stage) {
        let asking = |stage| usize::from(matches!(stage, Stage::Asking(_)));
        let old = std::mem::replace(&mut self.stages[number - self.first], stage);
        self.asking = self.asking + asking(stage) - asking(old);
    }
}

impl Executor for Arrive {
    fn tick(&mut self, context: &mut ActionContext<'_>) -> Next {
        while context.states.logging_in() + self.asking < self.login.in_flight_max()
            && let Some(number) = self.waiting.pop_front()
        {
            self.ask(number, context);
        }
        let next = self.login.log_in_beside(self.asking, context);
        if next != Next::Done || self.asking > 0 || !self.waiting.is_empty() {
            return if next == Next::Done { Next::At(None) } else { next };
        }
        let late = self.last + ARRIVAL_TIMEOUT;
        if self.meeting.due() > 0 && context.now < late {
            return Next::At(Some(late));
        }
        if !std::mem::replace(&mut self.reported, true) {
            context.recorder.add(Count::Missing, self.meeting.due());
        }
        Next::Done
    }

    fn ready(&mut self, number: usize, context: &mut ActionContext<'_>) {
        self.last = context.now;
        self.ask(number, context);
    }

    fn lost(&mut self, number: usize, _context: &mut ActionContext<'_>) -> Loss {
        self.waiting.retain(|other| *other != number);
        self.set(number, Stage::Away);
        self.meeting.leave(number);
        Loss::Final
    }

    fn stanza(&mut self, number: usize, stanza: &Stanza, context: &mut ActionContext<'_>) {
        self.last = context.now;
        match (stanza.kind, self.stage(number)) {
            (Kind::Iq(_), Stage::Asking(since)) if stanzas::is_response(stanza, ID) => {
                self.answered(number, since, stanza, context);
            }
            (Kind::Presence(PresenceType::Available), _) => {
                let from = stanza.from.as_ref().and_then(|from| context.setup.number(from.local()?));
                // A server tells a client of its own presence, too (RFC 6121 §4.2.2).
                if let Some(contact) = from.map(|from| from as usize).filter(|from| *from != number) {
                    self.presence(number, contact, context);
                }
            }
            (Kind::Presence(PresenceType::Error), _) => {
                if let Some(error) = stanzas::error(stanza) {
                    context.recorder.refused("arrive", &error);
                }
            }
            _ => {}
        }
    }
}
