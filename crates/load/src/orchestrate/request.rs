//! The request for a test, and its check.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::sessions::Sessions;
use crate::control::Event;
use crate::measure::Server;
use crate::plan::{Phase, Scenario, Span, Target};

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

/// A command that does something to the server during a test, such as an upgrade.
#[derive(Clone, Debug)]
pub struct Upgrade {
    /// The command, for `sh -c`.
    pub command: String,
    /// The name of the phase; without one it is the first in which players receive something.
    pub phase: Option<String>,
    /// When it is run: this long after the beginning of the phase.
    pub at: Duration,
}

/// An upgrade in its place.
#[derive(Clone, Debug)]
pub struct PlannedUpgrade {
    /// The command.
    pub command: String,
    /// The phase and the time in it.
    pub event: Event,
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
    /// What is done to the server during the test.
    pub upgrade: Option<PlannedUpgrade>,
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
    /// The command has no place in the scenario.
    #[error("the upgrade: {0}")]
    Upgrade(String),
}

impl Upgrade {
    fn place(&self, scenario: &Scenario) -> Result<PlannedUpgrade, RequestError> {
        let is_meant = |phase: &Phase| match &self.phase {
            Some(name) => phase.name() == name,
            None => phase.action.is_traffic(),
        };
        let phase = scenario.phases.iter().position(is_meant).ok_or_else(|| {
            let names: Vec<_> = scenario.phases.iter().map(Phase::name).collect();
            let names = names.join(", ");
            RequestError::Upgrade(match &self.phase {
                Some(name) => format!("the scenario has no phase {name:?}; known are {names}"),
                None => format!("in no phase does a player receive anything; name one of {names}"),
            })
        })?;
        let event = Event { phase: u32::try_from(phase).unwrap_or(u32::MAX), at: Span(self.at) };
        Ok(PlannedUpgrade { command: self.command.clone(), event })
    }
}

impl PlannedTest {
    /// Checks a request. Sessions are counted by the orchestrator's command, if it has one, or by the target's API.
    pub(super) fn new(
        request: Request,
        sessions_command: Option<&str>,
        upgrade: Option<&Upgrade>,
    ) -> Result<Self, RequestError> {
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
        let upgrade = upgrade.map(|upgrade| upgrade.place(&scenario)).transpose()?;
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
            upgrade,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples::target;

    fn placed(phase: Option<&str>, scenario: &str) -> Result<(u32, Duration), String> {
        let request = Request {
            scenario: scenario.into(),
            set: Vec::new(),
            target: target(),
            workers: None,
            threads: None,
            server: ServerRequest::default(),
        };
        let phase = phase.map(str::to_owned);
        let upgrade = Upgrade { command: "true".to_owned(), phase, at: Duration::from_secs(3) };
        let planned = PlannedTest::new(request, None, Some(&upgrade)).map_err(|error| error.to_string())?;
        let event = planned.upgrade.expect("it was asked for").event;
        Ok((event.phase, event.at.0))
    }

    #[test]
    fn an_upgrade_is_in_the_first_phase_with_traffic_or_in_the_one_that_is_named() {
        let at = Duration::from_secs(3);
        assert_eq!(placed(None, "fanout"), Ok((3, at)));
        assert_eq!(placed(Some("settle"), "fanout"), Ok((2, at)));
        let nowhere = "the upgrade: the scenario has no phase \"nowhere\"; known are login, settle, hold";
        assert_eq!(placed(Some("nowhere"), "idle"), Err(nowhere.to_owned()));
        let none = "the upgrade: in no phase does a player receive anything; name one of login, settle, hold";
        assert_eq!(placed(None, "idle"), Err(none.to_owned()));
    }
}
