//! Why a store on PostgreSQL may not open.

use std::io;

/// Why a store did not open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The address is none of PostgreSQL.
    #[error("the address of the database is not of the form postgresql://USER@HOST:PORT/DATABASE")]
    Address,
    /// The address carries a password: it would be seen in lists of processes and settings.
    #[error(
        "the address of the database has a password: put it into a file (store.password_file), or into the variable PGPASSWORD"
    )]
    Password,
    /// The address asks for a mode of TLS that there is not.
    #[error("sslmode is one of disable, require, verify-ca and verify-full")]
    SslMode,
    /// The address names one half of the certificate that the server is to be shown.
    #[error("sslcert and sslkey belong together")]
    ClientCertificate,
    /// The server cannot be reached, or refuses.
    #[error("{0}")]
    Server(String),
    /// Text is not stored as UTF-8.
    #[error("the database stores text as {0}: create one with ENCODING 'UTF8'")]
    Encoding(String),
    /// It is a database of some other program.
    #[error("the database has tables, but none of this server: give it a database of its own")]
    Foreign,
    /// It holds a part of a copy of another store.
    #[error(
        "the database holds a part of a copy of another store: `carillon store migrate`, given the same as before, goes on with it"
    )]
    Unfinished,
    /// There are no tables in it.
    #[error("there is no store in the database: it has no tables")]
    Empty,
    /// Somebody works on it who has it alone.
    #[error("`carillon store migrate` has the database: start nodes when it has ended")]
    Alone,
    /// A later version of the server has changed its schema.
    #[error(
        "the schema has version {found}, for servers that know {needed} or a later one; this one knows {known}"
    )]
    Newer {
        /// The version of the schema.
        found: u32,
        /// The version that a server has to know.
        needed: u32,
        /// The latest version known here.
        known: u32,
    },
    /// A thread could not be started.
    #[error("no thread for the store: {0}")]
    Thread(io::Error),
}

impl From<super::error::Error> for OpenError {
    fn from(e: super::error::Error) -> OpenError {
        OpenError::Server(e.to_string())
    }
}
