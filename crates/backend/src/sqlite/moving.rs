//! SQLite as one end of a copy from or to PostgreSQL.

use super::archive_tail::{Newest, Tail};
use super::writer::Database;
use super::{OpenError, Options, copy, file, push, schema, webhook};
use crate::engine::counters::Counters as Figures;
use crate::moving::rows::{ColumnKind, Rows, Value, values};
use crate::moving::tables::Table;
use crate::moving::{Counters, End, MigrateError, Noted, Plan, Result, Which};
use crate::rows::last::LastItems;
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, ToSql, named_params, params_from_iter};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of rows, and rows, that are written with one commit.
const BATCH_BYTES: usize = 4 << 20;
const BATCH_ROWS: usize = 20_000;

/// A database that no node has open as long as this is there.
pub(crate) struct SqliteEnd {
    path: PathBuf,
    db: Connection,
    _lock: File,
}

impl From<OpenError> for MigrateError {
    fn from(error: OpenError) -> MigrateError {
        MigrateError::Failed(error.to_string())
    }
}

impl SqliteEnd {
    /// One that is to be copied. What a node would do with it at its next start is done: claims end, and archived messages enter their tables.
    pub(crate) fn source(path: &Path) -> Result<SqliteEnd> {
        if !path.exists() {
            return Err(MigrateError::Missing(path.display().to_string()));
        }
        let end = SqliteEnd::open(path)?;
        let found = schema::version(&end.db, path)?;
        if end.noted()?.is_some() {
            return Err(OpenError::Unfinished { path: path.to_owned() }.into());
        }
        if found != schema::SCHEMA {
            return Err(MigrateError::Older { place: end.place(), found, known: schema::SCHEMA });
        }
        let sqlite = |e| OpenError::of(path, e);
        webhook::end_claims(&end.db).map_err(sqlite)?;
        push::end_claims(&end.db).map_err(sqlite)?;
        end.fold()?;
        Ok(end)
    }

