//! Stores that are copied from SQLite to PostgreSQL and back.

use crate::archived::{everything, messages};
use crate::commits::{ask, ground};
use crate::server::{Database, server};
use carillon_backend::migrate::{
    Direction, MigrateError, Migration, MigrationPhase, Progress, Report, Sum, copied, migrate, not_copied,
};
use carillon_backend::postgres::PostgresStore;
use carillon_backend::sqlite::{SqliteStore, check_store};
use carillon_backend::{StoreOptions, check, postgres};
use carillon_core::model::*;
use carillon_core::ports::Store;
use carillon_core::ports::store::domains::PutDomain;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Rows that every table is filled with.
const ROWS: i64 = 3;

fn migration(path: &Path, database: &Database, direction: Direction) -> Migration {
    Migration {
        sqlite: path.to_owned(),
        postgres: server().options(&database.name),
        direction,
        node: "carillon".to_owned(),
    }
}

/// Copies one way. The lock of a copy that ended a moment ago is waited for.
fn copy(path: &Path, database: &Database, direction: fn() -> Direction) -> Result<Report, MigrateError> {
    copy_with(path, database, direction, &mut |_| {})
}

fn copy_with(
    path: &Path,
    database: &Database,
    direction: fn() -> Direction,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Report, MigrateError> {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        match migrate(migration(path, database, direction()), progress) {
            Err(MigrateError::InUse { .. }) if Instant::now() < until => std::thread::yield_now(),
            done => return done,
        }
    }
}

fn to_postgres() -> Direction {
    Direction::ToPostgres
}

fn to_sqlite() -> Direction {
    Direction::ToSqlite
}

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(StoreOptions::new(path)).expect("it opens")
}

fn sqlite_columns(db: &Connection, table: &str) -> Vec<(String, String)> {
    let mut query = db.prepare("SELECT name, type FROM pragma_table_info(?1)").expect("prepares");
    let columns = query.query_map([table], |row| Ok((row.get(0)?, row.get(1)?))).expect("they are listed");
    columns.collect::<rusqlite::Result<_>>().expect("columns")
}

fn sqlite_tables(db: &Connection) -> BTreeSet<String> {
    let mut query = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").expect("prepares");
    let names = query.query_map([], |row| row.get(0)).expect("they are listed");
    names.collect::<rusqlite::Result<_>>().expect("names")
}

/// The tables of a database of PostgreSQL, with the types of their columns; computed columns are left out.
fn postgres_tables(database: &Database) -> BTreeMap<String, BTreeMap<String, String>> {
    let rows = database.run(
        "SELECT table_name::text, column_name::text, data_type::text FROM information_schema.columns
         WHERE table_schema = 'public' AND is_generated = 'NEVER'",
    );
    let mut tables: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for row in rows {
        let [table, column, kind]: [String; 3] = [row.get(0), row.get(1), row.get(2)];
        tables.entry(table).or_default().insert(column, kind);
    }
    tables
}

/// A database in which every table that is copied has rows, whatever columns it has: row `n` has `n` in every column, or what else is for `n`,
/// and so refers to rows `n` of other tables.
fn filled(folder: &Path, kinds: &BTreeMap<String, BTreeMap<String, String>>) -> PathBuf {
    let path = folder.join("carillon.db");
    open(&path).close();
    let db = Connection::open(&path).expect("it opens");
    db.execute_batch("PRAGMA foreign_keys = off").expect("it is a setting");
    for (table, _) in copied().into_iter().chain([("archive_conversation", Vec::new())]) {
        let columns = sqlite_columns(&db, table);
        for n in 1..=ROWS {
            let value = |(name, kind): &(String, String)| {
                let other = kinds.get(table).and_then(|columns| columns.get(name)).map_or("", |kind| kind);
                match (table, &**name, &**kind) {
                    // 2 for those of which it was not noted.
                    ("archive_message", "contents", _) => Value::from(n % 3),
                    // Their numbers on PostgreSQL begin at 0.
                    ("parked", "number", _) => Value::from(n - 1),
                    (_, "run" | "owner" | "claimed", _) if table != "push" => Value::from(0),
                    (_, _, "INTEGER") if other == "boolean" => Value::from(n % 2),
                    (_, _, "INTEGER") => Value::from(n),
                    (_, _, "TEXT") => Value::from(format!("é'{n}")),
                    _ if other == "uuid" => Value::from(vec![n as u8; 16]),
                    _ => Value::from(vec![0, n as u8]),
                }
            };
            let places = vec!["?"; columns.len()].join(", ");
            // What triggers have put there is replaced.
            db.execute(
                &format!("INSERT OR REPLACE INTO {table} VALUES ({places})"),
                params_from_iter(columns.iter().map(value)),
            )
            .unwrap_or_else(|e| panic!("{table}: {e}"));
        }
        let many: i64 = db
            .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))
            .expect("they are counted");
        assert!(many >= ROWS, "{table} has rows");
    }
    // What triggers counted, in rows that others have replaced; and all messages are in their tables.
    db.execute_batch(&format!(
        "UPDATE archive_fold SET folded = {ROWS}; UPDATE node SET broadcast_revision = 77"
    ))
    .expect("they are there");
    path
}

