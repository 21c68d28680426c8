//! What clients keep for themselves.

use super::column::{blob, int, text, uint};
use super::lookup;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use bytes::Bytes;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::private::{
    PrivateElement, PrivateElements, ReadPrivate, StorePrivate, StorePrivateAnswer,
};
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};
use std::collections::HashSet;

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

impl Answers<PrivateElements, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &PrivateElements) -> Result<Vec<PrivateElement>> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else {
            return Ok(Vec::new());
        };
        let mut query = self
            .db
            .prepare_cached("SELECT name, ns, xml FROM private WHERE account = ?1 ORDER BY ns, name")?;
        let element = |row: &Row<'_>| {
            let xml = Bytes::copy_from_slice(blob(row, 2)?);
            Ok(PrivateElement { name: text(row, 0)?, ns: text(row, 1)?, xml })
        };
        query.query_map([int(account.0)], element)?.collect()
    }
}

impl Answers<StorePrivate, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &StorePrivate) -> Result<StorePrivateAnswer> {
        let account = self
            .db
            .prepare_cached("SELECT id, private_bytes FROM account WHERE domain = ?1 AND local = ?2")?
            .query_row(params![asked.domain.0, asked.local], |row| Ok((row.get(0)?, uint(row, 1)?)));
        let Some((id, used)): Option<(i64, u64)> = account.optional()? else {
            return Ok(StorePrivateAnswer::NoAccount);
        };
        // Of two of the same name the later one counts.
        let mut named = HashSet::new();
        let latest = asked.elements.iter().rev().filter(|element| named.insert((&element.ns, &element.name)));
        let elements: Vec<&PrivateElement> = latest.collect();
        let (mut gone, mut new) = (0, 0);
        for element in &elements {
            gone += bytes_of(self.db, id, element)?;
            if !element.xml.is_empty() {
                new += (element.ns.len() + element.name.len() + element.xml.len()) as u64;
            }
        }
        let bytes = used.saturating_sub(gone) + new;
        if bytes > asked.bytes_max as u64 {
            return Ok(StorePrivateAnswer::Full);
        }
        for PrivateElement { name, ns, xml } in elements {
            if xml.is_empty() {
                let sql = "DELETE FROM private WHERE account = ?1 AND ns = ?2 AND name = ?3";
                self.run(sql, params![id, ns, name])?;
            } else {
                let sql = "INSERT OR REPLACE INTO private (account, ns, name, xml) VALUES (?1, ?2, ?3, ?4)";
                self.run(sql, params![id, ns, name, &xml[..]])?;
            }
        }
        self.run("UPDATE account SET private_bytes = ?2 WHERE id = ?1", params![id, int(bytes)])?;
        Ok(StorePrivateAnswer::Stored)
    }
}

/// Bytes of what an account keeps under the name of an element.
fn bytes_of(db: &Connection, account: i64, element: &PrivateElement) -> Result<u64> {
    let xml = db
        .prepare_cached("SELECT length(xml) FROM private WHERE account = ?1 AND ns = ?2 AND name = ?3")?
        .query_row(params![account, element.ns, element.name], |row| uint(row, 0))
        .optional()?;
    Ok(xml.map_or(0, |xml| (element.ns.len() + element.name.len()) as u64 + xml))
}
