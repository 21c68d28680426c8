//! Why a command did not do it, and the exit code that says so.

use std::io;
use std::process::ExitCode;

/// Why a command did not do it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The node said no.
    #[error("{0}")]
    Refused(String),
    /// The node said that it is not there.
    #[error("{0}")]
    Missing(String),
    /// The command line, a file it names or the configuration is wrong.
    #[error("{0}")]
    Usage(String),
    /// No node answers.
    #[error("{0}")]
    Unreachable(String),
    /// The output could not be written.
    #[error("{0}")]
    Output(#[from] io::Error),
}

impl Failure {
    /// Tells people on standard error, and scripts by the exit code.
    pub(super) fn report(&self) -> ExitCode {
        // Whoever closed the pipe has seen enough: `carillon account list | head`.
        if !matches!(self, Failure::Output(e) if e.kind() == io::ErrorKind::BrokenPipe) {
            eprintln!("carillon: {self}");
        }
        ExitCode::from(self.code())
    }

    /// The exit code.
    pub(super) fn code(&self) -> u8 {
        match self {
            Failure::Refused(_) | Failure::Missing(_) | Failure::Output(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Unreachable(_) => 3,
        }
    }
}