fn sums(report: &Report) -> BTreeMap<&'static str, Sum> {
    report.tables.iter().map(|table| (table.table, table.to)).collect()
}

#[test]
fn every_table_and_column_of_both_stores_is_judged() {
    let (folder, database) = (tempfile::tempdir().expect("a folder"), Database::new());
    let path = folder.path().join("carillon.db");
    open(&path).close();
    let db = Connection::open(&path).expect("it opens");
    let (sqlite, postgres) = (sqlite_tables(&db), postgres_tables(&database));
    let left: BTreeSet<&str> = not_copied().iter().map(|(name, _)| *name).collect();
    let listed: BTreeSet<&str> = copied().iter().map(|(name, _)| *name).collect();
    assert_eq!(listed.intersection(&left).count(), 0, "a table is copied or not");
    let known: BTreeSet<&str> = listed.union(&left).copied().collect();
    for table in sqlite.iter().chain(postgres.keys()) {
        assert!(known.contains(&**table), "{table} is in neither list of moving/tables.rs");
    }
    for table in known.iter().filter(|table| **table != "store_migration") {
        assert!(sqlite.contains(*table) || postgres.contains_key(*table), "there is no table {table}");
    }
    for (table, apart) in copied() {
        let theirs: BTreeSet<&str> = postgres[table].keys().map(|name| &**name).collect();
        let columns = sqlite_columns(&db, table);
        let mut ours: BTreeSet<&str> = columns.iter().map(|(name, _)| &**name).collect();
        if table == "archive_entry" {
            // In the other index of the same entries.
            ours.insert("kind");
        }
        for column in ours.symmetric_difference(&theirs) {
            assert!(apart.contains(column), "{table}.{column} is in one store only, and not judged");
        }
        for column in &apart {
            assert!(ours.contains(column) || theirs.contains(column), "there is no column {table}.{column}");
        }
    }
}

#[test]
fn every_row_comes_to_postgresql_and_back() {
    let (folder, database) = (tempfile::tempdir().expect("a folder"), Database::new());
    let path = filled(folder.path(), &postgres_tables(&database));
    let report = copy(&path, &database, to_postgres).expect("it is copied");
    assert!(report.is_same() && !report.was_begun, "{report:?}");
    for table in &report.tables {
        assert!(table.to.rows >= ROWS as u64, "{} has {} rows", table.table, table.to.rows);
        let rows: i64 = database.run(&format!("SELECT count(*) FROM {}", table.table))[0].get(0);
        assert_eq!(rows, table.to.rows as i64, "{}", table.table);
    }
    // Numbers go on behind those that were given.
    let given = |sql: &str| -> i64 { database.run(sql)[0].get(0) };
    assert_eq!(given("SELECT nextval('archive_message_seq_seq')"), ROWS + 1);
    assert_eq!(given("SELECT newest FROM broadcast_revision"), 77);
    assert!(given("SELECT newest FROM event_number") >= ROWS);
    assert_eq!(given("SELECT count(*) FROM pg_trigger WHERE tgenabled = 'D'"), 0);
    assert_eq!(given("SELECT count(*) FROM parked WHERE node = 'carillon'"), ROWS);

    let back = folder.path().join("back.db");
    let again = copy(&back, &database, to_sqlite).expect("it is copied");
    assert!(again.is_same(), "{again:?}");
    assert_eq!(sums(&again), sums(&report));
    let (before, after) = (counters(&path), counters(&back));
    for (table, given) in before {
        assert!(after[&table] >= given, "{table}: {} of {given}", after[&table]);
    }
    // A node opens both.
    open(&back).close();
    drop(database.open());
}

fn counters(path: &Path) -> BTreeMap<String, i64> {
    let db = Connection::open(path).expect("it opens");
    let mut query = db.prepare("SELECT name, seq FROM sqlite_sequence").expect("prepares");
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("they are listed");
    rows.collect::<rusqlite::Result<_>>().expect("counters")
}

/// Domains, accounts and archives, whose newest messages are in no table of SQLite yet.
fn archived(path: &Path) -> DomainId {
    let store = open(path);
    let domain = ground(&store);
    for message in messages(domain) {
        ask(&store, message).expect("it is kept");
    }
    domain
}

