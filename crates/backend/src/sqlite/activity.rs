//! When accounts were available for the last time.

use super::column::{int, ms};
use super::lookup;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use carillon_core::model::UnixMs;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::activity::{LastAvailable, NoteAvailable};
use rusqlite::{Error, OptionalExtension, Result, params};

impl Answers<LastAvailable, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &LastAvailable) -> Result<Option<UnixMs>> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else { return Ok(None) };
        let mut query = self.db.prepare_cached("SELECT at FROM last_available WHERE account = ?1")?;
        query.query_row([int(account.0)], |row| ms(row, 0)).optional()
    }
}

impl Answers<NoteAvailable, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &NoteAvailable) -> Result<()> {
        for one in &asked.of {
            self.run(
                "INSERT INTO last_available (account, at) SELECT id, ?3 FROM account WHERE domain = ?1 AND local = ?2
                 ON CONFLICT (account) DO UPDATE SET at = max(at, excluded.at)",
                params![one.domain.0, one.local, int(one.at.0)],
            )?;
        }
        Ok(())
    }
}