    /// One to copy into, made where it is not there.
    pub(crate) fn target(path: &Path) -> Result<SqliteEnd> {
        let is_new = !path.exists();
        let mut end = SqliteEnd::open(path)?;
        if is_new {
            copy::give_to_owner(copy::folder_of(path), path).map_err(|e| OpenError::file(path, e))?;
            let lock = file::beside(path, ".lock");
            copy::give_to_owner(copy::folder_of(path), &lock).map_err(|e| OpenError::file(&lock, e))?;
        }
        schema::make(&mut end.db, path)?;
        let sqlite = |e| OpenError::of(path, e);
        // Rows come as they are, with what triggers would count; what refers to what is looked at when all are there.
        end.db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false).map_err(sqlite)?;
        end.db.pragma_update(None, "foreign_keys", false).map_err(sqlite)?;
        Ok(end)
    }

    fn open(path: &Path) -> Result<SqliteEnd> {
        let lock = file::claim(path)?;
        let options = Options { cache_kib: 64 * 1024, ..Options::new(path) };
        let db = file::connect_writer(&options).map_err(|e| OpenError::of(path, e))?;
        Ok(SqliteEnd { path: path.to_owned(), db, _lock: lock })
    }

    /// Puts archived messages into the tables by which they are found.
    fn fold(&self) -> Result<()> {
        let options = Options::new(&self.path);
        let sqlite = |e| OpenError::of(&self.path, e);
        let db = file::connect_writer(&options).map_err(sqlite)?;
        let tail = Arc::new(Tail::default());
        let newest = Newest::find(&self.db).map_err(sqlite)?.seq;
        if tail.make(&self.db, newest).is_none() {
            return Err(MigrateError::Failed(format!("{}: the archive cannot be read", self.path.display())));
        }
        let mut database = Database::new(db, Arc::new(LastItems::new(0)), tail, Arc::<Figures>::default())
            .map_err(sqlite)?;
        Ok(database.fold_all().map_err(sqlite)?)
    }

    fn failed(&self, error: rusqlite::Error) -> MigrateError {
        OpenError::of(&self.path, error).into()
    }

    /// Reads the rows of a query.
    fn query(
        &self,
        plan: &Plan,
        sql: &str,
        behind: &[rusqlite::types::Value],
        give: &mut dyn FnMut(&Rows) -> Result<()>,
    ) -> Result<()> {
        let failed = |e| self.failed(e);
        let mut query = self.db.prepare(sql).map_err(failed)?;
        let mut found = query.query(params_from_iter(behind)).map_err(failed)?;
        let mut rows = Rows::default();
        while let Some(row) = found.next().map_err(failed)? {
            let mut unfit = None;
            for (at, column) in plan.columns.iter().enumerate() {
                let value = row.get_ref(at).map_err(failed)?;
                match value_of(value, column.kind) {
                    Ok(value) => rows.push(value),
                    Err(why) => {
                        rows.push(Value::Null);
                        unfit = Some((at, why));
                    }
                }
            }
            rows.end();
            if let Some((column, why)) = unfit {
                return Err(plan.unfit(column, why, rows.iter().last().unwrap_or_default()));
            }
            if rows.bytes() >= BATCH_BYTES || rows.len() >= BATCH_ROWS {
                give(&rows)?;
                rows.clear();
            }
        }
        if rows.len() > 0 { give(&rows) } else { Ok(()) }
    }

    fn insert(&self, plan: &Plan, rows: &Rows, noted: &Noted) -> rusqlite::Result<()> {
        let names: Vec<&str> = plan.columns.iter().map(|column| &*column.name).collect();
        let places = names.iter().map(|name| format!(":{name}")).collect::<Vec<_>>().join(", ");
        let table = plan.table.name;
        let all = format!("INSERT INTO {table} ({}) VALUES ({places})", names.map_quoted());
        let texts = match plan.table.sqlite_inserts {
            [] => vec![&*all],
            texts => texts.to_vec(),
        };
        for text in texts {
            let mut insert = self.db.prepare_cached(text)?;
            let indexes: Vec<_> = names
                .iter()
                .map(|name| insert.parameter_index(&format!(":{name}")))
                .collect::<rusqlite::Result<_>>()?;
            for row in rows.iter() {
                for (value, index) in values(row).zip(&indexes) {
                    if let Some(index) = index {
                        insert.raw_bind_parameter(*index, Bound(value))?;
                    }
                }
                insert.raw_execute()?;
            }
        }
        self.note(noted)
    }

    fn note(&self, noted: &Noted) -> rusqlite::Result<()> {
        let Noted { source, uses, table, key } = noted;
        self.db
            .prepare_cached(
                "INSERT OR REPLACE INTO store_migration (one, source, uses, in_table, behind)
                 VALUES (1, :source, :uses, :in_table, :behind)",
            )?
            .execute(named_params! { ":source": source, ":uses": uses, ":in_table": table, ":behind": key })
            .map(drop)
    }

    /// Does something in one transaction.
    fn in_transaction(&self, work: impl FnOnce() -> rusqlite::Result<()>) -> rusqlite::Result<()> {
        self.db.execute_batch("BEGIN IMMEDIATE")?;
        if let Err(e) = work() {
            // Whatever failed is what is told.
            drop(self.db.execute_batch("ROLLBACK"));
            return Err(e);
        }
        self.db.execute_batch("COMMIT")
    }

    /// A row that refers to nothing, if there is one.
    fn dangling(&self) -> rusqlite::Result<Option<String>> {
        let said = |row: &rusqlite::Row<'_>| {
            Ok(format!(
                "a row of {} refers to none of {}",
                row.get::<_, String>(0)?,
                row.get::<_, String>(2)?
            ))
        };
        self.db.query_row("PRAGMA foreign_key_check", [], said).optional()
    }

    fn count_on(&self, counters: &Counters) -> rusqlite::Result<()> {
        let db = &self.db;
        for (table, given) in &counters.given {
            db.execute(
                "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1",
                rusqlite::params![table, given],
            )?;
            db.execute(
                "INSERT INTO sqlite_sequence (name, seq) SELECT ?1, ?2 WHERE ?2 > 0
                     AND EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?1 AND sql LIKE '%AUTOINCREMENT%')
                     AND NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?1)",
                rusqlite::params![table, given],
            )?;
        }
        // The number of a message is one more than the last one's: a last one keeps numbers from being given again.
        db.execute(
            "INSERT INTO archive_message (seq, received, stanza)
             SELECT ?1, (SELECT coalesce(max(received), 0) FROM archive_message), x''
             WHERE ?1 > (SELECT coalesce(max(seq), 0) FROM archive_message)",
            [counters.given.get("archive_message").copied().unwrap_or(0)],
        )?;
        db.execute_batch(
            "UPDATE archive_fold SET folded = (SELECT coalesce(max(seq), 0) FROM archive_message), folding = 0, account = 0, seq = 0",
        )?;
        db.execute("UPDATE node SET broadcast_revision = ?1", [counters.broadcast_revision])?;
        db.execute_batch(
            "UPDATE domain SET rooms = (SELECT count(*) FROM room WHERE room.domain = domain.id)",
        )?;
        db.execute_batch("DROP TABLE store_migration")
    }
}

/// Names of columns with quotes: some are words of SQL.
trait Quoted {
    fn map_quoted(&self) -> String;
}

impl Quoted for Vec<&str> {
    fn map_quoted(&self) -> String {
        self.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
    }
}

impl End for SqliteEnd {
    fn place(&self) -> String {
        let path = std::fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        format!("sqlite:{}", path.display())
    }

    fn uses(&self) -> Result<i64> {
        Ok(0)
    }

