//! Copying a store between SQLite and PostgreSQL, while no node uses either.
//!
//! - `tables` is the one list of what becomes of each table; `rows` the form that both stores are read in.
//! - `sqlite::moving` and `postgres::moving` are the two ends: each reads and writes rows, and knows how far a copy into it is.
//!
//! Rows are read in the order of a key and written many in a commit, together with the key of the last one. So a copy that is interrupted goes
//! on behind that row. At the end both stores are read whole, and their counts and checksums compared; only then nodes open the copy.

pub(crate) mod rows;
pub(crate) mod tables;

pub use rows::Sum;

use crate::postgres::moving::PostgresEnd;
use crate::sqlite::moving::SqliteEnd;
use rows::{Column, Rows};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tables::{COPIED, NOT_COPIED, Table};

/// The tables that are copied, each with its columns that are not.
pub fn copied() -> Vec<(&'static str, Vec<&'static str>)> {
    COPIED.iter().map(|table| (table.name, table.apart.iter().map(|(name, _)| *name).collect())).collect()
}

/// The tables that are not copied, each with the reason.
pub fn not_copied() -> &'static [(&'static str, &'static str)] {
    NOT_COPIED
}

/// Which way a store is copied.
#[derive(Debug)]
pub enum Direction {
    /// From SQLite to PostgreSQL.
    ToPostgres,
    /// From PostgreSQL to SQLite.
    ToSqlite,
}

/// A store that is to be copied, and where to.
#[derive(Debug)]
pub struct Migration {
    /// The database of SQLite.
    pub sqlite: PathBuf,
    /// The database of PostgreSQL.
    pub postgres: crate::postgres::Options,
    /// Which is copied to the other.
    pub direction: Direction,
    /// The name of the node that goes on with a store on PostgreSQL.
    pub node: String,
}

/// What is done.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// What is done with a table.
    pub step: Step,
    /// The table.
    pub table: &'a str,
    /// How many rows of it are done by this process.
    pub rows: u64,
    /// How many bytes these have.
    pub bytes: u64,
    /// Whether that is all.
    pub is_whole: bool,
}

/// What is done with a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is copied.
    Copy,
    /// It is read again, at both ends.
    Verify,
}

/// What became of a copy.
#[derive(Clone, Debug)]
pub struct Report {
    /// Whether it went on with one that was interrupted.
    pub was_begun: bool,
    /// The tables, with what is in them at both ends.
    pub tables: Vec<Verified>,
}

/// What is in a table at both ends.
#[derive(Clone, Copy, Debug)]
pub struct Verified {
    /// Its name.
    pub table: &'static str,
    /// At the end that was copied.
    pub from: Sum,
    /// At the other.
    pub to: Sum,
}

impl Report {
    /// Whether both ends have the same. Otherwise no node opens the copy.
    pub fn is_same(&self) -> bool {
        self.tables.iter().all(|table| table.from == table.to)
    }
}

/// Why a store was not copied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// A database of SQLite cannot be used.
    #[error(transparent)]
    Sqlite(#[from] crate::sqlite::OpenError),
    /// A database of PostgreSQL cannot be used.
    #[error(transparent)]
    Postgres(#[from] crate::postgres::OpenError),
    /// A database did not do what it was asked.
    #[error("{0}")]
    Failed(String),
    /// There is no store.
    #[error("there is no store in {0}")]
    Missing(String),
    /// Nodes use it.
    #[error("{place} is in use by {users}: stop all nodes first")]
    InUse {
        /// Which.
        place: String,
        /// Who uses it.
        users: String,
    },
    /// What is to be copied is of an older version.
    #[error(
        "{place} has schema version {found}, and {known} is needed: start a node of this version on it once"
    )]
    Older {
        /// Which.
        place: String,
        /// The version of its schema.
        found: u32,
        /// The version of this program.
        known: u32,
    },
    /// There is something where the copy is to be.
    #[error("{place} is not empty (there are rows in `{table}`): a store is copied into an empty one")]
    NotEmpty {
        /// Which.
        place: String,
        /// A table with rows.
        table: String,
    },
    /// What is there is a copy of something else.
    #[error("{place} has a part of a copy of {source_place}: go on with that, or give an empty database")]
    OtherSource {
        /// Which.
        place: String,
        /// What was copied into it.
        source_place: String,
    },
    /// What is copied was changed meanwhile.
    #[error(
        "a node has used {source_place} since the copy into {place} was begun: begin again, with an empty database"
    )]
    Used {
        /// What is copied.
        source_place: String,
        /// Where to.
        place: String,
    },
    /// A row cannot be stored where it is to be.
    #[error("a row of `{table}` cannot be copied: its column `{column}` {why} (key: {key})")]
    Unfit {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// Why.
        why: &'static str,
        /// What names the row.
        key: String,
    },
}

