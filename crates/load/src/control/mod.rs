//! The messages between an orchestrator and its workers: the same values over HTTP and within a process.
//!
//! ```text
//! worker        GET  /v1/clock               ◄─ ClockReading
//! worker        POST /v1/workers             Registration ─► RegistrationAccepted
//! worker (pull) GET  /v1/workers/ID/orders   ◄─ NumberedOrder*   held open until there is one
//! worker (push) POST /v1/workers/ID/progress Progress ─►
//! ```
//!
//! A test is a sequence of barriers: the orchestrator orders a step of a phase, every worker reports when its share is done,
//! and then the next step begins. Progress is incremental: it holds what happened since the last report.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::measure::TDigest;
use crate::plan::{Scenario, Span, Target};

/// Errors of this kind are why logins failed; each belongs to a player that failed, or that tried again.
pub const LOGIN_ERROR: &str = "login: ";
/// Errors of this kind are why sessions were lost.
pub const LOST_ERROR: &str = "lost: ";

/// The registration of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// Its name in reports: host name and process id.
    pub name: String,
    /// The most players it can run: its file descriptors, less a few.
    pub players_max: u32,
    /// The kernel's boot id: a worker with the orchestrator's boot id has the same clock.
    pub boot_id: String,
}

/// The answer to a registration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistrationAccepted {
    /// The worker's id in paths.
    pub id: u32,
}

/// The orchestrator's clock, with which a worker compares its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// Unix time, in nanoseconds.
    pub unix_ns: u64,
    /// The boot id of its machine's kernel: a worker with the same boot id has the same clock.
    pub boot_id: String,
}

/// An order and its number: a worker requests the orders after the last one that it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NumberedOrder {
    /// Counts up from 1.
    pub number: u64,
    /// The order.
    pub order: Order,
}

/// What a worker has to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case")]
pub enum Order {
    /// Prepare for a test: check what can be checked, and report position (0, 0) as done by a [`Progress`].
    Prepare(Box<Job>),
    /// Begin a step of a phase.
    Begin {
        /// The id of the test.
        test: String,
        /// The phase and the step.
        position: Position,
        /// When it begins, by the orchestrator's clock, in nanoseconds since the Unix epoch.
        at_unix_ns: u64,
    },
    /// Report the progress now.
    Report,
    /// The test is over: close all connections and wait for another test.
    Finish {
        /// The id of the test.
        test: String,
    },
    /// There are no more tests: the process may end.
    Leave,
}

/// A worker's share of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The id of the test.
    pub test: String,
    /// The scenario.
    pub scenario: Scenario,
    /// The server under test.
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
    /// The event around which the players are observed, if there is one.
    #[serde(default)]
    pub event: Option<Event>,
    /// The orchestrator's Unix time minus that of this machine, in nanoseconds.
    pub clock_offset_ns: i64,
}

/// Something that happens to the server during a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Index of the phase.
    pub phase: u32,
    /// When it happens: this long after the beginning of the phase.
    pub at: Span,
}

/// The duration of a [`Slice`].
pub const SLICE: Duration = Duration::from_millis(100);

/// What happened in a slice of the time around an [`Event`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// Messages, notifications or items that players received.
    pub deliveries: u64,
    /// Sessions that ended without the player's doing.
    pub disconnects: u64,
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
    /// The position of a worker that has finished a test: after the last phase.
    pub fn behind(scenario: &Scenario) -> Self {
        Self { phase: u32::try_from(scenario.phases.len()).unwrap_or(u32::MAX), step: 0 }
    }
}

/// What happened at a worker since its last report, and its current state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The id of the test.
    pub test: String,
    /// Increases by one: a repeated report is not counted twice.
    pub sequence: u64,
    /// The phase and the step of the worker.
    pub position: Position,
    /// Whether its share of the step is done.
    pub done: bool,
    /// Players in session now.
    pub online: u32,
    /// Since the last report: events by name, such as `logins`, `deliveries`, `sent`.
    pub counts: BTreeMap<String, u64>,
    /// Since the last report: errors by kind.
    pub errors: BTreeMap<String, u64>,
    /// Since the last report: latencies by metric, in milliseconds.
    pub metrics: BTreeMap<String, TDigest>,
    /// The largest latency that this worker measured of what concerns all workers, in milliseconds, by metric and item: the
    /// last delivery of each published item. The orchestrator keeps the largest of all workers and records one value per item
    /// in the metric.
    pub largest: BTreeMap<String, BTreeMap<u32, f64>>,
    /// Since the last report: slices of the time around the event, by number; slice 0 begins with it.
    #[serde(default)]
    pub slices: BTreeMap<i32, Slice>,
    /// Since the last report: players that failed, because their login was refused or their session lost.
    pub failed: u64,
    /// CPU time of the worker's process so far, in seconds.
    pub cpu_s: f64,
    /// Memory of the worker's process (proportional set size), in bytes.
    pub pss_bytes: u64,
    /// The largest difference between the worker's clock and the orchestrator's, in milliseconds; 0 on the same machine.
    #[serde(default)]
    pub clock_bound_ms: f64,
    /// Why the worker failed, if it did; the test ends.
    pub fault: Option<Fault>,
}

/// Why a worker failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "kebab-case")]
pub enum Fault {
    /// The target does not have what the scenario needs.
    Lacks {
        /// What is missing, such as `pubsub` or `light protocol`.
        feature: String,
        /// How the worker noticed.
        why: String,
    },
    /// The target cannot be reached, or refuses logins.
    Target {
        /// The error, in words.
        why: String,
    },
    /// The worker's machine or process lacks a resource.
    Worker {
        /// The error, in words.
        why: String,
    },
}

/// The kernel's boot id: a process with the same boot id has the same clock.
pub(crate) fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}
