//! Looking at a server before a node uses it: what it is set to that a store does not go well with.

use super::connection::Connection;
use super::error::Error;
use super::open_error::OpenError;
use super::options::Options;
use std::sync::Arc;
use std::time::Instant;

/// The oldest version that is supported, as `server_version_num` has it.
const VERSION_MIN: i32 = 140_000;
/// What a group of writes may need in locks, with some hundred connections.
const LOCKS_MIN: i32 = 256;

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It is an older version, this one.
    Version(String),
    /// Text is stored in this encoding.
    Encoding(String),
    /// It only follows another server, or refuses to write.
    ReadOnly,
    /// A commit is answered before it is on disk: the setting, and its value.
    NotDurable(&'static str, String),
    /// Fewer connections are let in than a node has.
    Connections {
        /// How many are let in.
        max: i64,
        /// How many a node has.
        needed: i64,
    },
    /// There are few locks for a group of writes.
    Locks(i32),
}

impl Finding {
    /// Whether a node cannot run on it.
    pub fn stops(&self) -> bool {
        matches!(
            self,
            Finding::Version(_) | Finding::Encoding(_) | Finding::ReadOnly | Finding::Connections { .. }
        )
    }

    /// The problem.
    pub fn what(&self) -> String {
        match self {
            Finding::Version(version) => format!("PostgreSQL {version} is too old"),
            Finding::Encoding(encoding) => format!("the database stores text as {encoding}"),
            Finding::ReadOnly => "the server is a standby, or read-only".to_owned(),
            Finding::NotDurable(setting, value) => {
                format!("{setting} is {value}: a loss of power may take writes that were answered")
            }
            Finding::Connections { max, needed } => {
                format!("the server lets in {max} connections, and a node has {needed}")
            }
            Finding::Locks(locks) => {
                format!("max_locks_per_transaction is {locks}: a large group of writes may need more locks")
            }
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self {
            Finding::Version(_) => "use version 14 or later".to_owned(),
            Finding::Encoding(_) => "create one with ENCODING 'UTF8' TEMPLATE template0".to_owned(),
            Finding::ReadOnly => {
                "name the primary, or all servers with target_session_attrs=read-write".to_owned()
            }
            Finding::NotDurable(setting, _) => format!("set {setting} to on"),
            Finding::Connections { .. } => {
                "raise max_connections, or CONNECTION LIMIT of the role or the database".to_owned()
            }
            Finding::Locks(_) => format!("set it to {LOCKS_MIN}, which takes a restart of the server"),
        }
    }
}

/// Looks at a server. Nothing is changed.
///
/// # Errors
/// When it cannot be reached.
pub fn inspect(options: Options) -> Result<Vec<Finding>, OpenError> {
    let needed = (options.lanes + options.readers + 1) as i64;
    let name = format!("carillon {} inspects", options.node);
    let patience = options.patience;
    let mut db = Connection::new(Arc::new(options), name, Arc::default()).map_err(OpenError::Thread)?;
    // It is tried once: nobody waits for what is only looked at.
    db.connect(Instant::now().checked_sub(patience))?;
    let row = db.one(SETTINGS, &[])?;
    let mut findings = Vec::new();
    let error = Error::from;
    let (version, name): (i32, String) = (row.try_get(0).map_err(error)?, row.try_get(1).map_err(error)?);
    if version < VERSION_MIN {
        findings.push(Finding::Version(name));
    }
    let encoding: String = row.try_get(2).map_err(error)?;
    if encoding != "UTF8" {
        findings.push(Finding::Encoding(encoding));
    }
    if row.try_get(3).map_err(error)? {
        findings.push(Finding::ReadOnly);
    }
    for (setting, column) in [("synchronous_commit", 4), ("fsync", 5), ("full_page_writes", 6)] {
        let value: String = row.try_get(column).map_err(error)?;
        if value == "off" {
            findings.push(Finding::NotDurable(setting, value));
        }
    }
    let max: i64 = row.try_get(7).map_err(error)?;
    if max < needed {
        findings.push(Finding::Connections { max, needed });
    }
    let locks: i32 = row.try_get(8).map_err(error)?;
    if locks < LOCKS_MIN {
        findings.push(Finding::Locks(locks));
    }
    Ok(findings)
}

const SETTINGS: &str = "SELECT current_setting('server_version_num')::integer, current_setting('server_version'),
        current_setting('server_encoding'), pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on',
        current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes'),
        least(current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint,
            (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database()),
            (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user)),
        current_setting('max_locks_per_transaction')::integer";