#[test]
fn archives_are_the_same_on_either_store_and_go_on() {
    let (folder, database) = (tempfile::tempdir().expect("a folder"), Database::new());
    let path = folder.path().join("carillon.db");
    let domain = archived(&path);
    let expected = everything(&open(&path), domain);
    assert!(expected[0].contains("m0"), "{}", expected[0]);
    assert!(copy(&path, &database, to_postgres).expect("it is copied").is_same());
    // The one that was copied is as it was.
    assert_eq!(everything(&open(&path), domain), expected);
    let store = database.open();
    assert_eq!(everything(&store, domain), expected);
    for message in messages(domain) {
        ask(&store, message).expect("it is kept");
    }
    let twice = everything(&store, domain);
    assert!(twice[0].len() > expected[0].len());
    drop(store);
    assert_eq!(well(&check_postgres(&database)), Vec::<String>::new());
    let back = folder.path().join("back.db");
    assert!(copy(&back, &database, to_sqlite).expect("it is copied").is_same());
    assert_eq!(well(&check_store(&back).expect("it is read")), Vec::<String>::new());
    let store = open(&back);
    assert_eq!(everything(&store, domain), twice);
    for message in messages(domain) {
        ask(&store, message).expect("it is kept");
    }
    assert!(everything(&store, domain)[0].len() > twice[0].len());
}

fn check_postgres(database: &Database) -> check::Checked {
    postgres::check(server().options(&database.name)).expect("it is read")
}

/// What is wrong, but for what the server of these tests forgoes.
fn well(checked: &check::Checked) -> Vec<String> {
    assert!(checked.rules > 20, "{checked:?}");
    let errors = checked.findings.iter().filter(|finding| finding.severity == check::Severity::Error);
    errors.map(|finding| format!("{}: {} {}", finding.what, finding.rows, finding.example)).collect()
}

#[test]
fn databases_of_earlier_versions_are_copied_whole() {
    let dumps = [
        include_str!("../old/version-1.sql"),
        include_str!("../old/version-5.sql"),
        include_str!("../old/version-9.sql"),
        include_str!("../old/version-12.sql"),
    ];
    for dump in dumps {
        let (folder, database) = (tempfile::tempdir().expect("a folder"), Database::new());
        let path = folder.path().join("carillon.db");
        Connection::open(&path).expect("it opens").execute_batch(dump).expect("the dump is whole");
        let older = copy(&path, &database, to_postgres).expect_err("it is refused").to_string();
        assert!(older.contains("start a node of this version on it once"), "{older}");
        open(&path).close();
        let report = copy(&path, &database, to_postgres).expect("it is copied");
        assert!(report.is_same(), "{report:?}");
        assert_eq!(well(&check_postgres(&database)), well(&check_store(&path).expect("it is read")));
        let back = folder.path().join("back.db");
        let again = copy(&back, &database, to_sqlite).expect("it is copied");
        assert!(again.is_same(), "{again:?}");
        assert_eq!(sums(&again), sums(&report));
    }
}

#[test]
fn a_copy_that_is_interrupted_anywhere_goes_on() {
    let (folder, database) = (tempfile::tempdir().expect("a folder"), Database::new());
    let path = filled(folder.path(), &postgres_tables(&database));
    let back = folder.path().join("back.db");
    for (target, direction) in [(&path, to_postgres as fn() -> Direction), (&back, to_sqlite)] {
        for table in ["domain", "item", "parked", "archive_entry", "held", "account"] {
            let step = if table == "account" { MigrationPhase::Verify } else { MigrationPhase::Copy };
            // As if the process ended there: with some tables after their first rows, with the last one before it was compared.
            let mut end = |progress: Progress<'_>| {
                assert!(progress.table != table || progress.step != step, "the end is here");
            };
            let ended = std::panic::catch_unwind(AssertUnwindSafe(|| {
                copy_with(target, &database, direction, &mut end).map(drop)
            }));
            assert!(ended.is_err(), "it ended with {table}");
            match direction() {
                // No node takes a part for the whole.
                Direction::ToPostgres => refused(&database, "holds a part of a copy"),
                Direction::ToSqlite => {
                    let refused = SqliteStore::open(StoreOptions::new(&back)).err().expect("it is refused");
                    assert!(refused.to_string().contains("holds a part of a copy"), "{refused}");
                }
            }
        }
        let report = copy(target, &database, direction).expect("it goes on");
        assert!(report.was_begun && report.is_same(), "{report:?}");
        assert!(report.tables.iter().all(|table| table.to.rows >= 3));
    }
}

