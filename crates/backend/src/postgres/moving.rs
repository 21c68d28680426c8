//! PostgreSQL as one end of a copy from or to SQLite.
//!
//! It has the database alone: a node that is being started finds its lock, one that runs is seen by its connections, and one that has lost these
//! for now finds its lanes buried.

use super::checking::NUMBERED;
use super::connection::Connection;
use super::error::{Error, Result as Answer};
use super::open_error::OpenError;
use super::options::Options;
use super::schema;
use crate::moving::rows::{Column, ColumnKind, Rows, Value, values};
use crate::moving::tables::{Added, Table};
use crate::moving::{Counters, End, MigrateError, Noted, Plan, Result, Which};
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_postgres::Row;
use tokio_postgres::config::Host;

/// How long one statement may take: the first rows of a table may have to be sorted.
const ANSWER_MAX: Duration = Duration::from_secs(4 * 3600);
/// Rows that are fetched together have about so many bytes, and are at most so many.
const FETCH_BYTES: usize = 2 << 20;
const FETCH_ROWS: usize = 8192;

/// What is set for a connection that reads and writes whole tables. A commit that is lost with the machine is copied again: how far the copy is
/// is in it.
const SETTINGS: &str =
    "SET enable_seqscan = on; SET random_page_cost = 4; SET idle_in_transaction_session_timeout = 0;
    SET statement_timeout = 0; SET cursor_tuple_fraction = 1; SET synchronous_commit = off";

/// A database that no node uses as long as this is there.
pub(crate) struct PostgresEnd {
    db: Connection,
    place: String,
    node: String,
    /// The number of cursors that there were.
    cursors: u32,
}

impl From<OpenError> for MigrateError {
    fn from(error: OpenError) -> MigrateError {
        MigrateError::Failed(error.to_string())
    }
}

impl PostgresEnd {
    /// One that is to be copied.
    pub(crate) fn source(options: Options, node: &str) -> Result<PostgresEnd> {
        let end = PostgresEnd::open(options, node)?;
        let (found, known) = (schema::version(&end.db)?, schema::VERSION);
        if found == 0 {
            return Err(MigrateError::Missing(end.place));
        }
        if schema::is_unfinished(&end.db).map_err(failed)? {
            return Err(OpenError::Unfinished.into());
        }
        if found != known {
            return Err(MigrateError::Older { place: end.place, found, known });
        }
        end.bury()?;
        Ok(end)
    }

    /// One to copy into; its tables are made where there are none.
    pub(crate) fn target(options: Options, node: &str) -> Result<PostgresEnd> {
        let end = PostgresEnd::open(options, node)?;
        schema::make(&end.db, |_| Ok(()))?;
        end.bury()?;
        Ok(end)
    }

    fn open(mut options: Options, node: &str) -> Result<PostgresEnd> {
        options.answer_max = ANSWER_MAX;
        let place = place(&options);
        let patience = options.patience;
        let name = format!("carillon store migrate {}", std::process::id());
        let mut db = Connection::new(Arc::new(options), name, Arc::default()).map_err(OpenError::Thread)?;
        db.connect(Instant::now().checked_sub(patience)).map_err(OpenError::from)?;
        db.batch(SETTINGS).map_err(failed)?;
        if !schema::have_alone(&db).map_err(failed)? {
            return Err(MigrateError::InUse {
                place,
                users: "`carillon store migrate`, or a node that starts".to_owned(),
            });
        }
        let users = users(&db).map_err(failed)?;
        if !users.is_empty() {
            return Err(MigrateError::InUse { place, users: users.join(", ") });
        }
        Ok(PostgresEnd { db, place, node: node.to_owned(), cursors: 0 })
    }

    /// Nothing that a process has under way is committed from now on.
    fn bury(&self) -> Result<()> {
        self.db.run("UPDATE lane SET buried = true WHERE NOT buried", &[]).map(drop).map_err(failed)
    }

    /// The columns of a table, without those that are computed.
    pub(crate) fn columns(&self, table: &str) -> Result<Vec<Column>> {
        let rows = self.db.query(COLUMNS, &[&table]).map_err(failed)?;
        let column = |row: &Row| -> Result<Column> {
            let (name, kind): (String, String) =
                (row.try_get(0).map_err(lost)?, row.try_get(1).map_err(lost)?);
            let kind = match &*kind {
                "bigint" => ColumnKind::Int,
                "smallint" => ColumnKind::Small,
                "boolean" => ColumnKind::Bool,
                "text" => ColumnKind::Text,
                "bytea" => ColumnKind::Bytes,
                "uuid" => ColumnKind::Uuid,
                other => return Err(MigrateError::Failed(format!("{table}.{name} is of the type {other}"))),
            };
            Ok(Column { name, kind })
        };
        rows.iter().map(column).collect()
    }

