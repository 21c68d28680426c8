//! `carillon-load run`: an orchestrator and its workers for one test.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use clap::Args;

use super::display::Display;
use super::failure::Failure;
use super::orchestrate::{silence_limits, time};
use super::outputs::OutputArgs;
use super::signals::Signals;
use super::target::TargetArgs;
use super::upgrade::UpgradeArgs;
use super::worker_processes::{Program, WorkerProcesses};
use crate::orchestrate::{Options, Orchestrator, Request, ServerRequest, SubmitError};
use crate::plan::Scenario;
use crate::report::Report;

/// The most players per process: 20,000 descriptors are a usual limit.
const PLAYERS_EACH: u32 = 18_000;

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// A shipped scenario, or a file NAME.toml
    scenario: String,
    /// The number of players
    #[arg(long, value_name = "N")]
    players: Option<u32>,
    /// Change the scenario: KEY is players.KEY, or PHASE.KEY; may be given more than once
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Ask for stream management (XEP-0198)
    #[arg(long)]
    sm: bool,
    /// Ask for streams that can be resumed, and resume them after a lost connection (XEP-0198)
    #[arg(long)]
    resumption: bool,
    /// Answer requests for delivery receipts (XEP-0184)
    #[arg(long)]
    receipts: bool,
    /// Log in by SASL2 and Bind 2 if the server offers them
    #[arg(long)]
    sasl2: bool,
    /// Log in with a token (XEP-0484) from the second login on; requires --sasl2
    #[arg(long, requires = "sasl2")]
    fast: bool,
    /// Resume TLS sessions by ticket
    #[arg(long)]
    tls_resumption: bool,
    /// Register the accounts by in-band registration (XEP-0077) first
    #[arg(long)]
    register: bool,
    #[command(flatten)]
    target: TargetArgs,
    /// Worker processes; as many as the players need if not given, 18,000 each
    #[arg(long, value_name = "N", help_heading = "Workers", value_parser = clap::value_parser!(u32).range(1..=64))]
    workers: Option<u32>,
    /// Threads a worker spreads its players over
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Workers")]
    threads: u32,
    /// Count a worker as lost after this silence
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time, help_heading = "Workers")]
    lost_after: Duration,
    /// A process of the server, to measure; may be given more than once
    #[arg(long, value_name = "PID", help_heading = "Server's figures")]
    server_pid: Vec<u32>,
    /// The server's metrics, to measure it from afar
    #[arg(long, value_name = "URL", conflicts_with = "server_pid", help_heading = "Server's figures")]
    metrics_url: Option<String>,
    /// A command that prints how many sessions the server has; the API is asked if it is not given
    #[arg(long, value_name = "COMMAND", help_heading = "Server's figures")]
    sessions_command: Option<String>,
    #[command(flatten)]
    upgrade: UpgradeArgs,
    #[command(flatten)]
    outputs: OutputArgs,
}

impl RunArgs {
    pub(super) fn run(&self, program: Program) -> Result<(), Failure> {
        let scenario = self.scenario()?;
        let request = self.request(&scenario)?;
        let earlier = self.outputs.earlier()?;
        let report = self.run_test(program, request, scenario.players.count)?;
        self.upgrade.write_csv(&report)?;
        self.outputs.emit(report, earlier)
    }

    fn scenario(&self) -> Result<Scenario, Failure> {
        let name = &self.scenario;
        let is_file = Path::new(name).extension().is_some_and(|extension| extension == "toml");
        let usage = |error: String| Failure::Usage(format!("{name}: {error}"));
        let mut scenario = if is_file {
            let text = std::fs::read_to_string(name).map_err(|error| Failure::file(name, &error))?;
            Scenario::parse(&text).map_err(|error| usage(error.to_string()))?
        } else {
            Scenario::shipped(name).ok_or_else(|| super::scenarios::unknown(name))?
        };
        if let Some(players) = self.players {
            scenario.players.count = players;
        }
        for change in &self.set {
            scenario.set(change).map_err(|error| Failure::Usage(format!("--set {change}: {error}")))?;
        }
        let players = &mut scenario.players;
        players.stream_management |= self.sm;
        players.resumption |= self.resumption;
        players.receipts |= self.receipts;
        players.sasl2 |= self.sasl2;
        players.fast |= self.fast;
        players.tls_resumption |= self.tls_resumption;
        players.register |= self.register;
        self.outputs.allow(&mut scenario.allow);
        scenario.check().map_err(|error| usage(error.to_string()))?;
        Ok(scenario)
    }

    fn request(&self, scenario: &Scenario) -> Result<Request, Failure> {
        Ok(Request {
            scenario: serde_json::to_value(scenario).map_err(|error| Failure::Undone(error.to_string()))?,
            set: Vec::new(),
            target: self.target.target()?,
            workers: Some(self.worker_count(scenario.players.count)),
            threads: Some(self.threads),
            server: ServerRequest { pids: self.server_pid.clone(), metrics_url: self.metrics_url.clone() },
        })
    }

    fn worker_count(&self, players: u32) -> u32 {
        self.workers.unwrap_or_else(|| players.div_ceil(PLAYERS_EACH).max(1))
    }

    /// Starts everything, waits for the end, and ends everything.
    fn run_test(&self, program: Program, request: Request, players: u32) -> Result<Report, Failure> {
        let undone = |what: &str, error: &dyn std::fmt::Display| Failure::Undone(format!("{what}: {error}"));
        let signals = Signals::listen().map_err(|error| undone("signals", &error))?;
        let key = random_key()?;
        let options = Options {
            key: Some(key.clone()),
            silence_limits: silence_limits(self.lost_after),
            sessions_command: self.sessions_command.clone(),
            upgrade: self.upgrade.upgrade(),
        };
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let orchestrator =
            Orchestrator::start(listen, options).map_err(|error| undone("cannot listen", &error))?;
        let id = orchestrator.submit(request).map_err(|error| match error {
            SubmitError::Request(error) => Failure::Usage(error.to_string()),
            SubmitError::Place(error) => Failure::Undone(error),
        })?;
        let url = format!("http://{}", orchestrator.address());
        // Whole groups of players fit into each worker, however they are shared out.
        let workers = self.worker_count(players);
        let room = players.div_ceil(workers).next_multiple_of(1000);
        let worker_processes = WorkerProcesses::start(program, workers, &url, &key, room)
            .map_err(|error| undone("workers cannot be started", &error))?;
        let mut display = Display::new();
        let mut aborted = false;
        while !orchestrator.wait(&id, display.every()) {
            if let Some(snapshot) = orchestrator.snapshot() {
                display.show(&snapshot);
            }
            if signals.received() && !std::mem::replace(&mut aborted, true) {
                orchestrator.abort(&id);
            }
        }
        let report =
            orchestrator.report(&id).ok_or_else(|| Failure::Undone("the report is gone".to_owned()))?;
        let errors = report.errors.iter().map(|(kind, count)| (kind.clone(), *count));
        display.end(&errors.collect::<Vec<_>>());
        // Workers leave when they are told so, which is before their pipes close.
        drop(orchestrator);
        drop(worker_processes);
        Ok((*report).clone())
    }
}

fn random_key() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::Undone(format!("the system gives no random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
