//! `carillon-load orchestrate`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;

use super::failure::Failure;
use super::signals::Signals;
use super::worker::KEY_VARIABLE;
use crate::orchestrate::{Options, Orchestrator, SilenceLimits};
use crate::plan::Span;

#[derive(Debug, Args)]
pub(super) struct OrchestrateArgs {
    /// The address to listen on; port 0 is a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7070")]
    listen: SocketAddr,
    /// Require this key in every request
    #[arg(long, env = KEY_VARIABLE, hide_env_values = true)]
    key: Option<String>,
    /// Count a worker as lost after this silence
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    lost_after: Duration,
    /// A command that prints the server's number of sessions; the default is to ask the target's HTTP API
    #[arg(long, value_name = "COMMAND")]
    sessions_command: Option<String>,
}

impl OrchestrateArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        if self.key.is_none() && !self.listen.ip().is_loopback() {
            eprintln!("carillon-load: without --key anyone who reaches {} can start tests", self.listen);
        }
        let options = Options {
            key: self.key.clone(),
            silence_limits: silence_limits(self.lost_after),
            sessions_command: self.sessions_command.clone(),
            upgrade: None,
        };
        let orchestrator = Orchestrator::start(self.listen, options)
            .map_err(|error| Failure::Undone(format!("cannot listen on {}: {error}", self.listen)))?;
        let signals = Signals::listen().map_err(|error| Failure::Undone(error.to_string()))?;
        println!("http://{}", orchestrator.address());
        signals.wait();
        Ok(())
    }
}

/// A worker is asked for its progress after a fifth of the time, and counts as lost after all of it.
pub(super) fn silence_limits(lost_after: Duration) -> SilenceLimits {
    SilenceLimits { ask: lost_after / 5, give_up: lost_after }
}

/// Reads a duration.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let span = Span::parse(text).filter(|span| !span.0.is_zero());
    span.map(|span| span.0).ok_or_else(|| "expected a duration such as 500ms, 10s or 2m".to_owned())
}
