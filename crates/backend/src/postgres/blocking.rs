//! Block lists.

use super::column::{int, number, text, uint};
use super::connection::Connection;
use super::error::{Error, Result};
use super::transaction::Transaction;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::blocking::{ChangeBlockList, ChangeBlockListAnswer};
use carillon_wire::jid::{BareJid, Jid};
use tokio_postgres::Row;

impl Answers<ChangeBlockList, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ChangeBlockList) -> Result<ChangeBlockListAnswer> {
        let found = self.db.opt(
            "SELECT a.id, a.record, a.blocked, a.blocked_bytes, d.name FROM account a JOIN domain d ON d.id = a.domain
             WHERE a.domain = $1 AND a.local = $2",
            &[&i64::from(asked.domain.0), &asked.local],
        )?;
        let Some(row) = found else { return Ok(ChangeBlockListAnswer::NoAccount) };
        let (id, before) = (row.try_get(0)?, Generation(uint(&row, 1)?));
        let used = BlockListBounds { addresses: number(&row, 2)?, bytes: uint(&row, 3)? };
        let mut list = Stored { db: self.db, account: id, used };
        let Some((blocked, unblocked)) = asked.edit.apply(&mut list, asked.bounds)? else {
            return Ok(ChangeBlockListAnswer::Full);
        };
        let is_changed = !blocked.is_empty() || !unblocked.is_empty();
        let after = Generation(before.0 + u64::from(is_changed));
        if is_changed {
            let bytes = |jids: &[Jid]| jids.iter().map(|jid| jid.as_str().len() as u64).sum::<u64>();
            let addresses =
                (i64::from(used.addresses) + blocked.len() as i64 - unblocked.len() as i64).max(0);
            let bytes = (used.bytes + bytes(&blocked)).saturating_sub(bytes(&unblocked));
            self.run(
                "UPDATE account SET record = $2, blocked = $3, blocked_bytes = $4 WHERE id = $1",
                &[&id, &int(after.0), &addresses, &int(bytes)],
            )?;
            let new: Vec<&str> = blocked.iter().map(Jid::as_str).collect();
            self.run("INSERT INTO blocked (account, jid) SELECT $1, unnest($2::text[])", &[&id, &new])?;
            let gone: Vec<&str> = unblocked.iter().map(Jid::as_str).collect();
            self.run("DELETE FROM blocked WHERE account = $1 AND jid = ANY ($2::text[])
                 AND hashtextextended(jid, 0) = ANY (ARRAY (SELECT hashtextextended(gone, 0) FROM unnest($2::text[]) AS gone))", &[&id, &gone])?;
        }
        let account = BareJid::from_parts(Some(&asked.local), row.try_get(4)?);
        let account = account.map_err(|_| Error::Corrupt("not an address"))?;
        let change = BlockListChange { account, before, after, blocked, unblocked };
        Ok(ChangeBlockListAnswer::Changed(Box::new(change)))
    }
}

/// An account's block list in its table.
struct Stored<'a> {
    db: &'a Connection,
    account: i64,
    used: BlockListBounds,
}

impl BlockList for Stored<'_> {
    type Error = Error;

    fn used(&self) -> BlockListBounds {
        self.used
    }

    fn has(&mut self, jid: &Jid) -> Result<bool> {
        let sql = "SELECT 1 FROM blocked WHERE account = $1 AND hashtextextended(jid, 0) = hashtextextended($2, 0) AND jid = $2";
        Ok(self.db.opt(sql, &[&self.account, &jid.as_str()])?.is_some())
    }

    fn all(&mut self) -> Result<Vec<Jid>> {
        let rows =
            self.db.query("SELECT jid FROM blocked WHERE account = $1 ORDER BY jid", &[&self.account])?;
        rows.iter().map(|row| address(row, 0)).collect()
    }
}

/// Whether an account blocks all of another.
pub(super) fn blocks(db: &Connection, account: AccountId, other: &BareJid) -> Result<bool> {
    let sql = "SELECT 1 FROM blocked WHERE account = $1 AND jid IN ($2, $3)
        AND hashtextextended(jid, 0) IN (hashtextextended($2, 0), hashtextextended($3, 0))";
    Ok(db.opt(sql, &[&int(account.0), &other.as_str(), &other.domain()])?.is_some())
}

/// The address in a column.
pub(super) fn address(row: &Row, column: usize) -> Result<Jid> {
    Jid::new(&text(row, column)?).map_err(|_| Error::Corrupt("not an address"))
}
