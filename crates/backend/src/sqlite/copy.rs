//! Backup and restore: a copy of the database that gets its name after it was read back.
//!
//! The copy is made by SQLite's backup API and not by `VACUUM INTO`. It reads one snapshot, which can be counted first and
//! compared with the copy; it copies pages in their order and builds no index anew, so that it takes less time, in which the
//! write-ahead log cannot begin again; and it copies damage as it is, which the check then finds: `VACUUM INTO` builds sound
//! indexes from what it can still read.

use super::file::{beside, lock};
use super::options::OpenError;
use super::schema;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a copy has in it, as it was read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The version of its schema.
    pub schema_version: u32,
    /// Size of the file.
    pub bytes: u64,
    /// Each table with the number of its rows, by name.
    pub rows: Vec<(String, u64)>,
}

/// What became of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// What is in the database now.
    pub contents: Contents,
    /// Where the database is that was there before.
    pub replaced: Option<PathBuf>,
}

/// Why there is no copy. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// What is to be copied cannot be read, or what is to be written cannot be made.
    #[error(transparent)]
    Database(#[from] OpenError),
    /// What is to be copied is not there.
    #[error("there is no {}", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// What is to be written is there already.
    #[error("{} exists", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file that a copy is written to before it gets its name.
    #[error("{} exists: another backup is being written, or one was interrupted: then remove it", path.display())]
    Unfinished {
        /// The file.
        path: PathBuf,
    },
    /// The copy was read back, and is not what was copied.
    #[error("the copy of {} is not what was copied ({what}): is its disk in order?", path.display())]
    Differs {
        /// What was copied.
        path: PathBuf,
        /// The difference.
        what: String,
    },
}

/// Writes a copy of a database to a file that does not exist. The node that has the database open goes on meanwhile.
///
/// # Errors
/// When either file cannot be used, or the copy is not what was copied. Then there is no file.
pub fn backup(database: &Path, file: &Path) -> Result<Contents, CopyError> {
    refuse_existing(file)?;
    let from = open(database)?;
    let mut copy = Unnamed::new(beside(file, ".partial"))?;
    let contents = copy.write(&from, database)?;
    refuse_existing(file)?;
    copy.name(file)?;
    Ok(contents)
}

/// Writes a backup to where a node finds its database. One that is there is put aside if `replace` is true, under its name
/// with `.replaced`.
///
/// # Errors
/// When either file cannot be used, a node has the database open, one is there that is not to be replaced, or the copy is not
/// what was copied. Then nothing was changed.
pub fn restore(file: &Path, database: &Path, replace: bool) -> Result<Restored, CopyError> {
    let from = open(file)?;
    let claim = lock(database)?;
    let aside = beside(database, ".replaced");
    let is_there = PARTS.iter().any(|part| beside(database, part).exists());
    if is_there {
        if !replace {
            return Err(CopyError::Exists { path: database.to_owned() });
        }
        refuse_existing(&aside)?;
    }
    let unnamed = beside(database, ".restoring");
    // One that was interrupted: nobody else writes while the lock is ours.
    remove_all(&unnamed);
    let mut copy = Unnamed::new(unnamed)?;
    let contents = copy.write(&from, file)?;
    let folder = folder_of(database);
    give_to_owner(folder, &copy.path).map_err(|e| OpenError::file(&copy.path, e))?;
    give_to_owner(folder, &beside(database, ".lock")).map_err(|e| OpenError::file(database, e))?;
    if is_there {
        put_aside(database, &aside).map_err(|e| OpenError::file(database, e))?;
    }
    copy.name(database)?;
    drop(claim);
    Ok(Restored { contents, replaced: is_there.then_some(aside) })
}

/// What the file of a database may have beside it that belongs to it, and the file. The log comes first: without the
/// database it is nothing, and beside another one it must never be.
const PARTS: [&str; 4] = ["-wal", "-journal", "-shm", ""];

/// Renames a database with all that belongs to it, on disk before this returns.
fn put_aside(database: &Path, aside: &Path) -> io::Result<()> {
    for part in PARTS {
        match fs::rename(beside(database, part), beside(aside, part)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    File::open(folder_of(database))?.sync_all()
}

/// A database to be copied, as it is now: ours, and of a version that is known here.
fn open(path: &Path) -> Result<Connection, CopyError> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            Err(OpenError::file(path, io::Error::from(io::ErrorKind::IsADirectory)))?;
        }
        Ok(_) => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Err(CopyError::Missing { path: path.to_owned() });
        }
        Err(e) => Err(OpenError::file(path, e))?,
    }
    let connect = || {
        let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        db.busy_timeout(Duration::from_secs(5))?;
        // Until it is closed all that is read is of one state.
        db.execute_batch("BEGIN; SELECT 1 FROM sqlite_schema")?;
        Ok(db)
    };
    let db = connect().map_err(|e| OpenError::of(path, e))?;
    schema::version(&db, path)?;
    Ok(db)
}

