//! A worker's engine: it takes a [`Job`] and takes its share of the players through the steps of a test.
//!
//! ```text
//! Engine ──StepStart──► player_group (a thread and a swarm each) ──► actions/: what players do in a phase
//!    ▲                  publisher, notifier (a thread each)
//!    └── recorders: counts and latencies ◄──┘      barrier: threads that are not done with the step
//! ```
//!
//! Load is open-loop: each send has a time at which it is due, and latencies count from that time even when this process
//! is late. Only `talk` and `publish` without a rate are closed loops.

mod actions;
mod api;
mod arrivals;
mod barrier;
mod clock;
mod context;
mod keepalive;
pub mod link;
mod mark;
mod matches;
mod notifier;
mod player_group;
mod player_states;
mod preflight;
mod publisher;
mod quic;
mod receipts;
mod recorder;
mod ring;
mod rooms;
mod schedule;
mod setup;
mod step;
mod thread;
mod watch;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::control::{Fault, Job, Position, Progress};
use crate::measure::Usage;
use crate::swarm::Swarm;
use barrier::StepBarrier;
use player_group::PlayerGroup;
use setup::Setup;
use step::StepStart;
use thread::WorkerThread;

/// The age at which the process's memory is measured again: measuring walks all of its pages.
const MEMORY_AGE: Duration = Duration::from_secs(2);

/// A running job.
#[derive(Debug)]
pub struct Engine {
    setup: Arc<Setup>,
    barrier: Arc<StepBarrier>,
    threads: Vec<WorkerThread>,
    position: Position,
    sequence: u64,
    usage: Usage,
    usage_taken: Option<Instant>,
}

impl Engine {
    /// Checks the job, checks that the target can be reached and has what the scenario needs, and starts the threads. No
    /// player is connected when it returns.
    pub fn prepare(job: Job) -> Result<Self, Fault> {
        let setup = Arc::new(Setup::new(job)?);
        preflight::check(&setup)?;
        let barrier = Arc::new(StepBarrier::default());
        let threads = spawn(&setup, &barrier)?;
        Ok(Self {
            setup,
            barrier,
            threads,
            position: Position::default(),
            sequence: 0,
            usage: Usage::default(),
            usage_taken: None,
        })
    }

    /// Begins a step at a time of the orchestrator's clock. A step that is still running is abandoned.
    pub fn begin(&mut self, position: Position, at_unix_ns: u64) {
        self.position = position;
        let serial = self.barrier.begin(self.threads.len());
        let at = self.setup.clock.instant(at_unix_ns);
        for thread in &self.threads {
            thread.begin(StepStart { serial, position, at });
        }
    }

    /// What happened since the last call, and the current state.
    pub fn progress(&mut self) -> Progress {
        self.sequence += 1;
        let mut progress = Progress {
            test: self.setup.job.test.clone(),
            sequence: self.sequence,
            position: self.position,
            // Before the recorders are read: what a finished step did is in them.
            done: self.barrier.all_done(),
            fault: self.barrier.failure(),
            ..Progress::default()
        };
        for thread in &self.threads {
            thread.recorder.take_into(&mut progress);
        }
        let usage = self.usage();
        progress.cpu_s = usage.cpu.as_secs_f64();
        progress.pss_bytes = usage.pss_bytes;
        progress
    }

    /// Waits until this worker's share of the step is done or the worker has failed; `false` on timeout.
    pub fn wait(&self, timeout: Duration) -> bool {
        self.barrier.wait(timeout)
    }

    /// Ends all connections and threads, and returns the last progress.
    pub fn finish(mut self) -> Progress {
        let threads = std::mem::take(&mut self.threads);
        let recorders: Vec<_> = threads.iter().map(|thread| Arc::clone(&thread.recorder)).collect();
        threads.into_iter().for_each(WorkerThread::stop);
        let mut progress = self.progress();
        for recorder in recorders {
            recorder.take_into(&mut progress);
        }
        progress.online = 0;
        if let Err(error) = self.setup.write_keys() {
            *progress.errors.entry(format!("key cache: {}", error.kind())).or_default() += 1;
        }
        progress
    }

    fn usage(&mut self) -> Usage {
        if self.usage_taken.is_none_or(|taken| taken.elapsed() >= MEMORY_AGE) {
            // Without its own figures a worker reports none, and continues.
            self.usage = Usage::of_self().unwrap_or(self.usage);
            self.usage_taken = Some(Instant::now());
        }
        self.usage
    }
}

/// Starts the threads that a job needs.
fn spawn(setup: &Arc<Setup>, barrier: &Arc<StepBarrier>) -> Result<Vec<WorkerThread>, Fault> {
    let mut threads = Vec::new();
    for numbers in setup.shares() {
        let swarm = Swarm::new(setup.addresses.clone(), numbers.clone())
            .map_err(|error| setup::worker(format!("waiting for sockets: {error}")))?;
        let waker = Some(swarm.waker());
        threads.push(WorkerThread::start(setup, barrier, waker, move |thread| {
            let ended = swarm.run(&mut PlayerGroup::new(thread, numbers));
            ended.map_err(|error| setup::worker(error.to_string()))
        }));
    }
    if publisher::is_needed(setup) {
        threads.push(WorkerThread::start(setup, barrier, None, publisher::work));
    }
    if matches::is_needed(setup) {
        threads.push(WorkerThread::start(setup, barrier, None, |thread| matches::work(&thread)));
    }
    if notifier::is_needed(setup) {
        threads.push(WorkerThread::start(setup, barrier, None, |thread| notifier::work(&thread)));
    }
    Ok(threads)
}
