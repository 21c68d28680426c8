//! Chat messages kept for accounts that were away.

use super::column::{blob, int, jid, ms, opt_int, opt_ms, uint};
use super::error::{Error, Result};
use super::lookup;
use super::push;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::rows::page::Room;
use crate::rows::push::Tells;
use bytes::Bytes;
use carillon_core::model::{AccountId, ExpiredMessage, OfflineMessage};
use carillon_core::ports::Part;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::offline::{
    DeleteOffline, ExpiredOffline, Offline, StoreOffline, StoreOfflineAnswer,
};
use tokio_postgres::Row;

impl Answers<StoreOffline, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &StoreOffline) -> Result<StoreOfflineAnswer> {
        // How much the account has its row says: nothing is counted.
        let found = self.db.opt(
            "SELECT id, offline, offline_bytes, registrations FROM account WHERE domain = $1 AND local = $2",
            &[&i64::from(asked.domain.0), &asked.local],
        )?;
        let Some(row) = found else { return Ok(StoreOfflineAnswer::NoAccount) };
        let (messages, bytes, own) = (uint(&row, 1)?, uint(&row, 2)?, asked.stanza.len() as u64);
        if messages >= u64::from(asked.queue_max) || bytes + own > asked.bytes_max {
            return Ok(StoreOfflineAnswer::Full);
        }
        let kept = self.returning_one(
            "WITH counted AS (UPDATE account SET offline = offline + 1, offline_bytes = offline_bytes + $4 WHERE id = $1)
             INSERT INTO offline (account, received, stanza, expires) VALUES ($1, $2, $3, $5) RETURNING seq",
            &[&row.try_get::<_, i64>(0)?, &int(asked.received.0), &&asked.stanza[..], &int(own), &opt_int(asked.expires)],
        )?;
        let (account, seq) = (AccountId(uint(&row, 0)?), uint(&kept, 0)?);
        if let Some(wake) = &asked.wake
            && uint(&row, 3)? > 0
        {
            push::wake(self, account, wake, Tells::Message(seq))?;
        }
        Ok(StoreOfflineAnswer::Stored(seq))
    }
}

impl Answers<Offline, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Offline) -> Result<Part<OfflineMessage>> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else {
            return Ok(Part::default());
        };
        let rows = self.db.query(
            "SELECT seq, received, stanza, expires FROM offline WHERE account = $1 AND seq > $2 ORDER BY seq LIMIT $3",
            &[&int(account.0), &int(asked.after), &(i64::from(asked.page.entries) + 1)],
        )?;
        let (mut entries, mut room) = (Vec::new(), Room::new(asked.page));
        for row in &rows {
            if !room.takes(blob(row, 2)?.len()) {
                return Ok(Part { entries, more: true });
            }
            entries.push(message(row)?);
        }
        Ok(Part { entries, more: false })
    }
}

/// A message of the columns `seq`, `received`, `stanza` and `expires`, with which a row begins.
fn message(row: &Row) -> Result<OfflineMessage> {
    let stanza = Bytes::copy_from_slice(blob(row, 2)?);
    Ok(OfflineMessage { seq: uint(row, 0)?, received: ms(row, 1)?, stanza, expires: opt_ms(row, 3)? })
}

impl Answers<ExpiredOffline, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ExpiredOffline) -> Result<Part<ExpiredMessage>> {
        let rows = self.db.query(
            "SELECT o.seq, o.received, o.stanza, o.expires, a.local, d.name
             FROM offline o JOIN account a ON a.id = o.account JOIN domain d ON d.id = a.domain
             WHERE o.expires <= $1 ORDER BY o.expires, o.seq LIMIT $2",
            &[&int(asked.now.0), &(i64::from(asked.page.entries) + 1)],
        )?;
        let (mut entries, mut room) = (Vec::new(), Room::new(asked.page));
        for row in &rows {
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
        let seqs: Vec<i64> = asked.seqs.iter().map(|seq| int(*seq)).collect();
        self.run(
            "WITH gone AS (DELETE FROM offline WHERE account = $1 AND seq = ANY ($2::bigint[]) RETURNING length(stanza) AS bytes)
             UPDATE account SET offline = offline - (SELECT count(*) FROM gone),
                 offline_bytes = offline_bytes - (SELECT coalesce(sum(bytes), 0) FROM gone)::bigint
             WHERE id = $1 AND EXISTS (SELECT 1 FROM gone)",
            &[&int(account.0), &seqs],
        )?;
        self.note_rows(seqs.len());
        Ok(())
    }
}
