//! Why the store on PostgreSQL could not do something.

use super::tls::Unready;
use crate::engine::complaints::Failing;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::error::{Severity, SqlState};

/// A result of a question to PostgreSQL.
pub(super) type Result<T> = std::result::Result<T, Error>;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// PostgreSQL refused it. Its detail is left out: it may name a user.
    #[error("PostgreSQL: {} ({})", .0.message(), .0.code().code())]
    Refused(Box<tokio_postgres::error::DbError>),
    /// The connection failed, or what came over it could not be read.
    #[error("PostgreSQL: {}", Whole(.0))]
    Driver(tokio_postgres::Error),
    /// The file with the password cannot be read.
    #[error("{}: {}", .0.display(), .1)]
    PasswordFile(PathBuf, std::io::Error),
    /// TLS cannot be set up.
    #[error("TLS to PostgreSQL: {0}")]
    Tls(#[from] Unready),
    /// The connection was not made, for a reason that a setting of TLS mends.
    #[error("{error}; {remedy}")]
    NotTrusted {
        /// What failed.
        error: Box<Error>,
        /// What to do about it.
        remedy: String,
    },
    /// No answer came in time.
    #[error("PostgreSQL did not answer within {0:?}")]
    Late(Duration),
    /// There is no connection.
    #[error("there is no connection to PostgreSQL")]
    Away,
    /// A row holds what this version has no meaning for.
    #[error("a row cannot be read: {0}")]
    Corrupt(&'static str),
    /// The node is not like the others of its cell.
    #[error("this node does not join: {0}")]
    DoesNotFit(String),
    /// What was asked cannot be stored.
    #[error("it cannot be stored: {0}")]
    Unfit(&'static str),
}

/// An error of the driver with what is behind it: the driver itself says no more than what it was doing.
struct Whole<'a>(&'a tokio_postgres::Error);

impl fmt::Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = std::error::Error::source(self.0);
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

impl Error {
    /// Whether the connection is lost, or cannot be relied on.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            Error::Late(_) | Error::Away => true,
            Error::NotTrusted { error, .. } => error.is_lost(),
            Error::Driver(e) => {
                e.is_closed()
                    || std::error::Error::source(e).is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
            }
            // Class 57: the server ends, or starts. FATAL and PANIC end the session, whatever they are about.
            Error::Refused(e) => {
                e.code().code().starts_with("57P")
                    || matches!(e.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
            }
            _ => false,
        }
    }

    /// Whether the same transaction may succeed when it is done again: it met another one.
    pub(super) fn is_conflict(&self) -> bool {
        self.code().is_some_and(|code| {
            [&SqlState::T_R_DEADLOCK_DETECTED, &SqlState::T_R_SERIALIZATION_FAILURE].contains(&code)
        })
    }

    /// Whether another process of the node has taken over.
    pub(super) fn is_fenced(&self) -> bool {
        self.code().is_some_and(|code| code.code() == FENCED)
    }

    fn code(&self) -> Option<&SqlState> {
        match self {
            Error::Refused(e) => Some(e.code()),
            Error::NotTrusted { error, .. } => error.code(),
            _ => None,
        }
    }
}

/// What `lane_step` raises in a process that is buried.
const FENCED: &str = "CA001";

impl From<tokio_postgres::Error> for Error {
    fn from(e: tokio_postgres::Error) -> Error {
        match e.as_db_error() {
            Some(refused) => Error::Refused(Box::new(refused.clone())),
            None => Error::Driver(e),
        }
    }
}

impl Failing for Error {
    fn may_be_damage(&self) -> bool {
        self.code()
            .is_some_and(|code| [&SqlState::DATA_CORRUPTED, &SqlState::INDEX_CORRUPTED].contains(&code))
    }
}
