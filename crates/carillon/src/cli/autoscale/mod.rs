//! `carillon autoscale`: how much capacity a demand needs, tried out and put into force.

mod event;
mod explain;
mod run;
mod simulate;
mod status;

use super::failure::Failure;
use crate::config;
use std::io::Write;
use std::time::Duration;

/// Arguments of `carillon autoscale`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Replay a demand against policies, and print what each would have lost and cost
    ///
    /// Without a demand it replays the two of the experiment that the policies were compared by: a slow rise (bell) and a steep one
    /// (top-heavy).
    Simulate(Box<simulate::Args>),
    /// Measure, decide and put into force, one interval after another
    ///
    /// Without --apply it only says what it would do. Every decision is a line of the decision log.
    Run(run::Args),
    /// Say from the decision log why there is as much capacity as there is
    Explain(explain::Args),
    /// Show what the autoscalers that hold a lease of a node decided last
    Status(status::Args),
}

/// Does what is said.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    match &args.command {
        Command::Simulate(args) => simulate::run(args, out),
        Command::Run(args) => run::run(args, out),
        Command::Explain(args) => explain::run(args, out),
        Command::Status(args) => status::run(args, out),
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let milliseconds = config::milliseconds(text);
    milliseconds
        .map(Duration::from_millis)
        .ok_or_else(|| "a time is a number with a unit: 500ms, 60s, 5m".to_owned())
}