    fn noted(&self) -> Result<Option<Noted>> {
        let failed = |e| self.failed(e);
        if !schema::is_unfinished(&self.db).map_err(failed)? {
            return Ok(None);
        }
        let noted = |row: &rusqlite::Row<'_>| {
            Ok(Noted { source: row.get(0)?, uses: row.get(1)?, table: row.get(2)?, key: row.get(3)? })
        };
        let sql = "SELECT source, uses, in_table, behind FROM store_migration";
        self.db.query_row(sql, [], noted).optional().map_err(failed)
    }

    fn filled(&self, tables: &[Table]) -> Result<Option<&'static str>> {
        for table in tables {
            let sql = format!("SELECT EXISTS (SELECT 1 FROM {})", table.name);
            if self.db.query_row(&sql, [], |row| row.get(0)).map_err(|e| self.failed(e))? {
                return Ok(Some(table.name));
            }
        }
        Ok(None)
    }

    fn begin(&mut self, noted: &Noted) -> Result<()> {
        self.in_transaction(|| {
            self.db.execute_batch(
                "CREATE TABLE store_migration (one INTEGER PRIMARY KEY CHECK (one = 1), source TEXT NOT NULL, uses INTEGER NOT NULL,
                     in_table TEXT NOT NULL, behind BLOB NOT NULL) STRICT",
            )?;
            self.note(noted)
        })
        .map_err(|e| self.failed(e))
    }

    fn read(
        &mut self,
        plan: &Plan,
        which: Which<'_>,
        give: &mut dyn FnMut(&Rows) -> Result<()>,
    ) -> Result<()> {
        let columns = plan.columns.iter().map(|column| &*column.name).collect::<Vec<_>>().map_quoted();
        let rows = plan.table.sqlite_rows.unwrap_or(plan.table.name);
        let mut sql = format!("SELECT {columns} FROM {rows}");
        let mut behind = Vec::new();
        if let Which::Key(key) = which {
            let names = plan.table.key.to_vec().map_quoted();
            behind.extend(values(key).map(|value| match value {
                Value::Null => rusqlite::types::Value::Null,
                Value::Int(n) => n.into(),
                Value::Text(text) => text.to_owned().into(),
                Value::Bytes(bytes) => bytes.to_vec().into(),
            }));
            if !behind.is_empty() {
                let places = vec!["?"; behind.len()].join(", ");
                sql.push_str(&format!(" WHERE ({names}) > ({places})"));
            }
            sql.push_str(&format!(" ORDER BY {names}"));
        }
        self.query(plan, &sql, &behind, give)
    }

    fn write(&mut self, plan: &Plan, rows: &Rows, noted: &Noted) -> Result<()> {
        self.in_transaction(|| self.insert(plan, rows, noted)).map_err(|e| self.failed(e))
    }

    fn counters(&self) -> Result<Counters> {
        let failed = |e| self.failed(e);
        let mut query = self.db.prepare("SELECT name, seq FROM sqlite_sequence").map_err(failed)?;
        let given = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(failed)?;
        let given = given.collect::<rusqlite::Result<_>>().map_err(failed)?;
        let sql = "SELECT broadcast_revision FROM node";
        let broadcast_revision = self.db.query_row(sql, [], |row| row.get(0)).map_err(failed)?;
        Ok(Counters { given, broadcast_revision })
    }

    fn finish(&mut self, counters: &Counters) -> Result<()> {
        if let Some(what) = self.dangling().map_err(|e| self.failed(e))? {
            return Err(MigrateError::Failed(format!("{}: {what}", self.place())));
        }
        self.in_transaction(|| self.count_on(counters)).map_err(|e| self.failed(e))
    }
}

/// A value as it is read; why not, if it is of another kind.
fn value_of(value: ValueRef<'_>, kind: ColumnKind) -> std::result::Result<Value<'_>, &'static str> {
    match (value, kind) {
        (ValueRef::Null, _) => Ok(Value::Null),
        (ValueRef::Integer(n), ColumnKind::Int | ColumnKind::Small | ColumnKind::Bool) => Ok(Value::Int(n)),
        (ValueRef::Text(text), ColumnKind::Text) => {
            let text = std::str::from_utf8(text).map_err(|_| "is not UTF-8")?;
            if text.contains('\0') {
                Err("has a NUL character, which PostgreSQL does not take")
            } else {
                Ok(Value::Text(text))
            }
        }
        (ValueRef::Blob(bytes), ColumnKind::Bytes) => Ok(Value::Bytes(bytes)),
        (ValueRef::Blob(bytes), ColumnKind::Uuid) if bytes.len() == 16 => Ok(Value::Bytes(bytes)),
        _ => Err("is of another type"),
    }
}

struct Bound<'a>(Value<'a>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Value::Null => ValueRef::Null,
            Value::Int(n) => ValueRef::Integer(n),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}
