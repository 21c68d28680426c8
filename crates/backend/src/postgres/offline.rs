//! Chat messages kept for accounts that were away.

use super::column::{blob, int, ms, uint};
use super::error::{Error, Result};
use super::lookup;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::rows::page::Room;
use bytes::Bytes;
use carillon_core::model::OfflineMessage;
use carillon_core::ports::Part;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::offline::{DeleteOffline, Offline, StoreOffline, StoreOfflineAnswer};

impl Answers<StoreOffline, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &StoreOffline) -> Result<StoreOfflineAnswer> {
        // How much the account has its row says: nothing is counted.
        let found = self.db.opt(
            "SELECT id, offline, offline_bytes FROM account WHERE domain = $1 AND local = $2",
            &[&i64::from(asked.domain.0), &asked.local],
        )?;
        let Some(row) = found else { return Ok(StoreOfflineAnswer::NoAccount) };
        let (messages, bytes, own) = (uint(&row, 1)?, uint(&row, 2)?, asked.stanza.len() as u64);
        if messages >= u64::from(asked.queue_max) || bytes + own > asked.bytes_max {
            return Ok(StoreOfflineAnswer::Full);
        }
        let kept = self.db.one(
            "WITH counted AS (UPDATE account SET offline = offline + 1, offline_bytes = offline_bytes + $4 WHERE id = $1)
             INSERT INTO offline (account, received, stanza) VALUES ($1, $2, $3) RETURNING seq",
            &[&row.try_get::<_, i64>(0)?, &int(asked.received.0), &&asked.stanza[..], &int(own)],
        )?;
        Ok(StoreOfflineAnswer::Stored(uint(&kept, 0)?))
    }
}

impl Answers<Offline, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Offline) -> Result<Part<OfflineMessage>> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else {
            return Ok(Part::default());
        };
        let rows = self.db.query(
            "SELECT seq, received, stanza FROM offline WHERE account = $1 AND seq > $2 ORDER BY seq LIMIT $3",
            &[&int(account.0), &int(asked.after), &(i64::from(asked.page.entries) + 1)],
        )?;
        let (mut entries, mut room) = (Vec::new(), Room::new(asked.page));
        for row in &rows {
            let stanza = blob(row, 2)?;
            if !room.takes(stanza.len()) {
                return Ok(Part { entries, more: true });
            }
            let stanza = Bytes::copy_from_slice(stanza);
            entries.push(OfflineMessage { seq: uint(row, 0)?, received: ms(row, 1)?, stanza });
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
        Ok(())
    }
}
