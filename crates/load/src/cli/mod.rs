//! The command line of the load tester.
//!
//! Exit status: 0 success; 1 the test did not run to its end, or an operation failed; 2 the command line or
//! the scenario is wrong; 3 an assertion does not hold; 4 the test ran, and what its scenario expects was missed:
//! players failed, or something did not arrive, arrived twice or out of order, or was refused.

mod compare;
mod display;
mod failure;
mod orchestrate;
mod outputs;
mod run;
mod scenarios;
mod signals;
mod target;
mod upgrade;
mod worker;
mod worker_processes;

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use failure::Failure;
pub use worker_processes::Program;

/// Measures an XMPP server from outside, with many real clients.
#[derive(Debug, Parser)]
#[command(name = "carillon-load", version, after_help = EXIT_STATUS)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a scenario with its own workers
    Run(Box<run::RunArgs>),
    /// List the shipped scenarios, or print one
    Scenarios(scenarios::ScenariosArgs),
    /// Compare reports side by side, and check assertions on them
    Compare(compare::CompareArgs),
    /// Run tests that are submitted over HTTP, on registered workers
    Orchestrate(orchestrate::OrchestrateArgs),
    /// Run players for an orchestrator
    Worker(worker::WorkerArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Runs the command.
pub fn run(cli: &Cli, program: Program) -> ExitCode {
    let done = match &cli.command {
        Command::Run(args) => args.run(program),
        Command::Scenarios(args) => args.run(),
        Command::Compare(args) => args.run(),
        Command::Orchestrate(args) => args.run(),
        Command::Worker(args) => args.run(),
        Command::Completions { shell } => completions(*shell),
    };
    let Err(failure) = done else { return ExitCode::SUCCESS };
    let message = failure.to_string();
    if !message.is_empty() {
        eprintln!("carillon-load: {message}");
    }
    ExitCode::from(match failure {
        Failure::Test | Failure::Undone(_) => 1,
        Failure::Usage(_) => 2,
        Failure::Assertion(_) => 3,
        Failure::Missed => 4,
    })
}

fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "carillon-load", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Prints a text. Whoever has closed the pipe has seen enough (`carillon load scenarios | head`): what the command found is its exit status all the same.
fn print(text: &str) -> Result<(), Failure> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| Failure::file("standard output", &error)),
    }
}

const EXIT_STATUS: &str = "Exit status: 0 all went well, 1 the test could not be run to its end, 2 the command line or the \
                           scenario is wrong, 3 an assertion does not hold, 4 the test ran and missed
                           what its scenario expects: players failed, or something did not arrive, arrived twice or out
                           of order, or was refused.";

#[cfg(test)]
mod tests;
