//! Block lists and privacy lists.

use super::column::{int, number, text, uint};
use super::connection::Connection;
use super::contact;
use super::error::{Error, Result};
use super::transaction::Transaction;
use carillon_core::form::{Clock, decode, encode};
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::blocking::{
    ChangeBlockList, ChangeBlockListAnswer, ChangePrivacyLists, ChangePrivacyListsAnswer,
};
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
            self.change_blocked(id, after, used, &blocked, &unblocked)?;
        }
        let account = BareJid::from_parts(Some(&asked.local), row.try_get(4)?);
        let account = account.map_err(|_| Error::Corrupt("not an address"))?;
        let change = BlockListChange { account, before, after, blocked, unblocked, by_lists: false };
        Ok(ChangeBlockListAnswer::Changed(Box::new(change)))
    }
}

impl Transaction<'_> {
    /// Adds and removes entries of a block list, with this generation of the record.
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
            "UPDATE account SET record = $2, blocked = $3, blocked_bytes = $4 WHERE id = $1",
            &[&account, &int(after.0), &addresses, &int(bytes)],
        )?;
        let new: Vec<&str> = blocked.iter().map(Jid::as_str).collect();
        self.run("INSERT INTO blocked (account, jid) SELECT $1, unnest($2::text[])", &[&account, &new])?;
        let gone: Vec<&str> = unblocked.iter().map(Jid::as_str).collect();
        self.run("DELETE FROM blocked WHERE account = $1 AND jid = ANY ($2::text[])
             AND hashtextextended(jid, 0) = ANY (ARRAY (SELECT hashtextextended(gone, 0) FROM unnest($2::text[]) AS gone))", &[&account, &gone])?;
        Ok(())
    }
}

impl Answers<ChangePrivacyLists, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ChangePrivacyLists) -> Result<ChangePrivacyListsAnswer> {
        let found = self.db.opt(
            "SELECT a.id, a.record, a.blocked, a.blocked_bytes, d.name FROM account a JOIN domain d ON d.id = a.domain
             WHERE a.domain = $1 AND a.local = $2",
            &[&i64::from(asked.domain.0), &asked.local],
        )?;
        let Some(row) = found else { return Ok(ChangePrivacyListsAnswer::NoAccount) };
        let (id, before) = (row.try_get(0)?, Generation(uint(&row, 1)?));
        let used = BlockListBounds { addresses: number(&row, 2)?, bytes: uint(&row, 3)? };
        let was = privacy_lists(self.db, id)?.unwrap_or_default();
        let mut list = Stored { db: self.db, account: id, used };
        let edited = match was.edited(&asked.edit, &mut list, asked.bounds, asked.block_list)? {
            Ok(edited) => edited,
            Err(refusal) => return Ok(ChangePrivacyListsAnswer::Refused(refusal)),
        };
        let account = BareJid::from_parts(Some(&asked.local), row.try_get(4)?);
        let account = account.map_err(|_| Error::Corrupt("not an address"))?;
        let answer = asked.changed(&account, before, &was, &edited);
        let Some(after) = answer.generation() else { return Ok(answer) };
        self.change_blocked(id, after, used, &edited.blocked, &edited.unblocked)?;
        match edited.lists.is_empty() && edited.lists.default.is_none() {
            true => self.run("DELETE FROM privacy WHERE account = $1", &[&id])?,
            false => self.run(
                "INSERT INTO privacy (account, lists) VALUES ($1, $2)
                 ON CONFLICT (account) DO UPDATE SET lists = excluded.lists",
                &[&id, &encode(&edited.lists, 0)],
            )?,
        };
        Ok(answer)
    }
}

/// The privacy lists of an account, if it has any.
fn privacy_lists(db: &Connection, account: i64) -> Result<Option<PrivacyLists>> {
    let row = db.opt("SELECT lists FROM privacy WHERE account = $1", &[&account])?;
    row.as_ref().map(|row| privacy_of(row, 0)).transpose()
}

/// The privacy lists in a column.
pub(super) fn privacy_of(row: &Row, column: usize) -> Result<PrivacyLists> {
    decode(row.try_get(column)?, Clock::default()).map_err(|_| Error::Corrupt("not privacy lists"))
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

    fn first(&mut self, max: usize) -> Result<Vec<Jid>> {
        let sql = "SELECT jid FROM blocked WHERE account = $1 ORDER BY jid LIMIT $2";
        let rows = self.db.query(sql, &[&self.account, &i64::try_from(max).unwrap_or(i64::MAX)])?;
        rows.iter().map(|row| address(row, 0)).collect()
    }
}

/// Whether nothing passes between an account and another: by its block list, or by its default privacy list, if that is looked at.
pub(super) fn shuns(db: &Connection, account: AccountId, other: &BareJid, by_lists: bool) -> Result<bool> {
    let sql = "SELECT 1 FROM blocked WHERE account = $1 AND jid IN ($2, $3)
        AND hashtextextended(jid, 0) IN (hashtextextended($2, 0), hashtextextended($3, 0))";
    if db.opt(sql, &[&int(account.0), &other.as_str(), &other.domain()])?.is_some() {
        return Ok(true);
    }
    if by_lists { shuns_by_lists(db, int(account.0), other) } else { Ok(false) }
}

/// The same by its default privacy list alone.
pub(super) fn shuns_by_lists(db: &Connection, account: i64, other: &BareJid) -> Result<bool> {
    let Some(lists) = privacy_lists(db, account)? else { return Ok(false) };
    Ok(lists.shuns(other, contact::said(db, AccountId(account as u64), other)?.as_ref()))
}

/// The address in a column.
pub(super) fn address(row: &Row, column: usize) -> Result<Jid> {
    Jid::new(&text(row, column)?).map_err(|_| Error::Corrupt("not an address"))
}