    /// Gives the rows of a query.
    fn fetch(&mut self, plan: &Plan, sql: &str, give: &mut dyn FnMut(&Rows) -> Result<()>) -> Result<()> {
        // A statement is known by its text, and another cursor has other columns.
        self.cursors += 1;
        let cursor = format!("moved_{}", self.cursors);
        self.db.batch(&format!("DECLARE {cursor} NO SCROLL CURSOR FOR {sql}")).map_err(failed)?;
        let (mut rows, mut wanted) = (Rows::default(), 64);
        loop {
            let found = self.db.query(&format!("FETCH {wanted} FROM {cursor}"), &[]).map_err(failed)?;
            if found.is_empty() {
                break;
            }
            for row in &found {
                for (at, column) in plan.columns.iter().enumerate() {
                    rows.push(value_of(row, at, column.kind)?);
                }
                rows.end();
            }
            give(&rows)?;
            let each = (rows.bytes() / rows.len()).max(1);
            wanted = (FETCH_BYTES / each).clamp(1, FETCH_ROWS).next_power_of_two();
            rows.clear();
        }
        self.db.batch(&format!("CLOSE {cursor}")).map_err(failed)
    }

    fn note(&self, noted: &Noted) -> Answer<()> {
        let Noted { source, uses, table, key } = noted;
        self.db
            .run(
                "INSERT INTO store_migration (source, uses, in_table, behind) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (one) DO UPDATE SET in_table = excluded.in_table, behind = excluded.behind",
                &[source, uses, table, key],
            )
            .map(drop)
    }

    /// Whether triggers of tables run, but for those that look at what refers to what.
    fn triggers(&self, how: &str) -> Answer<()> {
        for row in self.db.query(TRIGGERED, &[])? {
            self.db.batch(&format!("ALTER TABLE {} {how} TRIGGER USER", row.try_get::<_, &str>(0)?))?;
        }
        Ok(())
    }

    /// Does something in one transaction.
    fn in_transaction(&self, work: impl FnOnce() -> Answer<()>) -> Result<()> {
        self.db.batch("BEGIN").map_err(failed)?;
        if let Err(e) = work() {
            // Whatever failed is what is told.
            drop(self.db.batch("ROLLBACK"));
            return Err(failed(e));
        }
        self.db.batch("COMMIT").map_err(failed)
    }

    /// Tables with numbers that the database gives, and the column of these.
    fn numbered(&self) -> Answer<Vec<(String, String)>> {
        let rows = self.db.query(NUMBERED, &[])?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    fn count_on(&self, counters: &Counters) -> Answer<()> {
        for (table, column) in self.numbered()? {
            let given = counters.given.get(&table).copied().unwrap_or(0);
            // A sequence begins at 1, and a table that never had a row begins with it.
            let sql = format!(
                "SELECT setval(pg_get_serial_sequence('{table}', '{column}')::regclass, greatest(given, 1), given > 0)
                 FROM (SELECT greatest($1, coalesce(max({column}), 0)) AS given FROM {table}) AS known"
            );
            self.db.query(&sql, &[&given])?;
        }
        let events = counters.given.get("event").copied().unwrap_or(0);
        self.db.run(
            "UPDATE event_number SET newest = greatest($1, (SELECT coalesce(max(number), 0) FROM event))",
            &[&events],
        )?;
        self.db.run("UPDATE broadcast_revision SET newest = $1", &[&counters.broadcast_revision])?;
        self.triggers("ENABLE")?;
        self.db.batch("DROP TABLE store_migration; SET LOCAL synchronous_commit = on")
    }
}

impl End for PostgresEnd {
    fn place(&self) -> String {
        self.place.clone()
    }

    fn uses(&self) -> Result<i64> {
        self.db.one("SELECT newest FROM node_epoch", &[]).map_err(failed)?.try_get(0).map_err(lost)
    }

    fn noted(&self) -> Result<Option<Noted>> {
        if !schema::is_unfinished(&self.db).map_err(failed)? {
            return Ok(None);
        }
        let row = self.db.opt("SELECT source, uses, in_table, behind FROM store_migration", &[]);
        let noted = |row: Row| {
            Ok::<_, tokio_postgres::Error>(Noted {
                source: row.try_get(0)?,
                uses: row.try_get(1)?,
                table: row.try_get(2)?,
                key: row.try_get(3)?,
            })
        };
        row.map_err(failed)?.map(noted).transpose().map_err(lost)
    }