/// A copy that has no name yet, and is removed unless it gets one.
struct Unnamed {
    path: PathBuf,
    is_named: bool,
}

impl Unnamed {
    fn new(path: PathBuf) -> Result<Unnamed, CopyError> {
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(_) => Ok(Unnamed { path, is_named: false }),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(CopyError::Unfinished { path }),
            Err(e) => Err(OpenError::file(&path, e))?,
        }
    }

    /// Copies what `from` sees, reads it back and has it on disk.
    fn write(&mut self, from: &Connection, name: &Path) -> Result<Contents, CopyError> {
        let path = &self.path;
        let of_source = |e| OpenError::of(name, e);
        let expected = (schema::version(from, name)?, rows(from).map_err(of_source)?);
        pages(from, path).map_err(|e| match e.sqlite_error_code() {
            // What is read can be damaged, what is written be too large.
            Some(rusqlite::ErrorCode::DatabaseCorrupt) => OpenError::of(name, e),
            _ => OpenError::of(path, e),
        })?;
        let found = self.read_back(name)?;
        if found != expected {
            let what = format!("expected {expected:?}, found {found:?}");
            return Err(CopyError::Differs { path: name.to_owned(), what });
        }
        let sync = || {
            let file = File::open(path)?;
            file.sync_all()?;
            Ok(file.metadata()?.len())
        };
        let bytes = sync().map_err(|e| OpenError::file(path, e))?;
        let (schema_version, rows) = found;
        Ok(Contents { schema_version, bytes, rows })
    }

    /// Reads all of the copy: whether each page is what it should be, and what is in it.
    fn read_back(&self, name: &Path) -> Result<(u32, Vec<(String, u64)>), CopyError> {
        let of_copy = |e| OpenError::of(&self.path, e);
        let db =
            Connection::open_with_flags(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(of_copy)?;
        // A file of its own, which can be read where nothing can be written.
        db.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(())).map_err(of_copy)?;
        let found: String =
            db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(of_copy)?;
        if found != "ok" {
            return Err(OpenError::Damaged { path: name.to_owned(), what: found })?;
        }
        Ok((schema::version(&db, &self.path)?, rows(&db).map_err(of_copy)?))
    }

    /// Gives it its name, on disk before this returns.
    fn name(mut self, name: &Path) -> Result<(), CopyError> {
        let rename = || {
            fs::rename(&self.path, name)?;
            File::open(folder_of(name))?.sync_all()
        };
        rename().map_err(|e| OpenError::file(name, e))?;
        self.is_named = true;
        Ok(())
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        if !self.is_named {
            remove_all(&self.path);
        }
    }
}

/// Removes a database with all that belongs to it, where it is there.
fn remove_all(path: &Path) {
    for part in PARTS {
        // The error that led here is the one to tell.
        let _ = fs::remove_file(beside(path, part));
    }
}

/// Copies every page.
fn pages(from: &Connection, to: &Path) -> rusqlite::Result<()> {
    let mut to = Connection::open_with_flags(to, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // A copy that is not completed is removed: it needs no journal, and is synchronised once at the end.
    to.pragma_update_and_check(None, "journal_mode", "off", |_| Ok(()))?;
    to.pragma_update(None, "synchronous", "OFF")?;
    let copy = Backup::new(from, &mut to)?;
    match copy.step(-1)? {
        StepResult::Done => Ok(()),
        // Of all pages in one step none is left, and the copy is nobody else's.
        other => Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY),
            Some(format!("the copy was not completed ({other:?})")),
        )),
    }
}

/// Each table with the number of its rows.
fn rows(db: &Connection) -> rusqlite::Result<Vec<(String, u64)>> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite@_%' ESCAPE '@' ORDER BY name";
    let mut tables = db.prepare(sql)?;
    let names = tables.query_map([], |row| row.get::<_, String>(0))?;
    names
        .map(|name| {
            let name = name?;
            let sql = format!("SELECT count(*) FROM \"{}\"", name.replace('"', "\"\""));
            let count: i64 = db.query_row(&sql, [], |row| row.get(0))?;
            Ok((name, count as u64))
        })
        .collect()
}

fn refuse_existing(path: &Path) -> Result<(), CopyError> {
    // A link that leads nowhere is there, too.
    match fs::symlink_metadata(path) {
        Ok(_) => Err(CopyError::Exists { path: path.to_owned() }),
        Err(_) => Ok(()),
    }
}

/// Has a file belong to whom the folder belongs to: whoever restores may be root, and the node another user.
pub(super) fn give_to_owner(folder: &Path, file: &Path) -> io::Result<()> {
    let (owner, present) = (fs::metadata(folder)?, fs::metadata(file)?);
    if (owner.uid(), owner.gid()) == (present.uid(), present.gid()) {
        return Ok(());
    }
    chown(file, Some(owner.uid()), Some(owner.gid()))
}

pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
