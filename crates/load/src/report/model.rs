//! The report as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::figures::Cost;
use super::histogram::Bucket;
use super::percentiles::Percentiles;
use super::timeline::Row;
use crate::plan::{Scenario, Target, TransportKind};

/// The outcome of a load test. Latencies are in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// What the test is called in paths.
    pub load_test_id: String,
    /// How far it is, or how it ended.
    pub status: Status,
    /// Why it failed or ended early, in sentences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Players that logged in and were never lost.
    pub successful: u64,
    /// Players that failed to log in, or whose session was lost unasked.
    pub failed: u64,
    /// What was asserted of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assertions: Vec<Checked>,
    /// How it differs from an earlier report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// Latencies of the whole test, by metric.
    pub metrics: BTreeMap<String, Percentiles>,
    /// The same by ranges, for a histogram.
    #[serde(default)]
    pub histograms: BTreeMap<String, Vec<Bucket>>,
    /// When it began: RFC 3339, UTC.
    pub started_at: String,
    /// How long it took, or has taken.
    pub seconds: f64,
    /// Players in all.
    pub players: u32,
    /// Events of the whole test, by name.
    pub counts: BTreeMap<String, u64>,
    /// Events per second, over the phases in which there were any.
    pub rates: BTreeMap<String, f64>,
    /// What went wrong, by kind.
    pub errors: BTreeMap<String, u64>,
    /// What the reader should know: a phase that was skipped, a worker that was lost, a tester at its limit.
    pub notes: Vec<String>,
    /// Phase by phase.
    pub phases: Vec<PhaseReport>,
    /// What the server spent in the whole test; nothing if it was out of sight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Cost>,
    /// What the workers spent in the whole test, together.
    pub tester: Cost,
    /// Who carried the players.
    pub workers: Vec<WorkerReport>,
    /// Second by second.
    pub timeline: Vec<Row>,
    /// What was done.
    pub scenario: Scenario,
    /// Against what. Passwords and keys are not in it.
    pub target: TargetReport,
    /// The version of the load tester.
    pub version: String,
}

/// How far a test is, or how it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Waiting for the tests before it.
    #[default]
    Queued,
    /// Under way.
    Running,
    /// All phases were done in time, and no player failed.
    Completed,
    /// It could not go on, or something in it did not go well.
    Failed,
    /// The target does not have what the scenario needs.
    Unsupported,
    /// Somebody ended it.
    Aborted,
}

/// A phase of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PhaseReport {
    /// What it is called.
    pub name: String,
    /// What was done in it, such as `login`.
    #[serde(rename = "deed")]
    pub action: String,
    /// How it ended.
    pub state: PhaseState,
    /// When it began, in seconds since the test did.
    pub start_seconds: f64,
    /// How long it took.
    pub seconds: f64,
    /// Players in session at its end.
    pub online: u32,
    /// Latencies, by metric.
    pub metrics: BTreeMap<String, Percentiles>,
    /// Events, by name.
    pub counts: BTreeMap<String, u64>,
    /// Events per second.
    pub rates: BTreeMap<String, f64>,
    /// What went wrong, by kind.
    pub errors: BTreeMap<String, u64>,
    /// Whether its time ran out before everybody was done.
    pub timed_out: bool,
    /// What the server spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Cost>,
    /// What the workers spent, together.
    pub tester: Cost,
}

/// How a phase went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseState {
    /// Not reached.
    #[default]
    Ahead,
    /// Under way.
    Running,
    /// Everybody was done.
    Done,
    /// Its time ran out.
    TimedOut,
    /// It could not be done here; a note says why.
    Skipped,
    /// The test ended in it.
    GivenUp,
}

/// A worker of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerReport {
    /// Host name and process id.
    pub name: String,
    /// Players it carried.
    pub players: u32,
    /// How it is.
    pub state: WorkerState,
    /// CPU time its process spent in the test, in seconds.
    pub cpu_seconds: f64,
    /// The most memory its process had (proportional set size), in bytes.
    pub pss_bytes: u64,
    /// How far its clock may be from the orchestrator's, in milliseconds.
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
    /// What carried the stream.
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

/// An assertion and what it found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    /// As it was given.
    pub assertion: String,
    /// Whether it holds.
    pub holds: bool,
    /// What is wrong with it, in a sentence; empty if it holds.
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
    /// One JSON object.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report is plain data")
    }

    /// The phases that were reached.
    pub(super) fn reached(&self) -> impl Iterator<Item = &PhaseReport> {
        self.phases.iter().filter(|phase| phase.state != PhaseState::Ahead)
    }
}

impl Status {
    /// Whether nothing more is to come.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
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
