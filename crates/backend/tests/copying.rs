//! Backups and restores: the copy is what was copied, nothing is overwritten, and what is wrong is named.

use carillon_backend::sqlite::{CopyError, OpenError, Options, SqliteStore, backup, restore};
use carillon_core::model::{Credentials, Domain, Policy, UnixMs};
use carillon_core::ports::store::accounts::CreateAccount;
use carillon_core::ports::store::domains::{Domains, PutDomain};
use carillon_core::ports::{Question, Store};
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

fn ask<Q: Question>(store: &dyn Store, question: Q) -> Q::Answer {
    let (sender, receiver) = channel();
    store.ask(question.into(), Q::reply(move |answer| drop(sender.send(answer))));
    receiver.recv().expect("one answer").expect("the store is well")
}

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(Options::new(path)).expect("opens")
}

/// A store with a domain.
fn filled(path: &Path) -> (SqliteStore, Domain) {
    let store = open(path);
    let domain = ask(&store, PutDomain { name: "example.org".into(), policy: Policy::default() }).domain;
    (store, domain)
}

fn create(store: &dyn Store, domain: &Domain, n: u64) {
    let (local, credentials) = (format!("device-{n}").into(), Credentials::default());
    ask(store, CreateAccount { domain: domain.id, local, credentials, is_in_band: false, now: UnixMs(n) });
}

/// The names in a folder.
fn listed(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
    let mut names: Vec<_> = fs::read_dir(folder).expect("a folder").map(name).collect();
    names.sort();
    names.into_iter().map(|name| name.into_string().expect("text")).collect()
}

/// A folder for databases, and one for backups.
struct Folders {
    folder: tempfile::TempDir,
}

impl Folders {
    fn new() -> Folders {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("backups")).expect("made");
        Folders { folder }
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("data/carillon.db")
    }

    fn backups(&self) -> PathBuf {
        self.folder.path().join("backups")
    }

    fn file(&self) -> PathBuf {
        self.backups().join("a.db")
    }
}

#[test]
fn what_is_backed_up_while_it_is_written_is_one_state_and_is_restored() {
    let folders = Folders::new();
    let (store, domain) = filled(&folders.database());
    (0..200).for_each(|n| create(&store, &domain, n));
    let done = AtomicBool::new(false);
    let contents = std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 200.. {
                create(&store, &domain, n);
                if done.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let contents = backup(&folders.database(), &folders.file());
        done.store(true, Ordering::Relaxed);
        contents.expect("a backup")
    });
    assert_eq!(listed(&folders.backups()), ["a.db"], "one file, and nothing beside it");
    let mode = fs::metadata(folders.file()).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(contents.bytes, fs::metadata(folders.file()).expect("a file").len());
    let rows = |table: &str| contents.rows.iter().find(|(name, _)| name == table).expect("a table").1;
    assert_eq!(rows("domain"), 1);
    let accounts = rows("account");
    assert!(accounts >= 200, "{accounts}");

    let other = folders.folder.path().join("other/carillon.db");
    let restored = restore(&folders.file(), &other, false).expect("is restored");
    assert_eq!((&restored.contents.rows, restored.replaced), (&contents.rows, None));
    let store = open(&other);
    assert_eq!(ask(&store, Domains), [domain]);
    // What came first is there, as in the database that was copied.
    store.close();
    let db = Connection::open(&other).expect("opens");
    let last: i64 = db.query_row("SELECT max(created) FROM account", [], |row| row.get(0)).expect("a row");
    assert_eq!(last as u64 + 1, accounts);
}

#[test]
fn a_backup_can_be_read_where_nothing_can_be_written() {
    let folders = Folders::new();
    drop(filled(&folders.database()));
    backup(&folders.database(), &folders.file()).expect("a backup");
    // Without write-ahead logging, which needs files beside it: bytes 18 and 19 of the header say so.
    let mut versions = [0; 2];
    fs::File::open(folders.file()).expect("opens").read_exact_at(&mut versions, 18).expect("a header");
    assert_eq!(versions, [1, 1]);
}

#[test]
fn no_file_is_overwritten() {
    let folders = Folders::new();
    let (store, _) = filled(&folders.database());
    fs::write(folders.file(), "mine").expect("written");
    for taken in [folders.file(), folders.database()] {
        let before = fs::read(&taken).expect("reads");
        let refused = backup(&folders.database(), &taken);
        assert!(matches!(&refused, Err(CopyError::Exists { path }) if *path == taken), "{refused:?}");
        assert_eq!(fs::read(&taken).expect("reads"), before);
    }
    // Another process is at it, or was.
    let partial = folders.backups().join("c.db.partial");
    fs::write(&partial, "half").expect("written");
    let refused = backup(&folders.database(), &folders.backups().join("c.db"));
    assert!(matches!(&refused, Err(CopyError::Unfinished { path }) if *path == partial), "{refused:?}");
    assert_eq!(fs::read(&partial).expect("reads"), b"half");
    drop(store);
}

#[test]
fn a_database_that_is_there_is_replaced_only_if_that_was_said() {
    let folders = Folders::new();
    let database = folders.database();
    let (store, domain) = filled(&database);
    backup(&database, &folders.file()).expect("a backup");
    create(&store, &domain, 1);

    let refused = restore(&folders.file(), &database, true);
    assert!(matches!(refused, Err(CopyError::Database(OpenError::InUse { .. }))), "{refused:?}");
    store.close();
    let refused = restore(&folders.file(), &database, false);
    assert!(matches!(&refused, Err(CopyError::Exists { path }) if *path == database), "{refused:?}");

    let restored = restore(&folders.file(), &database, true).expect("is restored");
    let aside = restored.replaced.expect("the former one");
    let count = |path: &Path| {
        let db = Connection::open(path).expect("opens");
        db.query_row("SELECT count(*) FROM account", [], |row| row.get::<_, i64>(0)).expect("counts")
    };
    assert_eq!((count(&database), count(&aside)), (0, 1));
    // The one of before is not lost by doing it twice.
    let refused = restore(&folders.file(), &database, true);
    assert!(matches!(&refused, Err(CopyError::Exists { path }) if *path == aside), "{refused:?}");
}