    fn filled(&self, tables: &[Table]) -> Result<Option<&'static str>> {
        for table in tables {
            let sql = format!("SELECT EXISTS (SELECT 1 FROM {})", table.name);
            if self.db.one(&sql, &[]).map_err(failed)?.try_get(0).map_err(lost)? {
                return Ok(Some(table.name));
            }
        }
        Ok(None)
    }

    fn begin(&mut self, noted: &Noted) -> Result<()> {
        self.in_transaction(|| {
            self.db.batch(
                "CREATE TABLE store_migration (one boolean PRIMARY KEY DEFAULT true CHECK (one), source text NOT NULL,
                     uses bigint NOT NULL, in_table text NOT NULL, behind bytea NOT NULL)",
            )?;
            self.triggers("DISABLE")?;
            self.note(noted)
        })
    }

    fn read(
        &mut self,
        plan: &Plan,
        which: Which<'_>,
        give: &mut dyn FnMut(&Rows) -> Result<()>,
    ) -> Result<()> {
        let columns: Vec<String> = plan.columns.iter().map(selected).collect();
        let rows = match which {
            Which::Copy => plan.table.name,
            _ => plan.table.postgres_rows.unwrap_or(plan.table.name),
        };
        let mut sql = format!("SELECT {} FROM {rows} AS moved", columns.join(", "));
        if let Which::Key(key) = which {
            let names: Vec<String> = plan.table.key.iter().map(|name| format!("moved.\"{name}\"")).collect();
            let names = names.join(", ");
            if !key.is_empty() {
                let behind =
                    values(key).zip(&plan.key).map(|(value, at)| literal(value, plan.columns[*at].kind));
                let behind = behind.collect::<Vec<_>>().join(", ");
                sql.push_str(&format!(" WHERE ({names}) > ({behind})"));
            }
            sql.push_str(&format!(" ORDER BY {names}"));
        }
        self.db.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").map_err(failed)?;
        self.fetch(plan, &sql, give)?;
        self.db.batch("COMMIT").map_err(failed)
    }

    fn write(&mut self, plan: &Plan, rows: &Rows, noted: &Noted) -> Result<()> {
        let added = plan.table.postgres_adds;
        let names =
            plan.columns.iter().map(|column| &*column.name).chain(added.iter().map(|(name, _)| *name));
        let names: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
        let sql = format!("COPY {} ({}) FROM STDIN (FORMAT binary)", plan.table.name, names.join(", "));
        let data = binary(plan, rows, &self.node)?;
        self.in_transaction(|| {
            self.db.copy_in(&sql, data)?;
            self.note(noted)
        })
        .map_err(|e| MigrateError::Failed(format!("`{}`: {e}", plan.table.name)))
    }

    fn counters(&self) -> Result<Counters> {
        let mut given = BTreeMap::new();
        for (table, column) in self.numbered().map_err(failed)? {
            let sql = "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence($1, $2)::regclass), 0)";
            let row = self.db.one(sql, &[&table, &column]).map_err(failed)?;
            given.insert(table, row.try_get(0).map_err(lost)?);
        }
        let row = self.db.one("SELECT newest FROM event_number", &[]).map_err(failed)?;
        given.insert("event".to_owned(), row.try_get(0).map_err(lost)?);
        let row = self.db.one("SELECT newest FROM broadcast_revision", &[]).map_err(failed)?;
        Ok(Counters { given, broadcast_revision: row.try_get(0).map_err(lost)? })
    }

    fn finish(&mut self, counters: &Counters) -> Result<()> {
        self.in_transaction(|| self.count_on(counters))?;
        // The server knows nothing of tables that were empty a moment ago.
        self.db.batch("ANALYZE").map_err(failed)
    }
}

fn failed(error: Error) -> MigrateError {
    OpenError::from(error).into()
}

fn lost(error: tokio_postgres::Error) -> MigrateError {
    failed(error.into())
}

/// What a database is called: its servers and its name.
fn place(options: &Options) -> String {
    let hosts = options.config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    });
    let database = options.config.get_dbname().unwrap_or_default();
    format!("postgresql://{}/{database}", hosts.collect::<Vec<_>>().join(","))
}

