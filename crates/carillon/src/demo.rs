//! `carillon demo`: a node with a few clients, to look at.

use std::process::ExitCode;

/// Runs the demo.
pub fn run() -> ExitCode {
    // NOT WIRED YET.
    eprintln!("carillon: demo is not wired yet");
    ExitCode::FAILURE
}
