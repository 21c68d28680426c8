//! The threads of a run: each drives a swarm, and the thread that made them conducts.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::RunError;
use super::board::Board;
use super::player::{Behaviour, Logins, Players};
use super::population::Population;
use crate::measure::Latencies;
use crate::swarm::{Swarm, SwarmError, Waker};

/// Logins that fail before any succeeds until the run is given up.
const FIRST_FAILURES_MAX: usize = 200;

/// Threads at work.
pub(super) struct Crew<B> {
    pub(super) board: Arc<Board>,
    population: Arc<Population>,
    wakers: Vec<Waker>,
    threads: Vec<JoinHandle<Result<Players<B>, SwarmError>>>,
    started: Instant,
}

/// What the threads brought home.
pub(super) struct Harvest<B> {
    pub(super) logins: LoginSummary,
    pub(super) behaviours: Vec<B>,
}

/// How all logins went.
#[derive(Debug, Default)]
pub(super) struct LoginSummary {
    pub(super) latencies: Latencies,
    /// From the start of the first to the end of the last.
    pub(super) duration: Duration,
    pub(super) failures: BTreeMap<String, usize>,
    pub(super) losses: BTreeMap<String, usize>,
}

impl<B: Behaviour> Crew<B> {
    /// Starts to log in everyone. Clients of one group are in one thread; `behave` makes each thread's behaviour.
    pub(super) fn start(
        population: Population,
        group: usize,
        mut behave: impl FnMut(Range<usize>, &Arc<Board>) -> B,
    ) -> Result<Self, RunError> {
        population.check()?;
        let board = Arc::new(Board::new(population.numbers.len()));
        let population = Arc::new(population);
        let shares = population.shares(group);
        let ramp = population.share_of_ramp(shares.len());
        let mut crew =
            Self { board, population, wakers: Vec::new(), threads: Vec::new(), started: Instant::now() };
        for numbers in shares {
            let swarm = Swarm::new(crew.population.target, numbers.clone()).map_err(SwarmError::Poll)?;
            crew.wakers.push(swarm.waker());
            let behaviour = behave(numbers.clone(), &crew.board);
            let mut players =
                Players::new(Arc::clone(&crew.population), Arc::clone(&crew.board), numbers, ramp, behaviour);
            crew.threads.push(std::thread::spawn(move || {
                let result = swarm.run(&mut players);
                players.board.gone.add(1);
                players.board.notify();
                result.map(|()| players)
            }));
        }
        Ok(crew)
    }

    /// Waits until every login has succeeded or failed. Gives up early when none succeeds.
    pub(super) fn wait_for_logins(self) -> Result<Self, RunError> {
        let hopeless = || self.board.online.value() == 0 && self.board.failed.value() >= FIRST_FAILURES_MAX;
        if self.wait(|| self.board.logins_are_over() || hopeless()) { Ok(self) } else { Err(self.give_up()) }
    }

    /// Ends a run that cannot go on; says why.
    pub(super) fn give_up(self) -> RunError {
        let deadline = self.board.deadline();
        self.finish().err().unwrap_or(deadline)
    }

    /// Waits until something is so; `false` if it is not by the run's deadline, or a thread has died.
    pub(super) fn wait(&self, so: impl FnMut() -> bool) -> bool {
        self.wait_until(self.population.deadline, so)
    }

    /// Waits until something is so, but no longer than `deadline`.
    pub(super) fn wait_until(&self, deadline: Instant, mut so: impl FnMut() -> bool) -> bool {
        let mut is_so = false;
        self.board.wait(deadline.min(self.population.deadline), || {
            is_so = so();
            is_so || self.board.gone.value() > 0
        });
        is_so
    }

    /// Lets time pass, unless a thread dies.
    pub(super) fn pass(&self, duration: Duration) {
        self.wait_until(Instant::now() + duration, || false);
    }

    /// Makes all threads look at the board.
    pub(super) fn wake(&self) {
        self.wakers.iter().for_each(Waker::wake);
    }

    /// Ends the run and collects what there is.
    pub(super) fn finish(self) -> Result<Harvest<B>, RunError> {
        self.board.stop();
        self.wake();
        let mut harvest = Harvest { logins: LoginSummary::default(), behaviours: Vec::new() };
        for thread in self.threads {
            let players = thread.join().map_err(|_| RunError::Panicked)?;
            let players = players?;
            harvest.logins.add(players.logins, self.started);
            harvest.behaviours.push(players.behaviour);
        }
        Ok(harvest)
    }
}

impl LoginSummary {
    fn add(&mut self, logins: Logins, started: Instant) {
        self.latencies.merge(&logins.latencies);
        let duration = logins.last.map(|last| last.duration_since(started)).unwrap_or_default();
        self.duration = self.duration.max(duration);
        for (from, into) in [(logins.failures, &mut self.failures), (logins.losses, &mut self.losses)] {
            for (reason, count) in from {
                *into.entry(reason).or_default() += count;
            }
        }
    }
}
