//! Runs the tests of the queue, one after the other: the workers prepare, then go through the phases step by step.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::command::{CommandOutcome, ScheduledCommand};
use super::request::PlannedTest;
use super::running_test::{RunningTest, SilenceLimits};
use super::session_watch::SessionWatch;
use super::shares::{group, share_out};
use super::state::{OrchestratorState, SharedState};
use crate::control::{Fault, Job, Order, Position};
use crate::measure::Reading;
use crate::plan::{Action, Phase};
use crate::report::{CommandRun, PhaseState, ResourceSample, Status};

/// How long a test waits for enough workers.
const WORKERS_WAIT: Duration = Duration::from_secs(30);
/// The time limit of preparation, in which workers check the target and derive keys.
const PREPARE_WAIT: Duration = Duration::from_secs(120);
/// The time limit for workers to close their connections.
const FINISH_WAIT: Duration = Duration::from_secs(15);
/// The delay between the order for a step and its start, in which the order reaches all workers.
const START_DELAY: Duration = Duration::from_millis(20);
/// How often the workers are checked for silence.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long the end of a phase waits for the command that ran in it.
const UPGRADE_WAIT: Duration = Duration::from_secs(60);
/// How often the server is measured.
const SECOND: Duration = Duration::from_secs(1);

/// Why a test ended early.
enum End {
    Aborted,
    Fault(Fault),
    Failed(String),
}

/// Runs the tests of the queue, one after the other, until the orchestrator ends.
pub(super) fn run_queue(shared: &Arc<SharedState>, silence_limits: SilenceLimits) {
    loop {
        let next = {
            let mut state = shared.lock();
            loop {
                if state.closing {
                    return;
                }
                if let Some(next) = state.start_next() {
                    break next;
                }
                state = shared.wait(state, SECOND);
            }
        };
        let (test, plan) = next;
        let runner = TestRunner { shared, plan: &plan, silence_limits, test };
        let (status, reason) = runner.run();
        shared.lock().end(status, reason);
        shared.notify();
    }
}

/// Runs one test.
struct TestRunner<'a> {
    shared: &'a SharedState,
    plan: &'a PlannedTest,
    silence_limits: SilenceLimits,
    test: String,
}

