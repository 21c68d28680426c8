//! What an orchestrator and its workers tell each other: values, the same over HTTP and within a process.
//!
//! ```text
//! worker        GET  /v1/clock               ◄─ ClockReading
//! worker        POST /v1/workers             Registration ─► RegistrationAccepted
//! worker (pull) GET  /v1/workers/ID/orders   ◄─ NumberedOrder*   held open until there is one
//! worker (push) POST /v1/workers/ID/progress Progress ─►
//! ```
//!
//! A test is a row of barriers: the orchestrator orders a step of a phase, every worker says when its share is done,
//! and then comes the next. Progress is a difference: what happened since the last one sent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::measure::TDigest;
use crate::plan::{Scenario, Target};

/// A worker that offers itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// What people call it: host name and process id.
    pub name: String,
    /// The most players it can carry: its descriptors, less a few.
    pub players_max: u32,
    /// The kernel's boot id: workers with the orchestrator's own share its clock.
    pub boot_id: String,
}

/// The answer to a registration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistrationAccepted {
    /// What the worker is called in paths.
    pub id: u32,
}

/// The orchestrator's clock, to compare one's own with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// Unix time, in nanoseconds.
    pub unix_ns: u64,
    /// The kernel's boot id of its machine: who has the same shares this clock.
    pub boot_id: String,
}

/// An order and its number: a worker asks for those after the last one it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NumberedOrder {
    /// Counts up from 1.
    pub number: u64,
    /// What is to be done.
    pub order: Order,
}

/// What a worker is told to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case")]
pub enum Order {
    /// Get ready for a test: check everything that can be checked, answer by a [`Progress`] of position (0, 0) done.
    Prepare(Box<Job>),
    /// Begin a step of a phase.
    Begin {
        /// The test.
        test: String,
        /// Which.
        position: Position,
        /// When, on the orchestrator's clock, in nanoseconds since the Unix epoch.
        at_unix_ns: u64,
    },
    /// Say now how far you are.
    Report,
    /// The test is over or given up: close everything and be ready for another.
    Finish {
        /// The test.
        test: String,
    },
    /// Nothing more is to come; the process may end.
    Leave,
}

/// A worker's share of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The test.
    pub test: String,
    /// All of it.
    pub scenario: Scenario,
    /// Against what.
    pub target: Target,
    /// The number, from 0, of the worker's first player. A bucket of neighbours belongs to one worker.
    pub first: u32,
    /// How many players the worker has.
    pub count: u32,
    /// How many players the test has; the worker's part of each rate is `count / total`.
    pub total: u32,
    /// Whether this worker publishes: one of them does.
    pub publishes: bool,
    /// Threads to spread the players over.
    pub threads: u32,
    /// What to add to this machine's Unix time to have the orchestrator's, in nanoseconds.
    pub clock_offset_ns: i64,
}

/// A step of a phase; steps count from 1, phases from 0. (0, 0) is the preparation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// Index of the phase.
    pub phase: u32,
    /// Step within it.
    pub step: u32,
}

impl Position {
    /// Where a worker is that has finished a test: behind its last phase.
    pub fn behind(scenario: &Scenario) -> Self {
        Self { phase: u32::try_from(scenario.phases.len()).unwrap_or(u32::MAX), step: 0 }
    }

    /// Whether it is the preparation.
    pub fn is_preparation(self) -> bool {
        self == Self::default()
    }
}

/// What happened at a worker since it last said so, and how things are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The test.
    pub test: String,
    /// Counts up by one: a repeated one is not counted twice.
    pub sequence: u64,
    /// Where the worker is.
    pub position: Position,
    /// Whether its share of the step is done.
    pub done: bool,
    /// Players in session now.
    pub online: u32,
    /// Since the last: events by name, such as `logins`, `deliveries`, `sent`.
    pub counts: BTreeMap<String, u64>,
    /// Since the last: what went wrong, by kind.
    pub errors: BTreeMap<String, u64>,
    /// Since the last: latencies by metric, in milliseconds.
    pub metrics: BTreeMap<String, TDigest>,
    /// Of things all workers take part in, the largest this worker saw, in milliseconds, by metric and item: the last
    /// delivery of each item published. The orchestrator keeps the largest of all workers, and in the end records one
    /// value an item in the metric.
    pub largest: BTreeMap<String, BTreeMap<u32, f64>>,
    /// Users that failed since the last: logins refused, sessions lost.
    pub failed: u64,
    /// CPU time of the worker's process so far, in seconds.
    pub cpu_s: f64,
    /// Memory of the worker's process (proportional set size), in bytes.
    pub pss_bytes: u64,
    /// How far the worker's clock may be from the orchestrator's, in milliseconds; 0 on the same machine.
    #[serde(default)]
    pub clock_bound_ms: f64,
    /// The worker cannot go on, and why; the test ends.
    pub fault: Option<Fault>,
}

/// Why a worker cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "kebab-case")]
pub enum Fault {
    /// The target does not have what the scenario needs.
    Lacks {
        /// What, such as `pubsub` or `light protocol`.
        feature: String,
        /// How it showed.
        why: String,
    },
    /// The target cannot be reached, or lets nobody in.
    Target {
        /// What happened.
        why: String,
    },
    /// The worker's machine or process is not up to it.
    Worker {
        /// What happened.
        why: String,
    },
}