/// A result of a copy.
pub(crate) type Result<T> = std::result::Result<T, MigrateError>;

/// How a table is copied: its columns, and which of them are its key.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) table: &'static Table,
    pub(crate) columns: Vec<Column>,
    pub(crate) key: Vec<usize>,
}

impl Plan {
    /// The plan for a table that has these columns on PostgreSQL.
    fn new(table: &'static Table, mut columns: Vec<Column>) -> Result<Plan> {
        columns.retain(|column| table.apart.iter().all(|(name, _)| *name != column.name));
        let place = |name: &&str| columns.iter().position(|column| column.name == **name);
        let key = table.key.iter().map(place).collect::<Option<_>>();
        let key = key.ok_or_else(|| MigrateError::Failed(format!("{} has no such key", table.name)))?;
        Ok(Plan { table, columns, key })
    }

    /// That a value of the last of `rows` cannot be copied.
    pub(crate) fn unfit(&self, column: usize, why: &'static str, row: &[u8]) -> MigrateError {
        let values: Vec<_> = rows::values(row).collect();
        let key = self.key.iter().filter_map(|at| values.get(*at));
        MigrateError::Unfit {
            table: self.table.name.to_owned(),
            column: self.columns[column].name.clone(),
            why,
            key: key.map(|value| format!("{value:?}")).collect::<Vec<_>>().join(", "),
        }
    }
}

/// How far a copy is, as it is noted where it goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Noted {
    /// What is copied.
    pub(crate) source: String,
    /// How often a process had used that when the copy was begun; 0 where nobody counts.
    pub(crate) uses: i64,
    /// The table that is being copied; empty before the first.
    pub(crate) table: String,
    /// The key of its last row that is there; empty for none.
    pub(crate) key: Vec<u8>,
}

/// What goes on counting where another store stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// The last number that was given to a row of a table.
    pub(crate) given: BTreeMap<String, i64>,
    /// The revision of the last change of any broadcast.
    pub(crate) broadcast_revision: i64,
}

/// One of the two stores.
pub(crate) trait End: Send {
    /// What it is called.
    fn place(&self) -> String;

    /// How often a process has used it; 0 where nobody counts.
    fn uses(&self) -> Result<i64>;

    /// How far a copy into it is; none where none was begun.
    fn noted(&self) -> Result<Option<Noted>>;

    /// A table of these that has rows.
    fn filled(&self, tables: &[Table]) -> Result<Option<&'static str>>;

    /// Begins a copy.
    fn begin(&mut self, noted: &Noted) -> Result<()>;

    /// Gives rows, in the order of the key behind the one that is given, or all in any order.
    fn read(
        &mut self,
        plan: &Plan,
        which: Which<'_>,
        give: &mut dyn FnMut(&Rows) -> Result<()>,
    ) -> Result<()>;

    /// Takes rows, and notes how far the copy is, in one commit.
    fn write(&mut self, plan: &Plan, rows: &Rows, noted: &Noted) -> Result<()>;

    /// What it has given.
    fn counters(&self) -> Result<Counters>;

    /// Ends a copy into it: it counts on from these, and nodes open it from now on.
    fn finish(&mut self, counters: &Counters) -> Result<()>;
}

/// Which rows are read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which<'a> {
    /// Those to copy, in the order of the key, behind this one.
    Key(&'a [u8]),
    /// Those to copy, in any order.
    Source,
    /// Those that were copied, in any order.
    Copy,
}

