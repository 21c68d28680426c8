//! The load tester's own program.

use std::process::ExitCode;

use carillon_load::cli::{Cli, run};
use clap::Parser;

fn main() -> ExitCode {
    run(&Cli::parse())
}