impl TestRunner<'_> {
    fn run(&self) -> (Status, Option<String>) {
        let (stop, stopped) = mpsc::sync_channel::<()>(0);
        let end = thread::scope(|scope| {
            let looking = scope.spawn(move || self.record_timeline(&stopped));
            let end = self.prepare().and_then(|()| self.phases());
            // The closing of connections is no part of the test and its timeline.
            drop(stop);
            // Even if the thread panicked, the workers have to learn that the test is over.
            let _ = looking.join();
            self.finish();
            end
        });
        match end {
            Ok(()) => (Status::Completed, None),
            Err(End::Aborted) => (Status::Aborted, Some("The test was aborted.".to_owned())),
            Err(End::Failed(why)) => (Status::Failed, Some(why)),
            Err(End::Fault(Fault::Lacks { feature, why })) => {
                (Status::Unsupported, Some(format!("The scenario needs {feature}: {why}.")))
            }
            Err(End::Fault(Fault::Target { why } | Fault::Worker { why })) => (Status::Failed, Some(why)),
        }
    }

    /// Distributes the players and waits until all workers are prepared.
    fn prepare(&self) -> Result<(), End> {
        let (players, group) = (self.plan.scenario.players.count, group(&self.plan.scenario));
        let mut state = self.shared.lock();
        let deadline = Instant::now() + WORKERS_WAIT;
        let shares = loop {
            self.check(&mut state)?;
            if let Some(shares) = self.shares(&mut state, players, group) {
                break shares;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(End::Failed(self.too_few_workers(&mut state)));
            }
            state = self.shared.wait(state, left);
        };
        let mut first = 0;
        for (at, (id, name, count)) in shares.into_iter().enumerate() {
            let job = Job {
                test: self.test.clone(),
                scenario: self.plan.scenario.clone(),
                target: self.plan.target.clone(),
                first,
                count,
                total: players,
                publishes: at == 0,
                threads: self.plan.threads,
                event: self.plan.upgrade.as_ref().map(|upgrade| upgrade.event),
                clock_offset_ns: 0,
            };
            first += count;
            current(&mut state).join(id, name, count);
            state.workers.order(id, Order::Prepare(Box::new(job)));
        }
        let workers = current(&mut state).participants.len() as u32;
        current(&mut state).record.set_tester_threads(workers.saturating_mul(self.plan.threads));
        drop(state);
        match self.barrier(Position::default(), Instant::now() + PREPARE_WAIT)? {
            true => Ok(()),
            false => {
                Err(End::Failed(format!("Not all workers were ready within {} s.", PREPARE_WAIT.as_secs())))
            }
        }
    }

    /// The number of players of each worker, if there is room for all.
    fn shares(
        &self,
        state: &mut OrchestratorState,
        players: u32,
        group: u32,
    ) -> Option<Vec<(u32, String, u32)>> {
        let workers: Vec<_> = state
            .workers
            .present()
            .map(|(id, registration)| (id, registration.name.clone(), registration.players_max))
            .collect();
        let wanted = self.plan.workers.map_or(workers.len(), |wanted| wanted as usize);
        let workers = workers.get(..wanted).filter(|workers| !workers.is_empty())?;
        let capacities: Vec<u32> = workers.iter().map(|worker| worker.2).collect();
        let shares = share_out(players, group, &capacities)?;
        let shares = workers.iter().zip(shares).filter(|(_, share)| *share > 0);
        Some(shares.map(|((id, name, _), share)| (*id, name.clone(), share)).collect())
    }

    fn too_few_workers(&self, state: &mut OrchestratorState) -> String {
        let (mut count, mut room) = (0, 0);
        for (_, registration) in state.workers.present() {
            (count, room) = (count + 1, room + u64::from(registration.players_max));
        }
        let players = self.plan.scenario.players.count;
        let wanted = self.plan.workers.map_or(String::new(), |wanted| format!("{wanted} "));
        format!(
            "{players} players need {wanted}workers with room for them; {count} workers with room for {room} are \
             there. Start more with carillon-load worker."
        )
    }

    fn phases(&self) -> Result<(), End> {
        let baseline = self.plan.sessions.count();
        let mut watch: Option<SessionWatch> = None;
        for (at, phase) in self.plan.scenario.phases.iter().enumerate() {
            let next = self.plan.scenario.phases.get(at + 1);
            if matches!(phase.action, Action::AwaitGone) {
                let watch = watch.take().map_or_else(|| self.watch(&baseline), Some);
                self.await_gone(at, phase, watch, baseline.as_ref().err())?;
                continue;
            }
            // The time until the sessions are gone counts from the drop, so the watch starts before it.
            if matches!(phase.action, Action::Drop)
                && next.is_some_and(|next| next.action == Action::AwaitGone)
            {
                watch = self.watch(&baseline);
            }
            self.require_players(phase)?;
            self.phase(at, phase)?;
        }
        Ok(())
    }

    /// Fails if no player is left for a phase that needs players.
    fn require_players(&self, phase: &Phase) -> Result<(), End> {
        let needs_players =
            !phase.action.logs_in() && !matches!(phase.action, Action::Drop | Action::AwaitGone);
        let mut state = self.shared.lock();
        let current = current(&mut state);
        if needs_players && self.plan.scenario.first_login().is_some() && current.online() == 0 {
            let reached = phase.name();
            return Err(End::Failed(format!("No player was in session when {reached} was to begin.")));
        }
        Ok(())
    }

    fn watch(&self, baseline: &Result<u64, String>) -> Option<SessionWatch> {
        let baseline = *baseline.as_ref().ok()?;
        Some(SessionWatch::start(self.plan.sessions.clone(), baseline))
    }

    fn phase(&self, at: usize, phase: &Phase) -> Result<(), End> {
        let index = u32::try_from(at).unwrap_or(u32::MAX);
        let before = self.sample();
        let start_delay = self.start_delay();
        let deadline = Instant::now() + start_delay + phase.timeout.0;
        current(&mut self.shared.lock()).record.begin(at, Instant::now() + start_delay, before);
        let upgrade = self.plan.upgrade.as_ref().filter(|upgrade| upgrade.event.phase == index);
        let upgrade = upgrade.map(|upgrade| {
            let at = Instant::now() + start_delay + upgrade.event.at.0;
            ScheduledCommand::start(&upgrade.command, at)
        });
        let in_time = self.steps(index, phase, start_delay, deadline);
        if let Some(upgrade) = upgrade {
            let outcome = upgrade.finish(UPGRADE_WAIT);
            current(&mut self.shared.lock()).record.upgraded(outcome.into());
        }
        let in_time = in_time?;
        let ended = Instant::now();
        let after = self.sample();
        let mut state = self.shared.lock();
        let current = current(&mut state);
        // Whoever is neither in session nor known to have failed never got in: time, or the shape of a rate, ran out.
        if phase.action.logs_in() {
            let known = u64::from(current.online()) + current.record.failed();
            let missing = u64::from(current.players_left()).saturating_sub(known);
            current.record.add_failed(missing);
        }
        let end = if in_time { PhaseState::Done } else { PhaseState::TimedOut };
        let online = current.online();
        current.record.end(at, end, ended, online, after);
        Ok(())
    }

    /// Takes the workers through the steps of a phase; `false` if its time ran out.
    fn steps(
        &self,
        index: u32,
        phase: &Phase,
        start_delay: Duration,
        deadline: Instant,
    ) -> Result<bool, End> {
        for step in 1..=phase.action.steps() {
            let position = Position { phase: index, step };
            let begin = Order::Begin {
                test: self.test.clone(),
                position,
                at_unix_ns: unix_ns(SystemTime::now() + start_delay),
            };
            self.order(&begin);
            if !self.barrier(position, deadline)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits until the server has no more sessions than before the test.
    fn await_gone(
        &self,
        at: usize,
        phase: &Phase,
        watch: Option<SessionWatch>,
        unknown: Option<&String>,
    ) -> Result<(), End> {
        let before = self.sample();
        current(&mut self.shared.lock()).record.begin(at, Instant::now(), before);
        let deadline = Instant::now() + phase.timeout.0;
        let mut outcome = None;
        if let Some(watch) = &watch {
            let mut state = self.shared.lock();
            while outcome.is_none() && Instant::now() < deadline {
                self.check(&mut state)?;
                self.check_workers(&mut state)?;
                state = self.shared.wait(state, SESSION_POLL_INTERVAL);
                outcome = watch.outcome();
            }
        }
        drop(watch);
        let (ended, after) = (Instant::now(), self.sample());
        let mut state = self.shared.lock();
        let current = current(&mut state);
        let name = phase.name();
        let end = match outcome {
            Some(Ok(gone)) => {
                current.record.measured(at, "gone", gone.as_secs_f64() * 1000.0);
                PhaseState::Done
            }
            // Where sessions are to be counted and are not, nobody knows whether they are gone.
            Some(Err(why)) => {
                current.record.note(format!("The phase {name} was given up: {why}."));
                PhaseState::GivenUp
            }
            None if let Some(why) = unknown => {
                let (words, state) = match self.plan.sessions.is_known() {
                    true => ("given up", PhaseState::GivenUp),
                    false => ("skipped", PhaseState::Skipped),
                };
                current.record.note(format!("The phase {name} was {words}: {why}."));
                state
            }
            None => PhaseState::TimedOut,
        };
        let online = current.online();
        current.record.end(at, end, ended, online, after);
        Ok(())
    }

    /// Tells the workers to close their connections, and waits for them for a limited time.
    fn finish(&self) {
        self.order(&Order::Finish { test: self.test.clone() });
        {
            let mut state = self.shared.lock();
            let current = current(&mut state);
            (current.fault, current.aborted) = (None, false);
        }
        let _ = self.barrier(Position::behind(&self.plan.scenario), Instant::now() + FINISH_WAIT);
    }

    /// Waits until all remaining workers are done with a step; `false` on timeout.
    fn barrier(&self, position: Position, deadline: Instant) -> Result<bool, End> {
        let mut state = self.shared.lock();
        loop {
            self.check(&mut state)?;
            self.check_workers(&mut state)?;
            let current = current(&mut state);
            if current.all_done(position) {
                return Ok(true);
            }
            let all = u64::from(self.plan.scenario.players.count);
            if current.online() == 0 && current.record.failed() >= all {
                return Err(End::Failed("All players failed.".to_owned()));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            state = self.shared.wait(state, left.min(POLL_INTERVAL));
        }
    }

    fn check(&self, state: &mut OrchestratorState) -> Result<(), End> {
        let closing = state.closing;
        let current = current(state);
        if current.aborted || closing {
            return Err(End::Aborted);
        }
        current.fault.clone().map_or(Ok(()), |fault| Err(End::Fault(fault)))
    }

    /// Asks silent workers for their progress, and gives up those that stay silent.
    fn check_workers(&self, state: &mut OrchestratorState) -> Result<(), End> {
        let current = current(state);
        let silent = current.silent(Instant::now(), self.silence_limits);
        let no_workers = current.has_no_workers();
        silent.asked.into_iter().for_each(|id| state.workers.order(id, Order::Report));
        silent.lost.into_iter().for_each(|id| state.workers.remove(id));
        if no_workers { Err(End::Failed("All workers were lost.".to_owned())) } else { Ok(()) }
    }

    fn order(&self, order: &Order) {
        let mut state = self.shared.lock();
        let ids: Vec<u32> = current(&mut state).left().map(|(id, _)| id).collect();
        ids.into_iter().for_each(|id| state.workers.order(id, order.clone()));
    }

    /// The start delay for workers with these clock errors.
    fn start_delay(&self) -> Duration {
        let mut state = self.shared.lock();
        let bound = current(&mut state).clock_bound_ms();
        START_DELAY + Duration::from_secs_f64(bound * 4.0 / 1000.0)
    }

    /// Measures all resources now.
    fn sample(&self) -> ResourceSample {
        let server = self.read_server();
        let sample = current(&mut self.shared.lock()).sample(server);
        ResourceSample { kernel: self.plan.server.kernel(), ..sample }
    }

    fn read_server(&self) -> Option<Reading> {
        self.plan.server.read().unwrap_or_else(|error| {
            let mut state = self.shared.lock();
            current(&mut state)
                .record
                .note(format!("The server's figures could not be read at times: {error}."));
            None
        })
    }

    /// Adds a row per second to the timeline, and one for the rest.
    fn record_timeline(&self, stopped: &mpsc::Receiver<()>) {
        let mut next = Instant::now() + SECOND;
        loop {
            let left = next.saturating_duration_since(Instant::now());
            let over = stopped.recv_timeout(left) != Err(RecvTimeoutError::Timeout);
            let server = self.read_server();
            let mut state = self.shared.lock();
            let current = current(&mut state);
            let (online, sample) = (current.online(), current.sample(server));
            current.record.tick(online, sample);
            drop(state);
            if over {
                return;
            }
            next += SECOND;
        }
    }
}

/// How often the watch is checked.
const SESSION_POLL_INTERVAL: Duration = Duration::from_millis(5);

impl From<CommandOutcome> for CommandRun {
    fn from(outcome: CommandOutcome) -> Self {
        let CommandOutcome { started, took, exit_code, problem, output } = outcome;
        Self { started, took, exit_code, problem, output }
    }
}

fn current(state: &mut OrchestratorState) -> &mut RunningTest {
    &mut state.running.as_mut().expect("only the runner ends the test that it runs").1
}

/// A time in nanoseconds since the Unix epoch.
pub(super) fn unix_ns(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
