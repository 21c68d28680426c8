//! Block lists and privacy lists.

use super::column::{address, corrupt, int, uint};
use super::transaction::Transaction;
use super::{contact, lookup};
use carillon_core::form::{Clock, decode, encode};
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::blocking::{
    ChangeBlockList, ChangeBlockListAnswer, ChangePrivacyLists, ChangePrivacyListsAnswer,
};
use carillon_wire::jid::{BareJid, Jid};
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};

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
            self.change_blocked(id, after, used, &blocked, &unblocked)?;
        }
        let account =
            BareJid::from_parts(Some(&asked.local), &name).map_err(|_| corrupt(0, "not an address"))?;
        let change = BlockListChange { account, before, after, blocked, unblocked, by_lists: false };
        Ok(ChangeBlockListAnswer::Changed(Box::new(change)))
    }
}

impl Transaction<'_> {
    /// Blocks some and others no more; with this generation of the record.
    fn change_blocked(
        &self,
        account: i64,
        after: Generation,
        used: BlockListBounds,
        blocked: &[Jid],
        unblocked: &[Jid],
    ) -> Result<()> {
        let bytes = |jids: &[Jid]| jids.iter().map(|jid| jid.as_str().len() as u64).sum::<u64>();
        let addresses = (i64::from(used.addresses) + blocked.len() as i64 - unblocked.len() as i64).max(0);
        let bytes = (used.bytes + bytes(blocked)).saturating_sub(bytes(unblocked));
        self.run(
            "UPDATE account SET record = ?2, blocked = ?3, blocked_bytes = ?4 WHERE id = ?1",
            params![account, int(after.0), addresses, int(bytes)],
        )?;
        for jid in blocked {
            self.run("INSERT INTO blocked (account, jid) VALUES (?1, ?2)", params![account, jid.as_str()])?;
        }
        if addresses == 0 {
            self.run("DELETE FROM blocked WHERE account = ?1", [account])?;
            return Ok(());
        }
        for jid in unblocked {
            self.run("DELETE FROM blocked WHERE account = ?1 AND jid = ?2", params![account, jid.as_str()])?;
        }
        Ok(())
    }
}

impl Answers<ChangePrivacyLists, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ChangePrivacyLists) -> Result<ChangePrivacyListsAnswer> {
        let sql = "SELECT id, record, blocked, blocked_bytes FROM account WHERE domain = ?1 AND local = ?2";
        let found = self.db.prepare_cached(sql)?.query_row(params![asked.domain.0, asked.local], |row| {
            let used = BlockListBounds { addresses: row.get(2)?, bytes: uint(row, 3)? };
            Ok((row.get::<_, i64>(0)?, Generation(uint(row, 1)?), used))
        });
        let (Some((id, before, used)), Some(name)) =
            (found.optional()?, lookup::domain_name(self.db, asked.domain)?)
        else {
            return Ok(ChangePrivacyListsAnswer::NoAccount);
        };
        let was = privacy_lists(self.db, id)?.unwrap_or_default();
        let mut list = Stored { db: self.db, account: id, used };
        let edited = match was.edited(&asked.edit, &mut list, asked.bounds, asked.block_list)? {
            Ok(edited) => edited,
            Err(refusal) => return Ok(ChangePrivacyListsAnswer::Refused(refusal)),
        };
        let account =
            BareJid::from_parts(Some(&asked.local), &name).map_err(|_| corrupt(0, "not an address"))?;
        let answer = asked.changed(&account, before, &was, &edited);
        let Some(after) = answer.generation() else { return Ok(answer) };
        self.change_blocked(id, after, used, &edited.blocked, &edited.unblocked)?;
        match edited.lists.is_empty() && edited.lists.default.is_none() {
            true => self.run("DELETE FROM privacy WHERE account = ?1", [id])?,
            false => self.run(
                "INSERT OR REPLACE INTO privacy (account, lists) VALUES (?1, ?2)",
                params![id, encode(&edited.lists, 0)],
            )?,
        };
        Ok(answer)
    }
}

/// The privacy lists of an account, if it has any.
pub(super) fn privacy_lists(db: &Connection, account: i64) -> Result<Option<PrivacyLists>> {
    let sql = "SELECT lists FROM privacy WHERE account = ?1";
    db.prepare_cached(sql)?.query_row([account], |row| privacy_of(row, 0)).optional()
}

/// The privacy lists in a column.
pub(super) fn privacy_of(row: &Row<'_>, column: usize) -> Result<PrivacyLists> {
    decode(row.get_ref(column)?.as_blob().map_err(Error::from)?, Clock::default())
        .map_err(|_| corrupt(column, "not privacy lists"))
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

    fn first(&mut self, max: usize) -> Result<Vec<Jid>> {
        let sql = "SELECT jid FROM blocked WHERE account = ?1 ORDER BY jid LIMIT ?2";
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        self.db.prepare_cached(sql)?.query_map([self.account, max], |row| address(row, 0))?.collect()
    }
}

/// Whether nothing passes between an account and another: by its block list, or by its default privacy list, if that is looked at.
pub(super) fn shuns(db: &Connection, account: AccountId, other: &BareJid, by_lists: bool) -> Result<bool> {
    let sql = "SELECT 1 FROM blocked WHERE account = ?1 AND jid IN (?2, ?3)";
    if db.prepare_cached(sql)?.exists(params![int(account.0), other.as_str(), other.domain()])? {
        return Ok(true);
    }
    let lists = if by_lists { privacy_lists(db, int(account.0))? } else { None };
    let Some(lists) = lists else { return Ok(false) };
    Ok(lists.shuns(other, contact::said(db, account, other)?.as_ref()))
}
