//! Copying a store between SQLite and PostgreSQL, while no node uses either.
//!
//! `moving` is what the two ends share: the list of tables, the form of rows. Each end reads and writes rows, and knows how far a copy into it is.
//!
//! Rows are read in the order of a key and written many in a commit, together with the key of the last one. So a copy that is interrupted goes
//! on behind that row. At the end both stores are read whole, and their counts and checksums compared; only then nodes open the copy.

pub use crate::moving::MigrateError;
pub use crate::moving::rows::Sum;

use crate::moving::tables::{COPIED, NOT_COPIED};
use crate::moving::{End, Noted, Plan, Result, Which};
use crate::postgres::moving::PostgresEnd;
use crate::sqlite::moving::SqliteEnd;
use std::path::{Path, PathBuf};

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
    pub step: MigrationPhase,
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
pub enum MigrationPhase {
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
            progress(Progress { step: MigrationPhase::Copy, table: plan.table.name, rows, bytes, is_whole });
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
        progress(Progress { step: MigrationPhase::Verify, table, rows: from.rows, bytes: 0, is_whole: true });
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
