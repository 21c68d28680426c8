//! What accounts tell of themselves.

use super::column::{blob, int};
use super::lookup;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use bytes::Bytes;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::vcard::{ReadVcard, StoreVcard};
use rusqlite::{Error, OptionalExtension, Result, params};

impl Answers<ReadVcard, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ReadVcard) -> Result<Option<Bytes>> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else { return Ok(None) };
        let mut query = self.db.prepare_cached("SELECT xml FROM vcard WHERE account = ?1")?;
        query.query_row([int(account.0)], |row| blob(row, 0).map(Bytes::copy_from_slice)).optional()
    }
}

impl Answers<StoreVcard, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &StoreVcard) -> Result<Result<(), Missing>> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else {
            return Ok(Err(Missing));
        };
        let id = int(account.0);
        if asked.xml.is_empty() {
            self.run("DELETE FROM vcard WHERE account = ?1", [id])?;
        } else {
            let sql = "INSERT OR REPLACE INTO vcard (account, xml) VALUES (?1, ?2)";
            self.run(sql, params![id, &asked.xml[..]])?;
        }
        Ok(Ok(()))
    }
}
