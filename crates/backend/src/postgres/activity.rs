//! When accounts were available for the last time.

use super::column::{int, ms};
use super::error::{Error, Result};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use carillon_core::model::UnixMs;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::activity::{LastAvailable, NoteAvailable};

impl Answers<LastAvailable, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &LastAvailable) -> Result<Option<UnixMs>> {
        let row = self.db.opt(
            "SELECT at FROM last_available JOIN account ON account.id = account WHERE domain = $1 AND local = $2",
            &[&i64::from(asked.domain.0), &asked.local],
        )?;
        row.map(|row| ms(&row, 0)).transpose()
    }
}

impl Answers<NoteAvailable, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &NoteAvailable) -> Result<()> {
        let domains: Vec<i64> = asked.of.iter().map(|one| i64::from(one.domain.0)).collect();
        let locals: Vec<&str> = asked.of.iter().map(|one| &*one.local).collect();
        let times: Vec<i64> = asked.of.iter().map(|one| int(one.at.0)).collect();
        // Of an account that is there twice the latest counts.
        self.run(
            "INSERT INTO last_available (account, at)
             SELECT id, max(noted.at) FROM unnest($1::bigint[], $2::text[], $3::bigint[]) noted (of, name, at)
             JOIN account ON domain = of AND local = name GROUP BY id
             ON CONFLICT (account) DO UPDATE SET at = greatest(last_available.at, excluded.at)",
            &[&domains, &locals, &times],
        )?;
        Ok(())
    }
}
