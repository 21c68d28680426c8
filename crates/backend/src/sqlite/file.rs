//! The database file: locked against others, readable by nobody else, opened with the same settings every time.

use super::column::int;
use super::{OpenError, Options};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Makes the files where they are not there, and takes the lock. The database is in use until the file is closed,
/// however the process ends.
pub(super) fn claim(path: &Path) -> Result<File, OpenError> {
    let lock = lock(path)?;
    // SQLite gives `-wal` and `-shm` the mode of the database.
    private(path)?;
    Ok(lock)
}

/// Takes the lock of a database, whether that is there or not. Makes its folder.
pub(super) fn lock(path: &Path) -> Result<File, OpenError> {
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(folder).map_err(|e| OpenError::file(folder, e))?;
    }
    let lock_path = beside(path, ".lock");
    let lock = private(&lock_path)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.to_owned(), lock: lock_path }),
        Err(TryLockError::Error(source)) => Err(OpenError::File { path: lock_path, source }),
    }
}

/// Opens the file, empty where it was not there, with mode 0600 whatever it had.
fn private(path: &Path) -> Result<File, OpenError> {
    let open = || {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        Ok(file)
    };
    open().map_err(|e| OpenError::file(path, e))
}

/// The one connection that writes.
pub(super) fn connect_writer(options: &Options) -> rusqlite::Result<Connection> {
    let db = connect(options, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let mode: String = db.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode != "wal" {
        return Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
            Some(format!("the file system does not allow write-ahead logging (journal mode {mode})")),
        ));
    }
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "foreign_keys", true)?;
    // Savepoints keep the pages they may have to restore in memory, not in a temporary file.
    db.pragma_update(None, "temp_store", "MEMORY")?;
    // Pages between checkpoints: 16 MiB. A checkpoint writes each changed page once, however often it changed.
    db.pragma_update(None, "wal_autocheckpoint", 4096)?;
    db.pragma_update(None, "journal_size_limit", 64 << 20)?;
    // At least in pages that are written anyway, which costs nothing but the zeros.
    let secure_delete = if options.secure_delete { "ON" } else { "FAST" };
    db.pragma_update_and_check(None, "secure_delete", secure_delete, |_| Ok(()))?;
    if let Some(bytes) = options.bytes_max {
        let page_bytes: i64 = db.pragma_query_value(None, "page_size", |row| row.get(0))?;
        // SQLite answers with what it made of it.
        db.pragma_update_and_check(None, "max_page_count", int(bytes) / page_bytes, |_| Ok(()))?;
    }
    Ok(db)
}

/// How long a database is checked when it is opened, of the second in which a node is to be ready. In this time about 300 MB of it are
/// looked at if they are in the file system's cache: 0.7 s of processor time were measured for 473 MB.
pub(super) const CHECK_MAX: Duration = Duration::from_millis(500);

/// How often a check that has had its time is told so: the first time it may not have begun.
const TELL_AGAIN: Duration = Duration::from_millis(10);

/// Looks for damage, for so long at most. Whether all of the database was looked at.
pub(super) fn check(db: &Connection, path: &Path, within: Duration) -> Result<bool, OpenError> {
    let interrupt = db.get_interrupt_handle();
    let (done, timer) = sync_channel::<()>(0);
    let tell = move || {
        let mut patience = within;
        while timer.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            interrupt.interrupt();
            patience = TELL_AGAIN;
        }
    };
    let found: rusqlite::Result<String> = std::thread::scope(|scope| {
        let timer = std::thread::Builder::new().name("store-check".to_owned());
        timer.spawn_scoped(scope, tell).map_err(OpenError::Thread)?;
        let found = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0));
        drop(done);
        Ok::<_, OpenError>(found)
    })?;
    match found {
        Ok(found) if found == "ok" => Ok(true),
        Ok(what) => Err(OpenError::Damaged { path: path.to_owned(), what: what.replace('\n', "; ") }),
        Err(e) if e.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => Ok(false),
        Err(e) => Err(OpenError::of(path, e)),
    }
}

/// A connection that reads.
pub(super) fn connect_reader(options: &Options) -> rusqlite::Result<Connection> {
    // Not read-only by flag: a reader must be able to make the shared index of the write-ahead log.
    let db = connect(options, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    db.pragma_update(None, "query_only", true)?;
    Ok(db)
}

fn connect(options: &Options, flags: OpenFlags) -> rusqlite::Result<Connection> {
    // Each connection stays in one thread, so it needs no mutex of its own.
    let db = Connection::open_with_flags(&options.path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    db.busy_timeout(Duration::from_secs(5))?;
    db.pragma_update(None, "cache_size", -i64::from(options.cache_kib))?;
    // More than there are statements: none is ever prepared twice.
    db.set_prepared_statement_cache_capacity(256);
    // Nor anew for other values: by default SQLite plans again when a parameter that the plan could depend on changes,
    // which costs more than the question. The guarantee is that the plan stays.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    rusqlite::vtab::array::load_module(&db)?;
    Ok(db)
}

/// Bytes of the database with its write-ahead log.
pub(super) fn size_bytes(path: &Path) -> u64 {
    let of = |path: &Path| std::fs::metadata(path).map_or(0, |m| m.len());
    of(path) + of(&beside(path, "-wal"))
}

pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_ends_in_time_and_says_whether_it_saw_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        drop(claim(&path).expect("it is made"));
        let db = connect_writer(&Options::new(&path)).expect("it opens");
        db.execute_batch("CREATE TABLE large (x); INSERT INTO large VALUES (zeroblob(256000000))")
            .expect("made");
        assert!(check(&db, &path, Duration::from_secs(600)).expect("nothing is damaged"));
        assert!(!check(&db, &path, Duration::ZERO).expect("it sees little"));
        // What follows is not interrupted.
        let count: i64 = db.query_row("SELECT count(*) FROM large", [], |row| row.get(0)).expect("counts");
        assert_eq!(count, 1);
    }
}
