//! Pairs of clients throw one message to and fro, each as soon as it has caught it: a closed loop.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carillon_wire::stanza::{Kind, MessageType, Stanza};

use super::RunError;
use super::board::Board;
use super::crew::Crew;
use super::login_storm::report_logins;
use super::meter::{Meter, Spent};
use super::player::Behaviour;
use super::population::Population;
use crate::client::stanzas;
use crate::measure::{Latencies, Processes};
use crate::report::Report;
use crate::swarm::Network;

/// Clients of a pair: neighbours by index, in the same thread.
const PAIR: usize = 2;

/// Conversations of two.
#[derive(Debug)]
pub struct OneToOne {
    /// Who talks, in pairs of neighbours.
    pub population: Population,
    /// How long they talk.
    pub duration: Duration,
    /// Bytes of a message's body.
    pub payload_bytes: usize,
    /// The server's processes, to measure what it spends.
    pub server: Processes,
}

/// The clients of one thread.
struct Talkers {
    board: Arc<Board>,
    numbers: Range<usize>,
    body: String,
    talking: bool,
    /// What each client sends to its partner, made once both are online.
    messages: Vec<Option<Stanza>>,
    /// When each pair's first client threw last.
    thrown: Vec<Instant>,
    caught: usize,
    round_trips: Latencies,
}

impl OneToOne {
    /// Runs it.
    pub fn run(self) -> Result<Report, RunError> {
        let meter = Meter::start(&self.server)?;
        let mut report = Report::new("one-to-one");
        let body = "x".repeat(self.payload_bytes);
        let crew = Crew::start(self.population, PAIR, |numbers, board| {
            Talkers::new(Arc::clone(board), numbers, body.clone())
        })?
        .wait_for_logins()?;
        let online = crew.board.online.value();
        let (mut talked, mut spent) = (Duration::ZERO, Spent::default());
        if online > 0 {
            let before = meter.spent()?;
            let began = Instant::now();
            crew.board.start();
            crew.wake();
            crew.pass(self.duration);
            talked = began.elapsed();
            spent = meter.spent()?.since(before);
        }
        let harvest = crew.finish()?;
        let (mut logins, mut round_trips, mut messages) = (harvest.logins, Latencies::default(), 0);
        for talkers in &harvest.behaviours {
            messages += talkers.caught;
            round_trips.merge(&talkers.round_trips);
        }
        report.line("messages", format_args!("{messages} in {:.2} s", talked.as_secs_f64()));
        report.value("messages", messages);
        let rate = messages as f64 / talked.as_secs_f64().max(f64::MIN_POSITIVE);
        report.figure("rate", "messages_per_s", rate, "messages a second");
        let percentiles = round_trips.percentiles();
        report.line("round trip", percentiles);
        report.value("round_trip", percentiles.json());
        spent.report(messages, "messages", &mut report);
        report_logins(&mut logins, online, &mut report);
        let silent = usize::from(messages == 0 && online > 0);
        let problems = (silent > 0).then(|| ("no message was delivered".to_owned(), silent));
        report.problems("one-to-one", "failures", &problems.into_iter().collect());
        Ok(report)
    }
}

impl Talkers {
    fn new(board: Arc<Board>, numbers: Range<usize>, body: String) -> Self {
        let count = numbers.len();
        Self {
            board,
            numbers,
            body,
            talking: false,
            messages: vec![None; count],
            thrown: vec![Instant::now(); count],
            caught: 0,
            round_trips: Latencies::default(),
        }
    }

    /// Every pair whose two are online begins.
    fn begin(&mut self, network: &mut Network) {
        for index in self.numbers.clone().step_by(PAIR) {
            let (Some(first), Some(second)) = (network.jid(index), network.jid(index + 1)) else { continue };
            let at = index - self.numbers.start;
            self.messages[at] = Some(stanzas::message(second.clone(), &self.body));
            self.messages[at + 1] = Some(stanzas::message(first.clone(), &self.body));
            self.throw(index, Instant::now(), network);
        }
    }

    fn throw(&mut self, index: usize, now: Instant, network: &mut Network) {
        let at = index - self.numbers.start;
        self.thrown[at] = now;
        if let Some(message) = &self.messages[at] {
            network.send(index, message);
        }
    }
}

impl Behaviour for Talkers {
    fn stanza(&mut self, index: usize, stanza: Stanza, now: Instant, network: &mut Network) {
        if stanza.kind != Kind::Message(MessageType::Chat) || !self.talking {
            return;
        }
        self.caught += 1;
        let at = index - self.numbers.start;
        // The first of a pair began: what it catches has made the round.
        if at.is_multiple_of(PAIR) {
            self.round_trips.record(now.duration_since(self.thrown[at]));
        }
        self.throw(index, now, network);
    }

    fn tick(&mut self, _now: Instant, network: &mut Network) {
        if !self.talking && self.board.started() {
            self.talking = true;
            self.begin(network);
        }
    }
}
