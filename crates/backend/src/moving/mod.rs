//! What the two ends of a copy between stores share.
//!
//! - `tables` is the one list of what becomes of each table; `rows` the form that both stores are read in.
//! - [`End`] is one of the two stores: `sqlite::moving` and `postgres::moving`. `migrate` copies from one to the other.

pub(crate) mod rows;
pub(crate) mod tables;

use rows::{Column, Rows};
use std::collections::BTreeMap;
use tables::Table;

/// Why a store was not copied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// A database cannot be used, or did not do what it was asked.
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
    pub(crate) fn new(table: &'static Table, mut columns: Vec<Column>) -> Result<Plan> {
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
