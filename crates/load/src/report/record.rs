//! Adds up the progress of all workers while a test runs.

use std::collections::BTreeMap;
use std::time::{Instant, SystemTime};

use super::figures::{Cost, Events, ResourceSample};
use super::model::{PhaseReport, PhaseState, Report, Status, WorkerReport};
use super::percentiles::thousandths;
use super::timeline::Timeline;
use super::totals::Totals;
use super::upgrade::{CommandRun, UpgradeReport};
use crate::control::{Event, Progress, Slice};
use crate::plan::{Action, Scenario, Target};

/// The most notes that are kept.
const NOTES_MAX: usize = 100;
/// The busy fraction from which the tester's threads count as saturated.
const TESTER_BUSY: f64 = 0.8;

/// The results of a test so far.
#[derive(Debug)]
pub struct Record {
    id: String,
    scenario: Scenario,
    target: Target,
    started: Instant,
    started_at: SystemTime,
    ended: Option<Instant>,
    phases: Vec<PhaseRecord>,
    /// Of the current second.
    second: Totals,
    timeline: Timeline,
    failed: u64,
    notes: Vec<String>,
    /// The command that is run during a phase, and the phase.
    upgrade: Option<(String, Event)>,
    /// What became of it.
    upgraded: CommandRun,
    /// Slices of the time around it.
    slices: BTreeMap<i32, Slice>,
    first: Option<ResourceSample>,
    last: ResourceSample,
    tester_threads: u32,
}

#[derive(Debug, Default)]
struct PhaseRecord {
    totals: Totals,
    state: PhaseState,
    start: Option<Instant>,
    end: Option<Instant>,
    before: ResourceSample,
    after: ResourceSample,
    online: u32,
}

/// A few figures of a running test, for a display.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The state of the test.
    pub status: Status,
    /// The current phase: its name, its number from 1, and how many there are.
    pub phase: Option<(String, usize, usize)>,
    /// Seconds since the phase began.
    pub phase_seconds: f64,
    /// Players in session.
    pub online: u32,
    /// Players in all.
    pub players: u32,
    /// The last second: the most frequent event and how often it happened.
    pub rate: Option<(String, f64)>,
    /// The last metric seen in the phase: name, median and 99th percentile in milliseconds.
    pub latency: Option<(String, f64, f64)>,
    /// Errors so far by kind, the most frequent first.
    pub errors: Vec<(String, u64)>,
    /// Cores the server keeps busy.
    pub server_cores: Option<f64>,
}

impl Record {
    /// The record of a test that begins now.
    pub fn new(id: String, scenario: Scenario, target: Target) -> Self {
        let phases = scenario.phases.iter().map(|_| PhaseRecord::default()).collect();
        Self {
            id,
            scenario,
            target,
            started: Instant::now(),
            started_at: SystemTime::now(),
            ended: None,
            phases,
            second: Totals::default(),
            timeline: Timeline::default(),
            failed: 0,
            notes: Vec::new(),
            upgrade: None,
            upgraded: CommandRun::default(),
            slices: BTreeMap::new(),
            first: None,
            last: ResourceSample::default(),
            tester_threads: 1,
        }
    }

    /// A command will be run during a phase.
    pub fn plan_upgrade(&mut self, command: String, event: Event) {
        self.upgrade = Some((command, event));
    }

    /// The command was run, or not.
    pub fn upgraded(&mut self, run: CommandRun) {
        self.upgraded = run;
    }

    /// Adds the progress of a worker. What happens before the first phase counts in the first, after the last in the last.
    pub fn add(&mut self, progress: &Progress) {
        self.second.add(progress);
        self.failed += progress.failed;
        for (number, Slice { deliveries, disconnects }) in &progress.slices {
            let slice = self.slices.entry(*number).or_default();
            slice.deliveries += deliveries;
            slice.disconnects += disconnects;
        }
        let last = self.phases.len().saturating_sub(1);
        if let Some(phase) = self.phases.get_mut((progress.position.phase as usize).min(last)) {
            phase.totals.add(progress);
        }
    }

    /// Adds players that failed with their worker, or did not log in in time.
    pub fn add_failed(&mut self, players: u64) {
        self.failed += players;
    }