/// Copies a store into an empty one, or goes on with a copy that was interrupted, and compares both. `progress` is told of what is done.
///
/// # Errors
/// When either store is in use or cannot be used, the one is not empty, or a row of the other cannot be copied. What was copied stays, and the same
/// again goes on with it.
pub fn migrate(asked: Migration, progress: &mut (dyn FnMut(Progress<'_>) + Send)) -> Result<Report> {
    let Migration { sqlite, postgres, direction, node } = asked;
    match direction {
        Direction::ToPostgres => {
            let mut from = SqliteEnd::source(&sqlite)?;
            let mut to = PostgresEnd::target(postgres, &node)?;
            let plans = plans(&to)?;
            copy(&mut from, &mut to, &plans, progress)
        }
        Direction::ToSqlite => {
            let mut from = PostgresEnd::source(postgres, &node)?;
            let plans = plans(&from)?;
            let mut to = SqliteEnd::target(Path::new(&sqlite))?;
            copy(&mut from, &mut to, &plans, progress)
        }
    }
}

fn plans(postgres: &PostgresEnd) -> Result<Vec<Plan>> {
    COPIED.iter().map(|table| Plan::new(table, postgres.columns(table.name)?)).collect()
}

fn copy(
    from: &mut dyn End,
    to: &mut dyn End,
    plans: &[Plan],
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Report> {
    let (mut noted, was_begun) = begun(from, to)?;
    let next = plans.iter().position(|plan| plan.table.name == noted.table).unwrap_or(0);
    for plan in &plans[next..] {
        if noted.table != plan.table.name {
            noted = Noted { table: plan.table.name.to_owned(), key: Vec::new(), ..noted };
        }
        let (mut done, mut bytes) = (0, 0);
        let mut told = |rows, bytes, is_whole| {
            progress(Progress { step: Step::Copy, table: plan.table.name, rows, bytes, is_whole });
        };
        let behind = noted.key.clone();
        from.read(plan, Which::Key(&behind), &mut |rows| {
            noted.key = rows.last(&plan.key).unwrap_or_default();
            to.write(plan, rows, &noted)?;
            (done, bytes) = (done + rows.len() as u64, bytes + rows.bytes() as u64);
            told(done, bytes, false);
            Ok(())
        })?;
        told(done, bytes, true);
    }
    let tables = verify(from, to, plans, progress)?;
    let report = Report { was_begun, tables };
    if report.is_same() {
        to.finish(&from.counters()?)?;
    }
    Ok(report)
}

/// How far the copy is, and whether it was begun before.
fn begun(from: &dyn End, to: &mut dyn End) -> Result<(Noted, bool)> {
    let (source, uses) = (from.place(), from.uses()?);
    if let Some(noted) = to.noted()? {
        if noted.source != source {
            return Err(MigrateError::OtherSource { place: to.place(), source_place: noted.source });
        }
        if noted.uses != uses {
            return Err(MigrateError::Used { source_place: source, place: to.place() });
        }
        return Ok((noted, true));
    }
    if let Some(table) = to.filled(COPIED)? {
        return Err(MigrateError::NotEmpty { place: to.place(), table: table.to_owned() });
    }
    let noted = Noted { source, uses, ..Noted::default() };
    to.begin(&noted)?;
    Ok((noted, false))
}

/// Reads both ends, one beside the other.
fn verify(
    from: &mut dyn End,
    to: &mut dyn End,
    plans: &[Plan],
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Vec<Verified>> {
    let mut tables = Vec::new();
    for plan in plans {
        let (from, to) = std::thread::scope(|scope| {
            let read = scope.spawn(|| sum(to, plan, Which::Copy));
            let from = sum(from, plan, Which::Source);
            let panicked = |_| MigrateError::Failed("a thread panicked".to_owned());
            Ok::<_, MigrateError>((from?, read.join().map_err(panicked)??))
        })?;
        let table = plan.table.name;
        progress(Progress { step: Step::Verify, table, rows: from.rows, bytes: 0, is_whole: true });
        tables.push(Verified { table, from, to });
    }
    Ok(tables)
}

fn sum(end: &mut dyn End, plan: &Plan, which: Which<'_>) -> Result<Sum> {
    let mut sum = Sum::default();
    end.read(plan, which, &mut |rows| {
        sum.add(rows);
        Ok(())
    })?;
    Ok(sum)
}
