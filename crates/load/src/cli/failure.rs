//! Why the program ends without success.

/// Why the program ends without success.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The test did not run to its end, or a phase ran out of time; its report was printed.
    #[error("")]
    Test,
    /// The test ran, and missed what its scenario expects; the report was printed.
    #[error("")]
    Missed,
    /// An operation failed.
    #[error("{0}")]
    Undone(String),
    /// The command line or the scenario is wrong.
    #[error("{0}")]
    Usage(String),
    /// An assertion does not hold.
    #[error("{0}")]
    Assertion(String),
}

impl Failure {
    /// A file cannot be read or written.
    pub(super) fn file(path: &str, error: &std::io::Error) -> Self {
        Self::Undone(format!("{path}: {error}"))
    }
}
