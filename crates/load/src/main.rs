//! The load tester's own program.

use std::process::ExitCode;

use carillon_load::cli::{Cli, Program, run};
use clap::Parser;

fn main() -> ExitCode {
    run(&Cli::parse(), Program::default())
}
