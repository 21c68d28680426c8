//! Of what is removed nothing is left in any table of a file.

use super::super::{Options, SqliteStore};
use crate::conformance::nothing_left::{ColumnType, Database, Value, of_a_domain, of_an_account};
use carillon_core::ports::Store;
use carillon_core::ports::store::domains::DOMAIN_PART_ROWS;
use rusqlite::{Connection, params_from_iter, types};
use std::path::PathBuf;

struct File {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl File {
    fn new() -> File {
        let folder = tempfile::tempdir().expect("a folder");
        File { path: folder.path().join("store.db"), _folder: folder }
    }

    fn connect(&self) -> Connection {
        Connection::open(&self.path).expect("opens")
    }
}

impl Database for File {
    fn open(&self) -> Box<dyn Store> {
        Box::new(SqliteStore::open(Options::new(&self.path)).expect("opens"))
    }

    fn tables(&self) -> Vec<String> {
        let db = self.connect();
        let mut query = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").expect("prepares");
        let names = query.query_map([], |row| row.get(0)).expect("they are listed");
        names.collect::<rusqlite::Result<_>>().expect("names")
    }

    fn nobodys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("sqlite_sequence", "SQLite's: the last number of each table"),
            ("node", "its one row"),
            ("run", "ranges of ids"),
            ("push_step", "goes with its notification, or with the trace of that"),
            ("archive_fold", "its one row"),
            ("archive_list", "entries of the newest messages of all accounts; it goes when these are folded"),
        ]
    }

    fn columns(&self, table: &str) -> Vec<(String, ColumnType)> {
        let db = self.connect();
        let mut query = db.prepare("SELECT name, type FROM pragma_table_info(?1)").expect("prepares");
        let column = |row: &rusqlite::Row<'_>| {
            let kind = match &*row.get::<_, String>(1)? {
                "INTEGER" => ColumnType::Integer,
                "TEXT" => ColumnType::Text,
                _ => ColumnType::Bytes,
            };
            Ok((row.get(0)?, kind))
        };
        let columns = query.query_map([table], column).expect("they are listed");
        columns.collect::<rusqlite::Result<_>>().expect("columns")
    }

    fn count(&self, table: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        self.connect().query_row(&sql, [], |row| row.get(0)).expect("a count")
    }

    fn insert(&self, table: &str, row: &[(String, Value)]) {
        let values = row.iter().map(|(_, value)| match value {
            Value::Integer(number) => types::Value::from(*number),
            Value::Bool(truth) => types::Value::from(i64::from(*truth)),
            Value::Text(text) => types::Value::from((*text).to_owned()),
            Value::Bytes(bytes) => types::Value::from(bytes.clone()),
            Value::Uuid(number) => types::Value::from(number.to_be_bytes().to_vec()),
        });
        let places = vec!["?"; row.len()].join(", ");
        let sql = format!("INSERT OR REPLACE INTO {table} VALUES ({places})");
        let inserted = self.connect().execute(&sql, params_from_iter(values));
        inserted.unwrap_or_else(|e| panic!("{table}: {e}"));
    }

    fn run(&self, sql: &str) {
        self.connect().execute_batch(sql).expect("runs");
    }

    fn filled(&self) -> &'static [(&'static str, i64)] {
        self.run("UPDATE archive_fold SET folded = 1");
        self.run("INSERT INTO archive_message (seq, received, stanza) VALUES (2, 1, x'')");
        // The newest message of all stays, whosever it is.
        &[("archive_message", 1)]
    }
}

#[test]
fn nothing_is_left_of_a_domain() {
    of_a_domain(&File::new(), DOMAIN_PART_ROWS);
}

#[test]
fn nothing_is_left_of_an_account() {
    assert_eq!(of_an_account(&File::new(), u32::MAX), 1);
}

#[test]
fn a_removal_that_is_interrupted_after_any_part_goes_on() {
    let (of_account, of_domain) = (of_an_account(&File::new(), 1), of_a_domain(&File::new(), 1));
    // Most tables had a row of theirs.
    assert!(of_account > 10 && of_domain > 20, "{of_account} {of_domain}");
}
