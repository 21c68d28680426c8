//! Chat messages kept for accounts that were away.

use super::column::{blob, int, jid, ms, opt_int, opt_ms, uint};
use super::lookup;
use super::push;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::rows::page::Room;
use crate::rows::push::Tells;
use bytes::Bytes;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::offline::{
    DeleteOffline, ExpiredOffline, Offline, StoreOffline, StoreOfflineAnswer,
};
use carillon_core::ports::{Page, Part};
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};

impl Answers<StoreOffline, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &StoreOffline) -> Result<StoreOfflineAnswer> {
        let Some(kept) = Kept::of(self.db, asked)? else { return Ok(StoreOfflineAnswer::NoAccount) };
        let (account, bytes) = (kept.account, asked.stanza.len() as u64);
        if kept.messages >= u64::from(asked.queue_max) || kept.bytes + bytes > asked.bytes_max {
            return Ok(StoreOfflineAnswer::Full);
        }
        self.run(
            "INSERT INTO offline (account, received, stanza, expires) VALUES (?1, ?2, ?3, ?4)",
            params![int(account.0), int(asked.received.0), &asked.stanza[..], opt_int(asked.expires)],
        )?;
        let number = self.db.last_insert_rowid().cast_unsigned();
        self.run(
            "UPDATE account SET offline = offline + 1, offline_bytes = offline_bytes + ?2 WHERE id = ?1",
            params![int(account.0), int(bytes)],
        )?;
        if let Some(wake) = &asked.wake
            && kept.registrations > 0
        {
            push::wake(self, account, wake, Tells::Message(number))?;
        }
        Ok(StoreOfflineAnswer::Stored(number))
    }
}

/// How much an account has, as its row says: nothing is counted.
struct Kept {
    account: AccountId,
    messages: u64,
    bytes: u64,
    registrations: u64,
}

impl Kept {
    fn of(db: &Connection, asked: &StoreOffline) -> Result<Option<Kept>> {
        db.prepare_cached(
            "SELECT id, offline, offline_bytes, registrations FROM account WHERE domain = ?1 AND local = ?2",
        )?
        .query_row(params![asked.domain.0, asked.local], |row| {
            Ok(Kept {
                account: AccountId(uint(row, 0)?),
                messages: uint(row, 1)?,
                bytes: uint(row, 2)?,
                registrations: uint(row, 3)?,
            })
        })
        .optional()
    }
}

impl Answers<Offline, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Offline) -> Result<Part<OfflineMessage>> {
        match lookup::account(self.db, asked.domain, &asked.local)? {
            Some(account) => waiting(self.db, account, asked.after, asked.page),
            None => Ok(Part::default()),
        }
    }
}

/// The first page of an account's messages after number `after`, and whether there are more.
fn waiting(db: &Connection, account: AccountId, after: u64, page: Page) -> Result<Part<OfflineMessage>> {
    let mut query = db.prepare_cached(
        "SELECT seq, received, stanza, expires FROM offline WHERE account = ?1 AND seq > ?2 ORDER BY seq",
    )?;
    let mut rows = query.query(params![int(account.0), int(after)])?;
    let (mut messages, mut room) = (Vec::new(), Room::new(page));
    while let Some(row) = rows.next()? {
        if !room.takes(blob(row, 2)?.len()) {
            return Ok(Part { entries: messages, more: true });
        }
        messages.push(message(row)?);
    }
    Ok(Part { entries: messages, more: false })
}

/// A message of the columns `seq`, `received`, `stanza` and `expires`, with which a row begins.
fn message(row: &Row<'_>) -> Result<OfflineMessage> {
    let stanza = Bytes::copy_from_slice(blob(row, 2)?);
    Ok(OfflineMessage { seq: uint(row, 0)?, received: ms(row, 1)?, stanza, expires: opt_ms(row, 3)? })
}

impl Answers<ExpiredOffline, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ExpiredOffline) -> Result<Part<ExpiredMessage>> {
        let mut query = self.db.prepare_cached(
            "SELECT o.seq, o.received, o.stanza, o.expires, a.local, d.name
             FROM offline o JOIN account a ON a.id = o.account JOIN domain d ON d.id = a.domain
             WHERE o.expires <= ?1 ORDER BY o.expires, o.seq",
        )?;
        let mut rows = query.query([int(asked.now.0)])?;
        let (mut entries, mut room) = (Vec::new(), Room::new(asked.page));
        while let Some(row) = rows.next()? {
            if !room.takes(blob(row, 2)?.len()) {
                return Ok(Part { entries, more: true });
            }
            entries.push(ExpiredMessage { to: jid(row, 4, 5)?, message: message(row)? });
        }
        Ok(Part { entries, more: false })
    }
}

impl Answers<DeleteOffline, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DeleteOffline) -> Result<()> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else { return Ok(()) };
        let (mut messages, mut bytes) = (0u64, 0);
        {
            let delete = "DELETE FROM offline WHERE seq = ?1 AND account = ?2 RETURNING length(stanza)";
            let mut delete = self.db.prepare_cached(delete)?;
            for seq in &asked.seqs {
                let deleted = delete.query_row(params![int(*seq), int(account.0)], |row| uint(row, 0));
                if let Some(length) = deleted.optional()? {
                    (messages, bytes) = (messages + 1, bytes + length);
                }
            }
        }
        if messages > 0 {
            self.run(
                "UPDATE account SET offline = offline - ?2, offline_bytes = offline_bytes - ?3 WHERE id = ?1",
                params![int(account.0), int(messages), int(bytes)],
            )?;
        }
        Ok(())
    }
}
