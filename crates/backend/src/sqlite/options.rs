//! How a store is opened, and why it may not open.

use rusqlite::ErrorCode;
use std::io;
use std::path::{Path, PathBuf};

/// How a store is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The database file. Made, with its folder, when it is not there. Beside it lie the files SQLite adds (`-wal`,
    /// `-shm`) and the lock (`.lock`).
    pub path: PathBuf,
    /// Threads that answer questions, 1 to 64.
    pub readers: usize,
    /// Questions that may wait: this many reads and as many writes. More are answered [`Busy`].
    ///
    /// [`Busy`]: carillon_core::ports::Fault::Busy
    pub queue_max: usize,
    /// Bytes of what those questions carry, for the reads and again for the writes. One question is taken whatever it
    /// carries; past it they are answered [`Busy`], too.
    ///
    /// [`Busy`]: carillon_core::ports::Fault::Busy
    pub queue_bytes_max: usize,
    /// Page cache of each connection (the readers' and the writer's). The file system's cache holds the rest; what
    /// is here is given back after ten seconds in which little is asked.
    pub cache_kib: u32,
    /// Payload bytes of last items kept in memory to be shared between logins.
    pub items_bytes_max: usize,
    /// Bytes the database may grow to, where it is to leave room on the disk for others. Writes that need more fail as
    /// on a full disk, and go on when something was removed.
    pub bytes_max: Option<u64>,
    /// Whether it is searched for damage first. Not for whoever opens it at once after another process had it.
    pub is_searched: bool,
    /// Whether everything that is deleted is overwritten, also pages that are given up as a whole. What is removed with an account, a domain or an
    /// archive is in any case.
    pub secure_delete: bool,
}

impl Default for Options {
    /// The defaults, at no path yet.
    fn default() -> Options {
        Options::new("")
    }
}

impl Options {
    /// The defaults for a database at `path`: 2 readers, 65,536 questions with 128 MiB, 8 MiB a connection, 16 MiB of
    /// items.
    pub fn new(path: impl Into<PathBuf>) -> Options {
        Options {
            path: path.into(),
            readers: 2,
            queue_max: 65_536,
            queue_bytes_max: 128 << 20,
            cache_kib: 8 * 1024,
            items_bytes_max: 16 << 20,
            bytes_max: None,
            is_searched: true,
            secure_delete: false,
        }
    }
}

/// Why a store did not open, or a database could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another store of this one, has it open.
    #[error("{} is in use by another process (its lock {} is taken)", path.display(), lock.display())]
    InUse {
        /// The database.
        path: PathBuf,
        /// The lock that is taken.
        lock: PathBuf,
    },
    /// A later version of the server has changed its schema.
    #[error(
        "{} has schema version {found}, this version of the server knows up to {known}: run a newer one, or restore a backup",
        path.display()
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// The version of its schema.
        found: u32,
        /// The latest version known here.
        known: u32,
    },
    /// It holds a part of a copy of another store.
    #[error(
        "{} holds a part of a copy of another store: `carillon store migrate`, given the same as before, goes on with it",
        path.display()
    )]
    Unfinished {
        /// The database.
        path: PathBuf,
    },
    /// It is a database of some other program.
    #[error("{} is an SQLite database, but not one of this server", path.display())]
    Foreign {
        /// The database.
        path: PathBuf,
    },
    /// It is no SQLite database, or its first page is lost.
    #[error("{} is not an SQLite database: another file has its name, or its beginning was overwritten", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// Parts of it are lost or were overwritten.
    #[error("{} is damaged ({what}): restore a backup with `carillon restore`", path.display())]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What SQLite found.
        what: String,
    },
    /// There is no space for what has to be written.
    #[error("no space is left for {}", path.display())]
    Full {
        /// The database.
        path: PathBuf,
    },
    /// A file could not be made, locked or protected.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// SQLite could not open, read or change it.
    #[error("{}: {source}", path.display())]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// A thread could not be started.
    #[error("no thread for the store: {0}")]
    Thread(io::Error),
}

impl OpenError {
    /// What an error of SQLite means for whoever named the file.
    pub(super) fn of(path: &Path, source: rusqlite::Error) -> OpenError {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => OpenError::NotADatabase { path },
            Some(ErrorCode::DatabaseCorrupt) => OpenError::Damaged { path, what: source.to_string() },
            Some(ErrorCode::DiskFull) => OpenError::Full { path },
            _ => OpenError::Sqlite { path, source },
        }
    }

    /// What an error of the system means; `path` is the file or folder that it is about.
    pub(super) fn file(path: &Path, source: io::Error) -> OpenError {
        let path = path.to_owned();
        if source.kind() == io::ErrorKind::StorageFull {
            return OpenError::Full { path };
        }
        OpenError::File { path, source }
    }
}
