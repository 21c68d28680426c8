//! Everyone subscribes to a topic; then one item a round is published, and each delivery is timed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use carillon_wire::jid::Jid;
use carillon_wire::stanza::{Kind, Stanza};

use super::RunError;
use super::board::Board;
use super::crew::Crew;
use super::login_storm::report_logins;
use super::meter::Meter;
use super::player::Behaviour;
use super::population::Population;
use super::publisher::Publisher;
use crate::client::stanzas;
use crate::measure::{Latencies, Processes};
use crate::report::Report;
use crate::swarm::Network;

/// The id of a subscription request.
const SUBSCRIBE_ID: &str = "subscribe";

/// A fan-out to everyone.
#[derive(Debug)]
pub struct Fanout {
    /// Who receives.
    pub population: Population,
    /// The pubsub service.
    pub service: Jid,
    /// The topic.
    pub topic: String,
    /// Whether to subscribe everyone first.
    pub subscribe: bool,
    /// How many items are published, one after the other.
    pub rounds: usize,
    /// About the size of an item's payload.
    pub payload_bytes: usize,
    /// How long a round may take.
    pub round_timeout: Duration,
    /// The server's processes, to measure what it spends.
    pub server: Processes,
}

/// One round as it went.
#[derive(Clone, Copy, Debug)]
struct Round {
    delivered: usize,
    first: Duration,
    median: Duration,
    last: Duration,
}

/// What the conductor and the threads share of the round under way.
#[derive(Debug)]
struct Tracker {
    epoch: Instant,
    /// Which round, counted from 1; items of others are strays.
    round: AtomicU64,
    /// Tells our items from those of earlier runs.
    run: String,
    /// Times of deliveries since the epoch, from all threads.
    deliveries: Mutex<Vec<Duration>>,
}

/// The subscribers of one thread.
struct Subscribers {
    board: Arc<Board>,
    tracker: Arc<Tracker>,
    subscription: Option<(Jid, String)>,
    /// The mark of the round whose deliveries are counted now.
    mark: (u64, String),
    deliveries: Vec<Duration>,
    subscribed: usize,
    refused: usize,
}

impl Fanout {
    /// Runs it, with items from this publisher.
    pub fn run(self, mut publisher: Publisher) -> Result<Report, RunError> {
        let meter = Meter::start(&self.server)?;
        let mut report = Report::new("fanout");
        let tracker = Arc::new(Tracker::new());
        let subscription = self.subscribe.then(|| (self.service.clone(), self.topic.clone()));
        let crew = Crew::start(self.population, 1, |_, board| {
            Subscribers::new(Arc::clone(board), Arc::clone(&tracker), subscription.clone())
        })?
        .wait_for_logins()?;
        let board = Arc::clone(&crew.board);
        let subscribed = || board.done.value() + board.refused.value() + board.lost.value();
        if board.online.value() > 0 && !crew.wait(|| subscribed() >= board.online.value()) {
            return Err(crew.give_up());
        }
        let subscribers = board.done.value();
        meter.report_memory(subscribers, &mut report)?;

        let before = meter.spent()?;
        let mut rounds = Vec::new();
        for number in 1..=self.rounds {
            let expected = subscribers.saturating_sub(board.lost.value());
            if expected == 0 {
                break;
            }
            let text = tracker.begin(number as u64, self.payload_bytes);
            let published = Instant::now();
            publisher.publish(&text)?;
            crew.wait_until(published + self.round_timeout, || tracker.delivered() >= expected);
            rounds.push(tracker.end(published));
        }
        let spent = meter.spent()?.since(before);

        let online = board.online.value();
        let refused = board.refused.value();
        let mut logins = crew.finish()?.logins;
        report_rounds(&rounds, subscribers, &mut report);
        let delivered: usize = rounds.iter().map(|round| round.delivered).sum();
        spent.report(delivered, "deliveries", &mut report);
        report_logins(&mut logins, online, &mut report);
        let missing = subscribers * self.rounds - delivered.min(subscribers * self.rounds);
        let problems = [("subscription refused", refused), ("delivery missing", missing)];
        let problems = problems.into_iter().filter(|(_, count)| *count > 0);
        let problems = problems.map(|(reason, count)| (reason.to_owned(), count)).collect();
        report.problems("fan-out", "fanout_failures", &problems);
        Ok(report)
    }
}