    /// Players that failed so far.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Adds a note to the report, once.
    pub fn note(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// The name of the scenario.
    pub fn scenario_name(&self) -> &str {
        &self.scenario.name
    }

    /// Adds a latency that the orchestrator measured itself.
    pub fn measured(&mut self, phase: usize, metric: &str, milliseconds: f64) {
        if let Some(phase) = self.phases.get_mut(phase) {
            phase.totals.metrics.entry(metric.to_owned()).or_default().add(milliseconds);
        }
    }

    /// A phase begins; the sample was taken just before.
    pub fn begin(&mut self, phase: usize, at: Instant, sample: ResourceSample) {
        self.first.get_or_insert(sample);
        let told = self.scenario.phases.get(phase).map(|phase| told_if_none(&phase.action));
        if let Some(phase) = self.phases.get_mut(phase) {
            for name in told.unwrap_or_default() {
                phase.totals.counts.entry((*name).to_owned()).or_default();
            }
            phase.state = PhaseState::Running;
            phase.start = Some(at);
            phase.before = sample;
        }
    }

    /// A phase ended; the sample was taken just after.
    pub fn end(&mut self, phase: usize, state: PhaseState, at: Instant, online: u32, sample: ResourceSample) {
        self.last = sample;
        if let Some(phase) = self.phases.get_mut(phase) {
            (phase.state, phase.end, phase.online, phase.after) = (state, Some(at), online, sample);
        }
    }

    /// A second is over.
    pub fn tick(&mut self, online: u32, sample: ResourceSample) {
        let second = std::mem::take(&mut self.second);
        let at = self.started.elapsed().as_secs_f64();
        self.timeline.close(at, &second, online, sample.server, sample.tester_cpu_s);
    }

    /// The test is over.
    pub fn close(&mut self) {
        let now = *self.ended.get_or_insert_with(Instant::now);
        for phase in self.phases.iter_mut().filter(|phase| phase.state == PhaseState::Running) {
            (phase.state, phase.end) = (PhaseState::GivenUp, Some(now));
        }
        for at in 0..self.phases.len() {
            if let Some(note) = self.late_note(at) {
                self.note(note);
            }
        }
    }

    /// A note about late sends of a phase, and whether the tester was saturated.
    fn late_note(&self, at: usize) -> Option<String> {
        let phase = &self.phases[at];
        let late = phase.totals.counts.get("late").copied().filter(|late| *late > 0)?;
        let (start, end) = (phase.start?, phase.end?);
        let seconds = end.saturating_duration_since(start).as_secs_f64().max(0.001);
        let cores = (phase.after.tester_cpu_s - phase.before.tester_cpu_s).max(0.0) / seconds;
        let name = self.scenario.phases[at].name();
        let said = format!("{name}: {late} sends left more than 10 ms after they were due");
        Some(if cores >= TESTER_BUSY * f64::from(self.tester_threads.max(1)) {
            format!(
                "{said}: the load tester was at its limit ({cores:.2} cores busy, {} threads). Use more workers or threads.",
                self.tester_threads
            )
        } else {
            format!(
                "{said}. The load tester itself was not busy ({cores:.2} cores): the machine was, or connections \
                 were not there in time. Latencies count from when a send was due."
            )
        })
    }

    /// Sets the number of threads of all workers together.
    pub fn set_tester_threads(&mut self, threads: u32) {
        self.tester_threads = threads;
    }

    /// A few figures for a display that is redrawn often.
    pub fn snapshot(&self, status: Status, online: u32) -> Snapshot {
        let running = self.phases.iter().rposition(|phase| phase.state != PhaseState::Ahead);
        let named = running.map(|at| (self.scenario.phases[at].name().to_owned(), at + 1, self.phases.len()));
        let totals = running.map(|at| &self.phases[at].totals);
        let latency = totals.and_then(|totals| {
            let (name, digest) = totals.metrics.iter().next()?;
            let [p50, p99] = digest.quantiles([0.5, 0.99])?;
            Some((name.clone(), p50, p99))
        });
        let row = self.timeline.rows().last();
        let busiest = row.and_then(|row| row.rates.iter().max_by(|a, b| a.1.total_cmp(b.1)));
        Snapshot {
            status,
            phase: named,
            phase_seconds: running
                .and_then(|at| self.phases[at].start)
                .map_or(0.0, |start| start.elapsed().as_secs_f64()),
            online,
            players: self.scenario.players.count,
            rate: busiest.map(|(name, rate)| (name.clone(), *rate)),
            latency,
            errors: self.errors(),
            server_cores: row.and_then(|row| row.server_cores),
        }
    }

    fn errors(&self) -> Vec<(String, u64)> {
        let mut all: BTreeMap<&String, u64> = BTreeMap::new();
        for (kind, count) in self.phases.iter().flat_map(|phase| &phase.totals.errors) {
            *all.entry(kind).or_default() += count;
        }
        let mut all: Vec<_> = all.into_iter().map(|(kind, count)| (kind.clone(), count)).collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        all
    }

    /// The report so far.
    pub fn report(&self, status: Status, reason: Option<String>, workers: Vec<WorkerReport>) -> Report {
        let mut whole = Totals::default();
        self.phases.iter().for_each(|phase| whole.join(&phase.totals));
        let players = self.scenario.players.count;
        let failed = self.failed.min(players.into());
        let succeeded = if self.scenario.first_login().is_some() {
            whole.counts.get("logins").copied().unwrap_or_default().min(players.into())
        } else {
            players.into()
        };
        let phases: Vec<_> = (0..self.phases.len()).map(|at| self.phase(at)).collect();
        let now = self.ended.unwrap_or_else(Instant::now);
        let seconds = now.saturating_duration_since(self.started).as_secs_f64();
        let events = self.events(&whole.counts, seconds, false, 0);
        let first = self.first.unwrap_or_default();
        let mut report = Report {
            load_test_id: self.id.clone(),
            status,
            reason,
            shortfalls: Vec::new(),
            successful: succeeded.min(u64::from(players) - failed),
            failed,
            assertions: Vec::new(),
            comparison: None,
            metrics: whole.percentiles(),
            histograms: whole.histograms(),
            started_at: super::text::rfc3339(self.started_at),
            seconds: thousandths(seconds),
            players,
            rates: rates_of_busy_phases(&phases),
            counts: whole.counts.clone(),
            errors: whole.errors.clone(),
            notes: self.notes.clone(),
            server: Cost::of_server(&first, &self.last, None, &events),
            tester: Cost::of_tester(&first, &self.last, None, &events),
            upgrade: self.upgrade_report(),
            phases,
            workers,
            timeline: self.timeline.rows().to_vec(),
            scenario: self.scenario.clone(),
            target: (&self.target).into(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        report.judge();
        report
    }

    fn upgrade_report(&self) -> Option<UpgradeReport> {
        let (command, event) = self.upgrade.as_ref()?;
        let at = event.phase as usize;
        let phase = self.phases.get(at)?;
        // There is nothing to tell before its phase.
        let due = phase.start?.saturating_duration_since(self.started) + event.at.0;
        let name = self.scenario.phases[at].name().to_owned();
        let (due, run) = (due.as_secs_f64(), &self.upgraded);
        let (command, slices) = (command.clone(), &self.slices);
        Some(UpgradeReport::new(command, name, due, run, self.started, &phase.totals, slices))
    }

    fn phase(&self, at: usize) -> PhaseReport {
        let (phase, plan) = (&self.phases[at], &self.scenario.phases[at]);
        let start = phase.start.unwrap_or(self.started);
        let end = phase.end.or(self.ended).unwrap_or_else(Instant::now);
        let seconds = phase.start.map_or(0.0, |start| end.saturating_duration_since(start).as_secs_f64());
        let idle = matches!(plan.action, Action::Hold { .. });
        let events = self.events(&phase.totals.counts, seconds, idle, phase.online);
        let done = phase.end.is_some();
        PhaseReport {
            name: plan.name().to_owned(),
            action: plan.action.name().to_owned(),
            state: phase.state,
            start_seconds: thousandths(start.saturating_duration_since(self.started).as_secs_f64()),
            seconds: thousandths(seconds),
            online: phase.online,
            metrics: phase.totals.percentiles(),
            rates: phase.totals.rates(seconds),
            counts: phase.totals.counts.clone(),
            errors: phase.totals.errors.clone(),
            timed_out: phase.state == PhaseState::TimedOut,
            server: Cost::of_server(&phase.before, &phase.after, self.first.as_ref(), &events)
                .filter(|_| done),
            tester: if done {
                Cost::of_tester(&phase.before, &phase.after, self.first.as_ref(), &events)
            } else {
                Cost::default()
            },
        }
    }

    fn events<'a>(
        &self,
        counts: &'a BTreeMap<String, u64>,
        seconds: f64,
        idle: bool,
        online: u32,
    ) -> Events<'a> {
        // The kernel's figures are read only where the server is on this machine; so are workers over loopback.
        let host = self.target.address.rsplit_once(':').map_or("", |(host, _)| host);
        let both_ends = host.starts_with("127.") || matches!(host, "localhost" | "[::1]" | "::1");
        Events { counts, seconds, idle, online, both_ends }
    }
}

/// Counts of an action that are reported even if nothing of the kind happened: that is what one wants to know.
fn told_if_none(action: &Action) -> &'static [&'static str] {
    match action {
        Action::Resume(_) => &[
            "streams_resumed",
            "not_resumed",
            "resent",
            "redelivered",
            "missing",
            "duplicates",
            "out_of_order",
        ],
        Action::Talk(_) | Action::Publish(_) | Action::Speak(_) => {
            &["deliveries", "missing", "duplicates", "out_of_order"]
        }
        Action::Play(_) => &["deliveries", "missing", "duplicates", "out_of_order"],
        Action::Notify(_) => &["deliveries", "receipts", "missing", "duplicates", "missing_receipts"],
        Action::Befriend(_) => &["mutual_contacts", "missing"],
        Action::EnterRooms(_) => &["entered"],
        Action::ReadArchive(_) => &["pages", "archived", "archived_in_test", "duplicates"],
        Action::Arrive(_) => &["rosters", "mutual_contacts", "presences", "missing", "duplicates"],
        _ => &[],
    }
}

/// Events per second over the phases in which there were any.
fn rates_of_busy_phases(phases: &[PhaseReport]) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<String, (u64, f64)> = BTreeMap::new();
    for phase in phases {
        for (name, count) in phase.counts.iter().filter(|(_, count)| **count > 0) {
            let sum = sums.entry(name.clone()).or_default();
            *sum = (sum.0 + count, sum.1 + phase.seconds);
        }
    }
    let rate = |(count, seconds): (u64, f64)| thousandths(count as f64 / seconds.max(0.001));
    sums.into_iter().map(|(name, sum)| (name, rate(sum))).collect()
}
