//! One thread's players: whatever the deed, they log in, are counted, and are missed when they are lost.

use std::ops::Range;
use std::sync::mpsc::TryRecvError;
use std::time::Instant;

use carillon_wire::stanza::Stanza;

use super::crowd::{Crowd, Roster, State};
use super::deeds::{self, Act, Next};
use super::hand::{Kit, Turn};
use super::pulse::Pulse;
use super::tally::{Count, Metric};
use crate::client::{self, End, Failure};
use crate::light;
use crate::plan::Protocol;
use crate::swarm::{Event, Flow, Network, Scenario};

/// The players of a thread, and what they are doing.
pub(super) struct Players {
    kit: Kit,
    roster: Roster,
    pulse: Pulse,
    act: Box<dyn Act>,
    /// The turn that is not done.
    turn: Option<Turn>,
}

impl Players {
    /// Players with these numbers, who do nothing yet.
    pub(super) fn new(kit: Kit, numbers: Range<usize>) -> Self {
        let lives_by_pings = kit.setting.job.scenario.players.protocol == Protocol::Light;
        let pulse = Pulse::new(lives_by_pings, &numbers);
        Self { kit, roster: Roster::new(numbers), pulse, act: Box::new(deeds::Rest), turn: None }
    }

    /// The deed under way, and what it works with.
    fn stage<'a>(&'a mut self, now: Instant, network: &'a mut Network) -> (&'a mut dyn Act, Crowd<'a>) {
        let Self { kit, roster, act, .. } = self;
        (act.as_mut(), Crowd { setting: &kit.setting, ledger: &kit.ledger, roster, network, now })
    }

    fn ready(&mut self, number: usize, now: Instant, network: &mut Network) {
        if let State::LoggingIn(due) = self.roster.set(number, State::In) {
            self.kit.ledger.time(Metric::Login, now.saturating_duration_since(due));
        }
        self.kit.ledger.count(Count::Logins);
        let (act, mut crowd) = self.stage(now, network);
        act.ready(number, &mut crowd);
    }

    fn stanza(&mut self, number: usize, stanza: &Stanza, now: Instant, network: &mut Network) {
        let (act, mut crowd) = self.stage(now, network);
        act.stanza(number, stanza, &mut crowd);
    }

    fn light(&mut self, number: usize, event: &light::Event, now: Instant, network: &mut Network) {
        let (act, mut crowd) = self.stage(now, network);
        act.light(number, event, &mut crowd);
    }

    fn closed(&mut self, number: usize, why: &str, now: Instant, network: &mut Network) {
        let ledger = &self.kit.ledger;
        match self.roster.set(number, State::Out) {
            State::Out => return,
            State::LoggingIn(_) => ledger.error(format!("login: {why}")),
            State::In => {
                ledger.count(Count::Lost);
                ledger.error(format!("lost: {why}"));
            }
        }
        ledger.failed();
        let (act, mut crowd) = self.stage(now, network);
        act.gone(number, &mut crowd);
    }
}

impl Scenario for Players {
    fn event(&mut self, index: usize, event: Event, now: Instant, network: &mut Network) {
        match event {
            Event::Xmpp(client::Event::Ready) | Event::Light(light::Event::Ready) => {
                self.ready(index, now, network);
            }
            Event::Xmpp(client::Event::Secured(security)) if security.resumed => {
                self.kit.ledger.count(Count::Resumed);
            }
            Event::Xmpp(client::Event::Closed(end)) => self.closed(index, &kind(&end), now, network),
            Event::Light(light::Event::Closed(end)) => {
                self.closed(index, &end.to_string(), now, network);
            }
            Event::Xmpp(client::Event::Stanza(stanza)) => self.stanza(index, &stanza, now, network),
            Event::Light(event) => self.light(index, &event, now, network),
            Event::Xmpp(_) => {}
        }
    }

    fn tick(&mut self, now: Instant, network: &mut Network) -> Flow {
        match self.kit.turns.try_recv() {
            Ok(turn) => {
                let deed = turn.deed(&self.kit.setting);
                self.act = deeds::act(deed, &turn, &self.kit.setting, &self.roster);
                self.turn = Some(turn);
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Flow::Stop,
        }
        self.pulse.beat(&self.roster, now, network);
        let at = self.turn.map(|turn| turn.at);
        if let Some(at) = at.filter(|at| *at > now) {
            return Flow::Continue(Some(at));
        }
        let (act, mut crowd) = self.stage(now, network);
        let next = act.tick(&mut crowd);
        self.kit.ledger.set_online(self.roster.in_session());
        match next {
            Next::At(wish) => Flow::Continue(wish),
            Next::Done => {
                if let Some(turn) = self.turn.take() {
                    self.kit.steps.done(turn.serial);
                }
                Flow::Continue(None)
            }
        }
    }
}

/// Why a stream ended, in words few enough to be counted by.
pub(super) fn kind(end: &End) -> String {
    match end {
        End::Failure(Failure::Auth(failure)) if !failure.condition.is_empty() => failure.condition.clone(),
        End::Failure(Failure::Stream(error)) => format!("stream error {}", error.condition),
        End::Failure(Failure::Bind(Some(error))) => format!("bind {}", error.condition),
        other => other.to_string(),
    }
}