fn report_rounds(rounds: &[Round], subscribers: usize, report: &mut Report) {
    report.value("subscribers", subscribers);
    let mut part = |name: &str, key: &str, part: fn(&Round) -> Duration| {
        let mut latencies = Latencies::default();
        rounds.iter().for_each(|round| latencies.record(part(round)));
        let percentiles = latencies.percentiles();
        report.line(name, format_args!("{percentiles} ({} rounds)", rounds.len()));
        report.value(key, percentiles.json());
    };
    part("first delivery", "first", |round| round.first);
    part("median delivery", "median", |round| round.median);
    part("last delivery", "last", |round| round.last);
    let each = rounds.iter().map(|round| {
        serde_json::json!({
            "delivered": round.delivered,
            "first_ms": round.first.as_secs_f64() * 1000.0,
            "median_ms": round.median.as_secs_f64() * 1000.0,
            "last_ms": round.last.as_secs_f64() * 1000.0,
        })
    });
    report.value("rounds", each.collect::<Vec<_>>());
}

impl Tracker {
    fn new() -> Self {
        // Unique enough to tell runs apart: a retained item of an earlier one must not be counted.
        let run = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_micros();
        Self {
            epoch: Instant::now(),
            round: AtomicU64::new(0),
            run: format!("{run:x}"),
            deliveries: Mutex::default(),
        }
    }

    fn mark(&self, round: u64) -> String {
        format!("load-{}-{round:08}", self.run)
    }

    /// Begins a round; gives the text to publish.
    fn begin(&self, round: u64, payload_bytes: usize) -> String {
        self.lock().clear();
        self.round.store(round, Ordering::Release);
        let mark = self.mark(round);
        let padding = payload_bytes.saturating_sub(mark.len() + 12);
        format!("{mark}-{}", "x".repeat(padding))
    }

    fn delivered(&self) -> usize {
        self.lock().len()
    }

    /// Ends a round that began to be published at this time.
    fn end(&self, published: Instant) -> Round {
        let mut times = std::mem::take(&mut *self.lock());
        times.sort_unstable();
        let offset = published.duration_since(self.epoch);
        let at = |index: usize| times.get(index).map_or(Duration::ZERO, |time| time.saturating_sub(offset));
        Round {
            delivered: times.len(),
            first: at(0),
            median: at(times.len() / 2),
            last: at(times.len().saturating_sub(1)),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Duration>> {
        // A list of times is whole whatever panicked.
        self.deliveries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscribers {
    fn new(board: Arc<Board>, tracker: Arc<Tracker>, subscription: Option<(Jid, String)>) -> Self {
        let mark = (0, tracker.mark(0));
        Self { board, tracker, subscription, mark, deliveries: Vec::new(), subscribed: 0, refused: 0 }
    }

    fn is_of_this_round(&mut self, stanza: &Stanza) -> bool {
        let round = self.tracker.round.load(Ordering::Acquire);
        if self.mark.0 != round {
            self.mark = (round, self.tracker.mark(round));
        }
        std::str::from_utf8(stanza.payload.bytes()).is_ok_and(|text| text.contains(&self.mark.1))
    }
}

impl Behaviour for Subscribers {
    fn ready(&mut self, index: usize, network: &mut Network) {
        match (&self.subscription, network.jid(index)) {
            (Some((service, topic)), Some(jid)) => {
                let request = stanzas::subscribe(service.clone(), topic, jid).with_id(SUBSCRIBE_ID);
                network.send(index, &request);
            }
            _ => self.subscribed += 1,
        }
    }

    fn stanza(&mut self, _index: usize, stanza: Stanza, now: Instant, _network: &mut Network) {
        if matches!(stanza.kind, Kind::Message(_)) && self.is_of_this_round(&stanza) {
            self.deliveries.push(now.duration_since(self.tracker.epoch));
        } else if stanzas::is_response(&stanza, SUBSCRIBE_ID) {
            if stanza.kind.is_error() { self.refused += 1 } else { self.subscribed += 1 }
        }
    }

    fn tick(&mut self, _now: Instant, _network: &mut Network) {
        let news = self.deliveries.len() + self.subscribed + self.refused;
        if news == 0 {
            return;
        }
        self.tracker.lock().append(&mut self.deliveries);
        self.board.done.add(std::mem::take(&mut self.subscribed));
        self.board.refused.add(std::mem::take(&mut self.refused));
        self.board.notify();
    }
}
