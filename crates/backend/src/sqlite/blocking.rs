//! Block lists.

use super::column::{address, corrupt, int, uint};
use super::lookup;
use super::transaction::Transaction;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::blocking::{ChangeBlockList, ChangeBlockListAnswer};
use carillon_wire::jid::{BareJid, Jid};
use rusqlite::{Connection, Error, OptionalExtension, Result, params};

impl Answers<ChangeBlockList, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ChangeBlockList) -> Result<ChangeBlockListAnswer> {
        let sql = "SELECT id, record, blocked, blocked_bytes FROM account WHERE domain = ?1 AND local = ?2";
        let found = self.db.prepare_cached(sql)?.query_row(params![asked.domain.0, asked.local], |row| {
            let used = BlockListBounds { addresses: row.get(2)?, bytes: uint(row, 3)? };
            Ok((row.get::<_, i64>(0)?, Generation(uint(row, 1)?), used))
        });
        let (Some((id, before, used)), Some(name)) =
            (found.optional()?, lookup::domain_name(self.db, asked.domain)?)
        else {
            return Ok(ChangeBlockListAnswer::NoAccount);
        };
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
                "UPDATE account SET record = ?2, blocked = ?3, blocked_bytes = ?4 WHERE id = ?1",
                params![id, int(after.0), addresses, int(bytes)],
            )?;
        }
        for jid in &blocked {
            self.run("INSERT INTO blocked (account, jid) VALUES (?1, ?2)", params![id, jid.as_str()])?;
        }
        if asked.edit == BlockListEdit::UnblockAll {
            self.run("DELETE FROM blocked WHERE account = ?1", [id])?;
        } else {
            for jid in &unblocked {
                self.run("DELETE FROM blocked WHERE account = ?1 AND jid = ?2", params![id, jid.as_str()])?;
            }
        }
        let account =
            BareJid::from_parts(Some(&asked.local), &name).map_err(|_| corrupt(0, "not an address"))?;
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
        let sql = "SELECT 1 FROM blocked WHERE account = ?1 AND jid = ?2";
        self.db.prepare_cached(sql)?.exists(params![self.account, jid.as_str()])
    }

    fn all(&mut self) -> Result<Vec<Jid>> {
        let mut query = self.db.prepare_cached("SELECT jid FROM blocked WHERE account = ?1 ORDER BY jid")?;
        query.query_map([self.account], |row| address(row, 0))?.collect()
    }
}

/// Whether an account blocks all of another.
pub(super) fn blocks(db: &Connection, account: AccountId, other: &BareJid) -> Result<bool> {
    let sql = "SELECT 1 FROM blocked WHERE account = ?1 AND jid IN (?2, ?3)";
    db.prepare_cached(sql)?.exists(params![int(account.0), other.as_str(), other.domain()])
}
