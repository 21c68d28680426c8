//! What accounts tell of themselves.

use super::column::{blob, int};
use super::error::{Error, Result};
use super::lookup;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use bytes::Bytes;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::vcard::{ReadVcard, StoreVcard};

impl Answers<ReadVcard, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ReadVcard) -> Result<Option<Bytes>> {
        let row = self.db.opt(
            "SELECT v.xml FROM vcard v JOIN account a ON a.id = v.account WHERE a.domain = $1 AND a.local = $2",
            &[&i64::from(asked.domain.0), &asked.local],
        )?;
        row.map(|row| Ok(Bytes::copy_from_slice(blob(&row, 0)?))).transpose()
    }
}

impl Answers<StoreVcard, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &StoreVcard) -> Result<std::result::Result<(), Missing>> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else {
            return Ok(Err(Missing));
        };
        let id = int(account.0);
        if asked.xml.is_empty() {
            self.run("DELETE FROM vcard WHERE account = $1", &[&id])?;
        } else {
            self.run(
                "INSERT INTO vcard (account, xml) VALUES ($1, $2) ON CONFLICT (account) DO UPDATE SET xml = $2",
                &[&id, &&asked.xml[..]],
            )?;
        }
        Ok(Ok(()))
    }
}
