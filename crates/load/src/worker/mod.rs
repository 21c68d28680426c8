//! A worker's engine: it takes a [`Job`] and drives its share of the players through the steps it is told.
//!
//! ```text
//! Engine ──Turn──► players (a thread and a swarm each) ──► deeds/: what players do in a phase
//!    ▲             publisher, notifier (a thread each)
//!    └── ledgers: counts and latencies ◄──┘      steps: who is still at it
//! ```
//!
//! Loops are open: what is sent is sent when it is due, and latencies count from then, also when this process is late.

mod api;
mod clock;
mod crowd;
mod deeds;
mod hand;
pub mod link;
mod mark;
mod notifier;
mod players;
mod preflight;
mod publisher;
mod pulse;
mod receipts;
mod schedule;
mod setting;
mod steps;
mod tally;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::control::{Fault, Job, Position, Progress};
use crate::measure::Usage;
use hand::{Hand, Turn};
use setting::Setting;
use steps::Steps;

/// How old the figure of the process's memory may be: taking it walks all of the process's pages.
const MEMORY_AGE: Duration = Duration::from_secs(2);

/// One job under way.
#[derive(Debug)]
pub struct Engine {
    setting: Arc<Setting>,
    steps: Arc<Steps>,
    hands: Vec<Hand>,
    position: Position,
    sequence: u64,
    usage: Usage,
    usage_taken: Option<Instant>,
}

impl Engine {
    /// Checks the job, makes sure that the target is there and has what the scenario needs, and starts the threads.
    /// Nobody is connected when it returns.
    pub fn prepare(job: Job) -> Result<Self, Fault> {
        let setting = Arc::new(Setting::new(job)?);
        preflight::check(&setting)?;
        let steps = Arc::new(Steps::default());
        let hands = hand::hire(&setting, &steps)?;
        Ok(Self {
            setting,
            steps,
            hands,
            position: Position::default(),
            sequence: 0,
            usage: Usage::default(),
            usage_taken: None,
        })
    }

    /// Begins a step at a moment of the orchestrator's clock. A step that is still under way is given up.
    pub fn begin(&mut self, position: Position, at_unix_ns: u64) {
        self.position = position;
        let serial = self.steps.begin(self.hands.len());
        let at = self.setting.clock.instant(at_unix_ns);
        for hand in &self.hands {
            hand.tell(Turn { serial, position, at });
        }
    }

    /// What happened since the last call, and how things are.
    pub fn progress(&mut self) -> Progress {
        self.sequence += 1;
        let mut progress = Progress {
            test: self.setting.job.test.clone(),
            sequence: self.sequence,
            position: self.position,
            // Before the ledgers are read: what is done is in them.
            done: self.steps.all_done(),
            fault: self.steps.broken(),
            ..Progress::default()
        };
        for hand in &self.hands {
            hand.ledger.take_into(&mut progress);
        }
        let usage = self.usage();
        progress.cpu_s = usage.cpu.as_secs_f64();
        progress.pss_bytes = usage.pss_bytes;
        progress
    }

    /// Waits until this worker's share of the step is done, or it cannot go on; `false` if neither is so in time.
    pub fn wait(&self, timeout: Duration) -> bool {
        self.steps.wait(timeout)
    }

    /// Drops all connections and ends the threads; gives the last progress.
    pub fn finish(mut self) -> Progress {
        let hands = std::mem::take(&mut self.hands);
        let ledgers: Vec<_> = hands.iter().map(|hand| Arc::clone(&hand.ledger)).collect();
        hands.into_iter().for_each(Hand::dismiss);
        let mut progress = self.progress();
        for ledger in ledgers {
            ledger.take_into(&mut progress);
        }
        progress.online = 0;
        if let Err(error) = self.setting.write_keys() {
            *progress.errors.entry(format!("key cache: {}", error.kind())).or_default() += 1;
        }
        progress
    }

    fn usage(&mut self) -> Usage {
        if self.usage_taken.is_none_or(|taken| taken.elapsed() >= MEMORY_AGE) {
            // A process that cannot look at itself reports nothing of itself, and goes on.
            self.usage = Usage::of_self().unwrap_or(self.usage);
            self.usage_taken = Some(Instant::now());
        }
        self.usage
    }
}
