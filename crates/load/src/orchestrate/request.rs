//! The request for a test, and its check.

use serde::Deserialize;
use serde_json::Value;

use super::sessions::Sessions;
use crate::measure::Server;
use crate::plan::{Scenario, Target};

/// The body of `POST /loadtests`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Request {
    /// The name of a shipped scenario, or a scenario as an object.
    pub scenario: Value,
    /// Overrides of the scenario, as `KEY=VALUE`.
    #[serde(default)]
    pub set: Vec<String>,
    /// The server under test.
    pub target: Target,
    /// The exact number of workers; without it, all that are registered.
    #[serde(default)]
    pub workers: Option<u32>,
    /// Threads per worker.
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
    /// Ids of its processes on the orchestrator's machine.
    #[serde(default)]
    pub pids: Vec<u32>,
    /// The URL of its metrics as Prometheus text.
    #[serde(default)]
    pub metrics_url: Option<String>,
}

/// A checked test.
#[derive(Debug)]
pub struct PlannedTest {
    /// The scenario.
    pub scenario: Scenario,
    /// The server under test.
    pub target: Target,
    /// The exact number of workers, or all that are registered.
    pub workers: Option<u32>,
    /// Threads per worker.
    pub threads: u32,
    /// The server's figures.
    pub server: Server,
    /// How the server's sessions are counted.
    pub sessions: Sessions,
}

/// Why a request is invalid.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The scenario is invalid.
    #[error("the scenario: {0}")]
    Scenario(String),
    /// The server's figures cannot be read.
    #[error("the server's figures: {0}")]
    Server(String),
}

impl PlannedTest {
    /// Checks a request. Sessions are counted by the orchestrator's command, if it has one, or by the target's API.
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
