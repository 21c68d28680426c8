//! `carillon serve`: runs a node until it is told to end.

use crate::cli::ServeArgs;
use std::process::ExitCode;

/// Runs a node.
pub fn run(args: ServeArgs) -> ExitCode {
    // NOT WIRED YET: load `args.source`, start telemetry, assemble the node, write the files of `crate::files`, await
    // `crate::signal`, drain.
    drop(args);
    eprintln!("carillon: serve is not wired yet");
    ExitCode::FAILURE
}
