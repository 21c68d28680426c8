//! The report as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::figures::Cost;
use super::histogram::Bucket;
use super::percentiles::Percentiles;
use super::timeline::Row;
use super::upgrade::UpgradeReport;
use crate::plan::{Scenario, Target, TransportKind};

/// The outcome of a load test. Latencies are in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The id of the test.
    pub load_test_id: String,
    /// The status of the test.
    pub status: Status,
    /// Why the test failed or ended early, in sentences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the test missed that it expects, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shortfalls: Vec<String>,
    /// Players that logged in and were never lost.
    pub successful: u64,
    /// Players that failed to log in, or lost their session.
    pub failed: u64,
    /// The checked assertions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assertions: Vec<Checked>,
    /// The comparison with an earlier report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// Latencies of the whole test, by metric.
    pub metrics: BTreeMap<String, Percentiles>,
    /// The histograms of the latencies, by metric.
    #[serde(default)]
    pub histograms: BTreeMap<String, Vec<Bucket>>,
    /// The start of the test: RFC 3339, UTC.
    pub started_at: String,
    /// The duration of the test so far.
    pub seconds: f64,
    /// The number of players.
    pub players: u32,
    /// Events of the whole test, by name.
    pub counts: BTreeMap<String, u64>,
    /// Events per second, over the phases in which there were any.
    pub rates: BTreeMap<String, f64>,
    /// Errors by kind.
    pub errors: BTreeMap<String, u64>,
    /// Notes for the reader: a skipped phase, a lost worker, a saturated tester.
    pub notes: Vec<String>,
    /// The command that ran during the test, and what the players noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<UpgradeReport>,
    /// The phases in order.
    pub phases: Vec<PhaseReport>,
    /// The server's cost of the whole test, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Cost>,
    /// The cost of all workers in the whole test.
    pub tester: Cost,
    /// The workers.
    pub workers: Vec<WorkerReport>,
    /// The timeline by seconds.
    pub timeline: Vec<Row>,
    /// The scenario.
    pub scenario: Scenario,
    /// The server under test, without passwords and keys.
    pub target: TargetReport,
    /// The version of the load tester.
    pub version: String,
}

/// The status of a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Waiting for the tests before it.
    #[default]
    Queued,
    /// Running.
    Running,
    /// All phases were done in time, and nothing was missed that the scenario expects.
    Completed,
    /// The test could not continue, or a part of it failed.
    Failed,
    /// The target does not have what the scenario needs.
    Unsupported,
    /// The test was aborted.
    Aborted,
}

/// A phase of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PhaseReport {
    /// The name of the phase.
    pub name: String,
    /// The name of its action, such as `login`.
    #[serde(rename = "deed")]
    pub action: String,
    /// The state of the phase.
    pub state: PhaseState,
    /// The start, in seconds since the start of the test.
    pub start_seconds: f64,
    /// The duration in seconds.
    pub seconds: f64,
    /// Players in session at its end.
    pub online: u32,
    /// Latencies, by metric.
    pub metrics: BTreeMap<String, Percentiles>,
    /// Events, by name.
    pub counts: BTreeMap<String, u64>,
    /// Events per second.
    pub rates: BTreeMap<String, f64>,
    /// Errors by kind.
    pub errors: BTreeMap<String, u64>,
    /// Whether the time limit expired before all players were done.
    pub timed_out: bool,
    /// The server's cost, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Cost>,
    /// The cost of all workers.
    pub tester: Cost,
}

/// The state of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseState {
    /// Not reached.
    #[default]
    Ahead,
    /// Running.
    Running,
    /// All players were done.
    Done,
    /// The time limit expired.
    TimedOut,
    /// Skipped; a note says why.
    Skipped,
    /// The test ended during the phase.
    GivenUp,
}

/// A worker of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerReport {
    /// Host name and process id.
    pub name: String,
    /// The number of its players.
    pub players: u32,
    /// The state of the worker.
    pub state: WorkerState,
    /// CPU time its process spent in the test, in seconds.
    pub cpu_seconds: f64,
    /// The most memory its process had (proportional set size), in bytes.
    pub pss_bytes: u64,
    /// The largest error of its clock, in milliseconds.
    pub clock_bound_ms: f64,
}

/// The state of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkerState {
    /// It takes part.
    #[default]
    Running,
    /// It finished its part.
    Finished,
    /// It stopped reporting: its players count as failed.
    Lost,
}

/// The target without its secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetReport {
    /// `HOST:PORT` for clients.
    pub address: String,
    /// The transport of the stream.
    pub transport: TransportKind,
    /// The domain of the accounts.
    pub domain: String,
    /// SASL mechanisms accepted; all when empty.
    pub mechanisms: Vec<String>,
    /// Whether certificates were checked.
    pub certificates_checked: bool,
    /// The HTTP API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// The light protocol's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub light: Option<String>,
}

/// A checked assertion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    /// The assertion as given.
    pub assertion: String,
    /// Whether it holds.
    pub holds: bool,
    /// Why it does not hold, in a sentence; empty if it holds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub problem: String,
}

/// Figures of several reports, and how the last differs from the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    #[serde(rename = "reports")]
    pub(super) names: Vec<String>,
    #[serde(rename = "figures")]
    pub(super) rows: Vec<Figure>,
}

/// A figure of every report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Figure {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) values: Vec<Option<f64>>,
    /// How the last differs from the first, in percent.
    pub(super) change_percent: Option<f64>,
}

impl Report {
    /// The report as JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report is plain data")
    }

    /// The phases that were reached.
    pub(super) fn reached(&self) -> impl Iterator<Item = &PhaseReport> {
        self.phases.iter().filter(|phase| phase.state != PhaseState::Ahead)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Unsupported => "unsupported",
            Self::Aborted => "aborted",
        })
    }
}

impl From<&Target> for TargetReport {
    fn from(target: &Target) -> Self {
        Self {
            address: target.address.clone(),
            transport: target.transport,
            domain: target.domain.clone(),
            mechanisms: target.mechanisms.clone(),
            certificates_checked: target.ca_pem.is_some(),
            http: target.http.as_deref().map(without_userinfo),
            light: target.light.clone(),
        }
    }
}

/// A URL may bear a password: `http://user:password@host/`.
fn without_userinfo(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((userinfo, _)) => format!("{scheme}://{}", &rest[userinfo.len() + 1..]),
        None => url.to_owned(),
    }
}
