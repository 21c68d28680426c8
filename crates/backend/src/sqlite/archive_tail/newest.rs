//! The newest message of all archives.

use super::super::column::{ms, uint};
use carillon_core::model::UnixMs;
use rusqlite::{Connection, OptionalExtension, Result};

/// The newest message of all archives.
#[derive(Clone, Copy, Default)]
pub(in super::super) struct Newest {
    pub(in super::super) seq: u64,
    pub(in super::super) received: UnixMs,
}

impl Newest {
    /// The one in the database.
    pub(in super::super) fn find(db: &Connection) -> Result<Newest> {
        let found = db
            .prepare_cached("SELECT seq, received FROM archive_message ORDER BY seq DESC LIMIT 1")?
            .query_row([], |row| Ok(Newest { seq: uint(row, 0)?, received: ms(row, 1)? }));
        Ok(found.optional()?.unwrap_or_default())
    }
}
