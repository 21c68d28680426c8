//! Block lists.

use super::column::{corrupt, int, text, uint};
use super::lookup;
use super::transaction::Transaction;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::blocking::{ChangeBlockList, ChangeBlockListAnswer};
use carillon_wire::jid::{BareJid, Jid};
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};

impl Answers<ChangeBlockList, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ChangeBlockList) -> Result<ChangeBlockListAnswer> {
        let sql = "SELECT id, record FROM account WHERE domain = ?1 AND local = ?2";
        let found = self.db.prepare_cached(sql)?.query_row(params![asked.domain.0, asked.local], |row| {
            Ok((AccountId(uint(row, 0)?), Generation(uint(row, 1)?)))
        });
        let (Some((account, before)), Some(name)) =
            (found.optional()?, lookup::domain_name(self.db, asked.domain)?)
        else {
            return Ok(ChangeBlockListAnswer::NoAccount);
        };
        let list = list(self.db, account)?;
        let Some((blocked, unblocked)) = asked.edit.apply(&list, asked.bounds) else {
            return Ok(ChangeBlockListAnswer::Full);
        };
        let is_changed = !blocked.is_empty() || !unblocked.is_empty();
        let after = Generation(before.0 + u64::from(is_changed));
        let id = int(account.0);
        if is_changed {
            self.run("UPDATE account SET record = ?2 WHERE id = ?1", params![id, int(after.0)])?;
        }
        for jid in &blocked {
            self.run("INSERT INTO blocked (account, jid) VALUES (?1, ?2)", params![id, jid.as_str()])?;
        }
        for jid in &unblocked {
            self.run("DELETE FROM blocked WHERE account = ?1 AND jid = ?2", params![id, jid.as_str()])?;
        }
        let account =
            BareJid::from_parts(Some(&asked.local), &name).map_err(|_| corrupt(0, "not an address"))?;
        let change = BlockListChange { account, before, after, blocked, unblocked };
        Ok(ChangeBlockListAnswer::Changed(Box::new(change)))
    }
}

/// An account's block list, sorted.
pub(super) fn list(db: &Connection, account: AccountId) -> Result<Vec<Jid>> {
    let mut query = db.prepare_cached("SELECT jid FROM blocked WHERE account = ?1 ORDER BY jid")?;
    query.query_map([int(account.0)], |row| address(row, 0))?.collect()
}

/// The address in a column.
pub(super) fn address(row: &Row<'_>, column: usize) -> Result<Jid> {
    Jid::new(&text(row, column)?).map_err(|_| corrupt(column, "not an address"))
}