/// A node does not open the store; the lock of a copy that ended a moment ago is waited for.
fn refused(database: &Database, why: &str) {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let refusal = PostgresStore::open(server().options(&database.name)).err().expect("it is refused");
        let refusal = refusal.to_string();
        if refusal.contains(why) {
            return;
        }
        assert!(Instant::now() < until, "{refusal}");
    }
}

#[test]
fn stores_that_are_in_use_or_not_empty_are_refused() {
    let (folder, database) = (tempfile::tempdir().expect("a folder"), Database::new());
    let path = folder.path().join("carillon.db");
    archived(&path);
    let once = |path: &Path, direction| {
        migrate(migration(path, &database, direction), &mut |_| {}).expect_err("it is refused").to_string()
    };
    let store = open(&path);
    assert!(once(&path, Direction::ToPostgres).contains("is in use by another process"));
    store.close();
    let node = database.open();
    ask(&node, PutDomain { name: "example.net".into(), policy: Policy::default() }).expect("it is put");
    let said = once(&path, Direction::ToPostgres);
    assert!(said.contains("is in use by carillon carillon 1 "), "{said}");
    drop(node);
    let full =
        |path: &Path, direction| copy(path, &database, direction).expect_err("it is refused").to_string();
    assert!(full(&path, to_postgres).contains("is not empty (there are rows in `domain`)"));
    assert!(full(&path, to_sqlite).contains("is not empty (there are rows in `domain`)"));
    let missing = full(&folder.path().join("none.db"), to_postgres);
    assert!(missing.starts_with("there is no store in"), "{missing}");
    // Neither was changed.
    assert_eq!(well(&check_postgres(&database)), Vec::<String>::new());
    ask(&open(&path), PutDomain { name: "example.org".into(), policy: Policy::default() })
        .expect("it is put");
}

#[test]
fn while_a_store_is_copied_no_node_opens_it() {
    let (folder, database) = (tempfile::tempdir().expect("a folder"), Database::new());
    let path = folder.path().join("carillon.db");
    archived(&path);
    let (options, mut tried) = (server().options(&database.name), false);
    let mut look = |_: Progress<'_>| {
        if !std::mem::replace(&mut tried, true) {
            let refused = PostgresStore::open(options.clone()).err().expect("it is refused").to_string();
            assert!(refused.contains("`carillon store migrate` has the database"), "{refused}");
            let refused = SqliteStore::open(StoreOptions::new(&path)).err().expect("it is refused");
            assert!(refused.to_string().contains("is in use"), "{refused}");
        }
    };
    assert!(copy_with(&path, &database, to_postgres, &mut look).expect("it is copied").is_same());
    assert!(tried);
}

#[test]
fn what_is_changed_beside_a_copy_is_found() {
    let (folder, database) = (tempfile::tempdir().expect("a folder"), Database::new());
    let path = folder.path().join("carillon.db");
    archived(&path);
    let mut change = |progress: Progress<'_>| {
        if (progress.step, progress.table) == (MigrationPhase::Copy, "held") && progress.is_whole {
            database.run("UPDATE account SET created = created + 1 WHERE local = 'u3'");
            database.run("DELETE FROM archive_entry WHERE seq = (SELECT max(seq) FROM archive_entry)");
        }
    };
    let report = copy_with(&path, &database, to_postgres, &mut change).expect("it is compared");
    let differing: Vec<_> = report.tables.iter().filter(|t| t.from != t.to).map(|t| t.table).collect();
    assert_eq!(differing, ["account", "archive_entry"]);
    refused(&database, "holds a part of a copy");
    // No other test gets this one.
    std::mem::forget(database);
}

#[test]
fn rows_that_do_not_agree_are_found_on_either_store() {
    let (folder, database) = (tempfile::tempdir().expect("a folder"), Database::new());
    let path = folder.path().join("carillon.db");
    archived(&path);
    assert!(copy(&path, &database, to_postgres).expect("it is copied").is_same());
    let wrong = [
        "UPDATE account SET offline = 7 WHERE local = 'u3'",
        "DELETE FROM archive_message WHERE seq = 5",
        "UPDATE archive SET messages = messages + 1",
    ];
    let db = Connection::open(&path).expect("it opens");
    for sql in wrong {
        db.execute(sql, []).expect("it is changed");
        database.run(sql);
    }
    drop(db);
    let (one, other) = (well(&check_store(&path).expect("it is read")), well(&check_postgres(&database)));
    assert_eq!(one, other);
    assert_eq!(one.len(), 3, "{one:?}");
    assert!(one[0].starts_with("accounts whose number of offline messages is another than there are: 1 "));
    database.run("SELECT setval('account_id_seq', 2)");
    let said = well(&check_postgres(&database));
    assert!(
        said.iter().any(|what| what.contains("account.id has 10, and its sequence stands at 2")),
        "{said:?}"
    );
}