/// Who else is connected, of those that are ours.
fn users(db: &Connection) -> Answer<Vec<String>> {
    let rows = db.query(
        "SELECT DISTINCT application_name FROM pg_stat_activity WHERE datname = current_database()
             AND pid <> pg_backend_pid() AND application_name LIKE 'carillon %' ORDER BY 1",
        &[],
    )?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

const COLUMNS: &str = "SELECT column_name::text, data_type::text FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = $1 AND is_generated = 'NEVER' ORDER BY ordinal_position";

const TRIGGERED: &str = "SELECT DISTINCT tgrelid::regclass::text FROM pg_trigger
    WHERE NOT tgisinternal AND tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = current_schema()::regnamespace)";

/// A column as it is read: numbers as `bigint`, all bytes as `bytea`.
fn selected(column: &Column) -> String {
    let name = format!("moved.\"{}\"", column.name);
    match column.kind {
        ColumnKind::Int | ColumnKind::Small => format!("{name}::bigint"),
        ColumnKind::Bool => format!("{name}::integer::bigint"),
        ColumnKind::Text | ColumnKind::Bytes => name,
        ColumnKind::Uuid => format!("uuid_send({name})"),
    }
}

fn value_of(row: &Row, at: usize, kind: ColumnKind) -> Result<Value<'_>> {
    let value = match kind {
        ColumnKind::Int | ColumnKind::Small | ColumnKind::Bool => {
            row.try_get::<_, Option<i64>>(at).map_err(lost)?.map(Value::Int)
        }
        ColumnKind::Text => row.try_get::<_, Option<&str>>(at).map_err(lost)?.map(Value::Text),
        ColumnKind::Bytes | ColumnKind::Uuid => {
            row.try_get::<_, Option<&[u8]>>(at).map_err(lost)?.map(Value::Bytes)
        }
    };
    Ok(value.unwrap_or(Value::Null))
}

/// A value in the text of a statement: that of a cursor takes no others.
fn literal(value: Value<'_>, kind: ColumnKind) -> String {
    match (value, kind) {
        (Value::Null, _) => "NULL".to_owned(),
        (Value::Int(n), ColumnKind::Bool) => (n != 0).to_string(),
        (Value::Int(n), _) => n.to_string(),
        (Value::Text(text), _) => format!("'{}'", text.replace('\'', "''")),
        (Value::Bytes(bytes), kind) => {
            let mut hex = String::with_capacity(2 * bytes.len());
            for byte in bytes {
                write!(hex, "{byte:02x}").expect("a String takes everything");
            }
            if kind == ColumnKind::Uuid { format!("'{hex}'::uuid") } else { format!("'\\x{hex}'::bytea") }
        }
    }
}

/// Rows as `COPY … (FORMAT binary)` takes them.
fn binary(plan: &Plan, rows: &Rows, node: &str) -> Result<Bytes> {
    let mut out = BytesMut::with_capacity(rows.bytes() + rows.len() * (4 * plan.columns.len() + 2) + 64);
    out.put_slice(b"PGCOPY\n\xff\r\n\0");
    // No flags, and no extension of the header.
    out.put_u64(0);
    let count = plan.columns.len() + plan.table.postgres_adds.len();
    let count = i16::try_from(count).expect("a table has some tens of columns");
    for row in rows.iter() {
        out.put_i16(count);
        for ((at, column), value) in plan.columns.iter().enumerate().zip(values(row)) {
            put(&mut out, value, column.kind).map_err(|why| plan.unfit(at, why, row))?;
        }
        for (_, added) in plan.table.postgres_adds {
            match added {
                Added::NodeName => put_bytes(&mut out, node.as_bytes()),
                Added::Text(text) => put_bytes(&mut out, text.as_bytes()),
                Added::Int(n) => put_bytes(&mut out, &n.to_be_bytes()),
            }
        }
    }
    out.put_i16(-1);
    Ok(out.freeze())
}

fn put(out: &mut BytesMut, value: Value<'_>, kind: ColumnKind) -> std::result::Result<(), &'static str> {
    match (value, kind) {
        (Value::Null, _) => out.put_i32(-1),
        (Value::Int(n), ColumnKind::Bool) => put_bytes(out, &[u8::from(n != 0)]),
        (Value::Int(n), ColumnKind::Small) => {
            let n = i16::try_from(n).map_err(|_| "has a number that is too large")?;
            put_bytes(out, &n.to_be_bytes());
        }
        (Value::Int(n), _) => put_bytes(out, &n.to_be_bytes()),
        (Value::Text(text), _) => put_bytes(out, text.as_bytes()),
        (Value::Bytes(bytes), _) => put_bytes(out, bytes),
    }
    Ok(())
}

fn put_bytes(out: &mut BytesMut, bytes: &[u8]) {
    // Rows of a batch have some MiB.
    out.put_i32(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
    out.put_slice(bytes);
}
