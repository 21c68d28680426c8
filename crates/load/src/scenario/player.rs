//! What every client of a swarm does whatever the scenario: log in, be counted, and be missed when it is lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use carillon_wire::stanza::Stanza;

use super::board::Board;
use super::population::Population;
use super::ramp::{Pacer, Ramp};
use crate::client::{End, Event};
use crate::measure::Latencies;
use crate::swarm::{Flow, Network, Scenario};

/// What clients do once they are logged in.
pub(super) trait Behaviour: Send + 'static {
    /// A client has logged in.
    fn ready(&mut self, _index: usize, _network: &mut Network) {}

    /// A client received a stanza.
    fn stanza(&mut self, _index: usize, _stanza: Stanza, _now: Instant, _network: &mut Network) {}

    /// Everything that happened at once has been told.
    fn tick(&mut self, _now: Instant, _network: &mut Network) {}
}

/// Clients that stay, and do nothing.
#[derive(Debug, Default)]
pub(super) struct Idle;

impl Behaviour for Idle {}

/// How the logins of a thread went.
#[derive(Debug, Default)]
pub(super) struct Logins {
    /// From the first byte sent to the end of the login.
    pub(super) latencies: Latencies,
    /// When the last one succeeded.
    pub(super) last: Option<Instant>,
    /// Logins that failed, by reason.
    pub(super) failures: BTreeMap<String, usize>,
    /// Sessions that ended without being asked to, by reason.
    pub(super) losses: BTreeMap<String, usize>,
}

/// The clients of one thread.
pub(super) struct Players<B> {
    pub(super) population: Arc<Population>,
    pub(super) board: Arc<Board>,
    pub(super) behaviour: B,
    pub(super) logins: Logins,
    first: usize,
    states: Vec<State>,
    pacer: Pacer,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Unborn,
    LoggingIn(Instant),
    InSession,
    Over,
}

impl<B: Behaviour> Players<B> {
    pub(super) fn new(
        population: Arc<Population>,
        board: Arc<Board>,
        numbers: std::ops::Range<usize>,
        ramp: Ramp,
        behaviour: B,
    ) -> Self {
        let (first, count) = (numbers.start, numbers.len());
        let states = vec![State::Unborn; count];
        let pacer = Pacer::new(ramp, count, Instant::now());
        Self { population, board, behaviour, logins: Logins::default(), first, states, pacer }
    }

    fn start_due(&mut self, now: Instant, network: &mut Network) {
        loop {
            let first = self.first + self.pacer.started();
            let count = self.pacer.take(network.logging_in(), now);
            if count == 0 {
                return;
            }
            for index in first..first + count {
                self.states[index - self.first] = State::LoggingIn(now);
                network.connect(index, self.population.options(index));
            }
        }
    }

    fn closed(&mut self, index: usize, end: &End) {
        let state = std::mem::replace(&mut self.states[index - self.first], State::Over);
        let (counter, reasons) = match state {
            State::Unborn | State::LoggingIn(_) => (&self.board.failed, &mut self.logins.failures),
            State::InSession => (&self.board.lost, &mut self.logins.losses),
            State::Over => return,
        };
        counter.add(1);
        *reasons.entry(end.to_string()).or_default() += 1;
        self.board.notify();
    }
}

impl<B: Behaviour> Scenario for Players<B> {
    fn event(&mut self, index: usize, event: Event, now: Instant, network: &mut Network) {
        match event {
            Event::Ready => {
                let state = &mut self.states[index - self.first];
                if let State::LoggingIn(since) = std::mem::replace(state, State::InSession) {
                    self.logins.latencies.record(now.duration_since(since));
                }
                self.logins.last = Some(now);
                self.board.online.add(1);
                self.behaviour.ready(index, network);
            }
            Event::Stanza(stanza) => self.behaviour.stanza(index, stanza, now, network),
            Event::Closed(end) => self.closed(index, &end),
            _ => {}
        }
    }

    fn tick(&mut self, now: Instant, network: &mut Network) -> Flow {
        self.start_due(now, network);
        self.behaviour.tick(now, network);
        self.board.settle_logins();
        if self.board.stopped() { Flow::Stop } else { Flow::Continue(self.pacer.next_due()) }
    }
}
