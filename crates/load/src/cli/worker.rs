//! `carillon-load worker`.

use std::io::Read;
use std::process;
use std::thread;

use clap::Args;

use super::failure::Failure;
use crate::worker::link::{WorkerOptions, work};

/// The environment variable with the orchestrator's key.
pub(super) const KEY_VARIABLE: &str = "CARILLON_LOAD_KEY";
/// Descriptors a process needs besides those of its players.
const SPARE_DESCRIPTORS: u64 = 200;

#[derive(Debug, Args)]
pub(super) struct WorkerArgs {
    /// The orchestrator
    #[arg(long, value_name = "URL")]
    orchestrator: String,
    /// Its key, if it asks for one
    #[arg(long, env = KEY_VARIABLE, hide_env_values = true)]
    key: Option<String>,
    /// Largest number of players; as many as there are file descriptors if not given
    #[arg(long, value_name = "N")]
    players_max: Option<u32>,
    /// End when the standard input ends
    #[arg(long, hide = true)]
    while_stdin: bool,
}

impl WorkerArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        if self.while_stdin {
            thread::spawn(|| {
                // Nothing is ever written; it ends when the run does, however that ends.
                let _ = std::io::stdin().read(&mut [0]);
                process::exit(0);
            });
        }
        let room = players_by_descriptors();
        let options = WorkerOptions {
            orchestrator: self.orchestrator.clone(),
            key: self.key.clone(),
            players_max: self.players_max.map_or(room, |wanted| wanted.min(room)),
        };
        work(&options, |line| eprintln!("carillon-load: {line}")).map_err(|e| Failure::Undone(e.to_string()))
    }
}

/// How many players this process has descriptors for.
pub(super) fn players_by_descriptors() -> u32 {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let limit = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    // Unlimited, or a system that does not say.
    let limit = limit.unwrap_or(u64::from(u32::MAX));
    u32::try_from(limit.saturating_sub(SPARE_DESCRIPTORS)).unwrap_or(u32::MAX)
}
