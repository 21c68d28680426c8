//! What clients keep for themselves.

use super::column::{blob, int};
use super::lookup;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use bytes::Bytes;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::private::{PrivateElement, ReadPrivate, StorePrivate, StorePrivateAnswer};
use rusqlite::{Error, OptionalExtension, Result, params};

impl Answers<ReadPrivate, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ReadPrivate) -> Result<Result<Option<Bytes>, Missing>> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else {
            return Ok(Err(Missing));
        };
        let found = self
            .db
            .prepare_cached("SELECT xml FROM private WHERE account = ?1 AND ns = ?2 AND name = ?3")?
            .query_row(params![int(account.0), asked.ns, asked.name], |row| {
                blob(row, 0).map(Bytes::copy_from_slice)
            });
        Ok(Ok(found.optional()?))
    }
}

impl Answers<StorePrivate, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &StorePrivate) -> Result<StorePrivateAnswer> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else {
            return Ok(StorePrivateAnswer::NoAccount);
        };
        let id = int(account.0);
        // What is there already counts unless it is replaced; of two of the same name the later one is kept.
        let mut bytes = 0;
        let mut kept: Vec<&PrivateElement> = Vec::new();
        for element in &asked.elements {
            kept.retain(|other| (&other.ns, &other.name) != (&element.ns, &element.name));
            kept.push(element);
        }
        let mut query = self
            .db
            .prepare_cached("SELECT ns, name, length(CAST(ns AS BLOB)) + length(CAST(name AS BLOB)) + length(xml) FROM private WHERE account = ?1")?;
        let mut rows = query.query([id])?;
        while let Some(row) = rows.next()? {
            let (ns, name): (String, String) = (row.get(0)?, row.get(1)?);
            if !kept.iter().any(|element| *element.ns == *ns && *element.name == *name) {
                bytes += row.get::<_, u32>(2)? as usize;
            }
        }
        drop(rows);
        let new = kept.iter().filter(|element| !element.xml.is_empty());
        bytes += new.map(|element| element.ns.len() + element.name.len() + element.xml.len()).sum::<usize>();
        if bytes > asked.bytes_max {
            return Ok(StorePrivateAnswer::Full);
        }
        for PrivateElement { name, ns, xml } in kept {
            if xml.is_empty() {
                let sql = "DELETE FROM private WHERE account = ?1 AND ns = ?2 AND name = ?3";
                self.run(sql, params![id, ns, name])?;
            } else {
                let sql = "INSERT OR REPLACE INTO private (account, ns, name, xml) VALUES (?1, ?2, ?3, ?4)";
                self.run(sql, params![id, ns, name, &xml[..]])?;
            }
        }
        Ok(StorePrivateAnswer::Stored)
    }
}