/// The log of a database that was killed must never be applied to another one.
#[test]
fn the_log_of_the_former_database_goes_with_it() {
    let folders = Folders::new();
    let database = folders.database();
    let (store, domain) = filled(&database);
    backup(&database, &folders.file()).expect("a backup");
    create(&store, &domain, 1);
    // As after a kill: the files as they are while the store is open.
    let killed = folders.folder.path().join("killed");
    fs::create_dir(&killed).expect("made");
    for part in ["", "-wal", "-shm"] {
        let name = format!("carillon.db{part}");
        fs::copy(database.with_file_name(&name), killed.join(&name)).expect("copied");
    }
    let database = killed.join("carillon.db");
    restore(&folders.file(), &database, true).expect("is restored");
    let names: Vec<_> = listed(&killed).into_iter().filter(|name| !name.ends_with(".lock")).collect();
    let expected =
        ["carillon.db", "carillon.db.replaced", "carillon.db.replaced-shm", "carillon.db.replaced-wal"];
    assert_eq!(names, expected);
    let accounts = |path: &Path| {
        let db = Connection::open(path).expect("opens");
        db.query_row("SELECT count(*) FROM account", [], |row| row.get::<_, i64>(0)).expect("counts")
    };
    assert_eq!(accounts(&database), 0);
    assert_eq!(accounts(&killed.join("carillon.db.replaced")), 1, "with what was in its log only");
}

#[test]
fn what_cannot_be_copied_is_named_and_leaves_nothing() {
    let folders = Folders::new();
    drop(filled(&folders.database()));
    backup(&folders.database(), &folders.file()).expect("a backup");
    let good = fs::read(folders.file()).expect("reads");
    let bad = folders.backups().join("bad.db");
    let target = folders.folder.path().join("new/carillon.db");
    let refused = |what: &str| {
        let refused = restore(&bad, &target, false).expect_err(what);
        assert!(!target.exists(), "{what}");
        let folder = target.parent().expect("a folder");
        let left = if folder.exists() { listed(folder) } else { Vec::new() };
        assert!(left.iter().all(|name| name == "carillon.db.lock"), "{what}: {left:?}");
        refused
    };
    assert!(matches!(refused("nothing"), CopyError::Missing { .. }));
    fs::write(&bad, "").expect("written");
    assert!(matches!(refused("empty"), CopyError::Database(OpenError::Foreign { .. })));
    fs::write(&bad, "This is a letter, not a database. ".repeat(100)).expect("written");
    assert!(matches!(refused("a letter"), CopyError::Database(OpenError::NotADatabase { .. })));
    fs::remove_file(&bad).expect("removed");
    Connection::open(&bad).expect("opens").execute_batch("CREATE TABLE theirs (x)").expect("changes");
    assert!(matches!(refused("theirs"), CopyError::Database(OpenError::Foreign { .. })));
    fs::write(&bad, &good).expect("written");
    Connection::open(&bad).expect("opens").pragma_update(None, "user_version", 1000).expect("changes");
    let newer = refused("newer");
    assert!(matches!(newer, CopyError::Database(OpenError::Newer { found: 1000, .. })), "{newer:?}");
    fs::write(&bad, &good[..good.len() / 2]).expect("written");
    let cut = refused("cut");
    assert!(matches!(&cut, CopyError::Database(OpenError::Damaged { path, .. }) if *path == bad), "{cut:?}");
    // Any page that was overwritten, also one that no query reads.
    let mut damaged = good.clone();
    let last = damaged.len() - 4096;
    damaged[last..].fill(0x5a);
    fs::write(&bad, &damaged).expect("written");
    let overwritten = refused("overwritten");
    assert!(matches!(overwritten, CopyError::Database(OpenError::Damaged { .. })), "{overwritten:?}");
    assert!(overwritten.to_string().contains("restore a backup"), "{overwritten}");
}

#[test]
fn a_path_that_cannot_be_is_named() {
    let folders = Folders::new();
    drop(filled(&folders.database()));
    let nowhere = folders.folder.path().join("nowhere/a.db");
    let refused = backup(&folders.database(), &nowhere).expect_err("no folder").to_string();
    assert!(refused.contains("nowhere/a.db"), "{refused}");
    let refused = restore(&folders.backups(), &folders.database(), false).expect_err("a folder").to_string();
    assert!(refused.contains("backups: is a directory"), "{refused}");
    let refused = backup(&nowhere, &folders.file()).expect_err("no database");
    assert!(matches!(&refused, CopyError::Missing { path } if *path == nowhere), "{refused:?}");
}

#[test]
fn an_older_database_is_restored_as_it_is_and_upgraded_by_the_store() {
    let folders = Folders::new();
    let older = folders.backups().join("older.db");
    let schema = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sqlite/migrations/0001_initial.sql"),
    );
    let db = Connection::open(&older).expect("opens");
    db.execute_batch(&schema.expect("a schema")).expect("made");
    db.execute_batch("PRAGMA application_id = 0x43524c4e; PRAGMA user_version = 1").expect("ours");
    drop(db);
    let restored = restore(&older, &folders.database(), false).expect("is restored");
    assert_eq!(restored.contents.schema_version, 1);
    drop(open(&folders.database()));
    let contents = backup(&folders.database(), &folders.file()).expect("a backup");
    assert!(contents.schema_version > 1);
}
