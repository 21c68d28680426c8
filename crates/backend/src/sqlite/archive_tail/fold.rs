//! How far archived messages are in the tables by which they are found.

use super::super::column::uint;
use rusqlite::{Connection, Result};

/// How far messages are in the tables (`archive_fold`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Fold {
    /// All up to this one.
    pub(in super::super) folded: u64,
    /// Up to this one, those of accounts below `account`; 0 while there is no fold.
    pub(in super::super) folding: u64,
    pub(in super::super) account: i64,
    /// Of `account` itself, those up to this one.
    pub(in super::super) seq: u64,
}

impl Fold {
    /// The one in the database.
    pub(in super::super) fn find(db: &Connection) -> Result<Fold> {
        db.prepare_cached("SELECT folded, folding, account, seq FROM archive_fold")?.query_row([], |row| {
            Ok(Fold {
                folded: uint(row, 0)?,
                folding: uint(row, 1)?,
                account: row.get(2)?,
                seq: uint(row, 3)?,
            })
        })
    }

    /// Up to which message those of an account are in the tables.
    pub(in super::super) fn of(self, account: i64) -> u64 {
        if self.folding == 0 || account > self.account {
            self.folded
        } else if account < self.account {
            self.folding
        } else {
            self.seq.max(self.folded)
        }
    }
}
