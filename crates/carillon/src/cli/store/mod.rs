//! `carillon store`: what is done with the whole store while no node uses it.

mod check;
mod migrate;

use super::failure::Failure;
use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

/// What `carillon store` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Copy a store from SQLite to PostgreSQL, or back, while no node uses either
    ///
    /// A copy that was interrupted is gone on with by the same command. At the end both are read again and compared: exit code 1 says that they
    /// differ, or that nothing could be copied. The password is found as for `store.url`: in the file store.password_file, or in the variable
    /// PGPASSWORD.
    Migrate(migrate::Args),
    /// Look for what is wrong with a store: damage, settings of the server, rows that do not agree with each other
    ///
    /// Nothing is changed, and nodes may run meanwhile. Each finding is a line. Exit code 1: there is an error among them, or the store could not be
    /// read.
    Check(check::Args),
}

/// Does what is said.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    match &args.command {
        Command::Check(args) => check::run(args, out),
        Command::Migrate(args) => migrate::run(args, out),
    }
}

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// A file.
    Sqlite(PathBuf),
    /// A database of a server, by its URL.
    Postgres(String),
}

impl FromStr for Place {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Place, &'static str> {
        if text.starts_with("postgresql://") || text.starts_with("postgres://") {
            return Ok(Place::Postgres(text.to_owned()));
        }
        match text.strip_prefix("sqlite:").map(PathBuf::from) {
            // The data folder of a node stands for its database.
            Some(path) if path.is_dir() => Ok(Place::Sqlite(path.join("carillon.db"))),
            Some(path) if !path.as_os_str().is_empty() => Ok(Place::Sqlite(path)),
            _ => Err("a store is sqlite:PATH or postgresql://…"),
        }
    }
}
