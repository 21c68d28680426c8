//! A test to be run: what was asked for, checked.

use serde::Deserialize;
use serde_json::Value;

use super::sessions::Sessions;
use crate::measure::Server;
use crate::plan::{Scenario, Target};

/// What is asked for by `POST /loadtests`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Request {
    /// The name of a shipped scenario, or a scenario as an object.
    pub scenario: Value,
    /// Overrides of the scenario, as `KEY=VALUE`.
    #[serde(default)]
    pub set: Vec<String>,
    /// What to test.
    pub target: Target,
    /// Take exactly so many workers; without it, all that are there.
    #[serde(default)]
    pub workers: Option<u32>,
    /// Threads a worker spreads its players over.
    #[serde(default)]
    pub threads: Option<u32>,
    /// Where the server's figures come from.
    #[serde(default)]
    pub server: ServerRequest,
}

/// Where the server's figures come from.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ServerRequest {
    /// Its processes on the orchestrator's machine.
    #[serde(default)]
    pub pids: Vec<u32>,
    /// Its metrics as Prometheus text.
    #[serde(default)]
    pub metrics_url: Option<String>,
}

/// A test that can be run.
#[derive(Debug)]
pub struct PlannedTest {
    /// What is done.
    pub scenario: Scenario,
    /// Against what.
    pub target: Target,
    /// Exactly so many workers, or all that are there.
    pub workers: Option<u32>,
    /// Threads a worker spreads its players over.
    pub threads: u32,
    /// The server's figures.
    pub server: Server,
    /// How the server's sessions are counted.
    pub sessions: Sessions,
}

/// A request that makes no sense.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// There is something wrong with the scenario.
    #[error("the scenario: {0}")]
    Scenario(String),
    /// The server's figures cannot be had.
    #[error("the server's figures: {0}")]
    Server(String),
}

impl PlannedTest {
    /// Checks a request. Sessions are counted by a command of the orchestrator's own, if it has one, or by the target's API.
    pub(super) fn new(request: Request, sessions_command: Option<&str>) -> Result<Self, RequestError> {
        let wrong = |error: String| RequestError::Scenario(error);
        let mut scenario = match request.scenario {
            Value::String(name) => Scenario::shipped(&name).ok_or_else(|| {
                wrong(format!(
                    "unknown scenario {name:?}; known are {}",
                    Scenario::names().collect::<Vec<_>>().join(", ")
                ))
            })?,
            whole => serde_json::from_value(whole).map_err(|error| wrong(error.to_string()))?,
        };
        for change in &request.set {
            scenario.set(change).map_err(|error| wrong(error.to_string()))?;
        }
        scenario.check().map_err(|error| wrong(error.to_string()))?;
        let ServerRequest { pids, metrics_url } = request.server;
        let server =
            Server::new(pids, metrics_url).map_err(|error| RequestError::Server(error.to_string()))?;
        Ok(Self {
            sessions: Sessions::new(&request.target, sessions_command),
            scenario,
            target: request.target,
            workers: request.workers,
            threads: request.threads.unwrap_or(1).max(1),
            server,
        })
    }
}
