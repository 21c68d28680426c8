//! Chat messages kept for accounts that were away.

use super::column::{blob, int, ms, uint};
use super::lookup;
use super::page::Room;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use bytes::Bytes;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::offline::{DeleteOffline, Offline, StoreOffline, StoreOfflineAnswer};
use carillon_core::ports::{Page, Part};
use rusqlite::{Connection, Error, Result, params};

impl Answers<StoreOffline, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &StoreOffline) -> Result<StoreOfflineAnswer> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else {
            return Ok(StoreOfflineAnswer::NoAccount);
        };
        let kept: u64 = self
            .db
            .prepare_cached("SELECT count(*) FROM offline WHERE account = ?1")?
            .query_row([int(account.0)], |row| uint(row, 0))?;
        if kept >= u64::from(asked.queue_max) {
            return Ok(StoreOfflineAnswer::Full);
        }
        self.run(
            "INSERT INTO offline (account, received, stanza) VALUES (?1, ?2, ?3)",
            params![int(account.0), int(asked.received.0), &asked.stanza[..]],
        )?;
        Ok(StoreOfflineAnswer::Stored(self.db.last_insert_rowid().cast_unsigned()))
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
        "SELECT seq, received, stanza FROM offline WHERE account = ?1 AND seq > ?2 ORDER BY seq",
    )?;
    let mut rows = query.query(params![int(account.0), int(after)])?;
    let (mut messages, mut room) = (Vec::new(), Room::new(page));
    while let Some(row) = rows.next()? {
        let stanza = blob(row, 2)?;
        if !room.takes(stanza.len()) {
            return Ok(Part { entries: messages, more: true });
        }
        let stanza = Bytes::copy_from_slice(stanza);
        messages.push(OfflineMessage { seq: uint(row, 0)?, received: ms(row, 1)?, stanza });
    }
    Ok(Part { entries: messages, more: false })
}

impl Answers<DeleteOffline, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DeleteOffline) -> Result<()> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else { return Ok(()) };
        for seq in &asked.seqs {
            self.run(
                "DELETE FROM offline WHERE seq = ?1 AND account = ?2",
                params![int(*seq), int(account.0)],
            )?;
        }
        Ok(())
    }
}
