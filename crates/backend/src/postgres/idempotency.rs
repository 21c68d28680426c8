//! Requests that may be sent again: what their idempotency keys stand for.
//!
//! What is kept for the keys of an API key is counted in its row (`api_key.kept_bytes`), in the statements that change it.

use super::column::{blob, int, text, uint};
use super::error::{Error, Result};
use super::transaction::Transaction;
use crate::rows::idempotency::{IN_PROGRESS_MS, block_of, note};
use bytes::Bytes;
use carillon_core::model::{KeyId, UnixMs};
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::idempotency::{
    ENTRY_BYTES, NoteLines, RESERVED_MS, Release, Remember, Reservation, Reserve,
};

impl Answers<Reserve, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &Reserve) -> Result<Reservation> {
        let Reserve { key, idempotency_key, body_hash, now, .. } = asked;
        let id = i64::from(key.0);
        let earlier = reserved(self, *key, idempotency_key)?;
        if let Some(earlier) = &earlier
            && now.0.saturating_sub(earlier.since.0) < RESERVED_MS
        {
            let answer = earlier.again(body_hash, *now);
            if let Reservation::Go { .. } = answer {
                self.run(
                    "UPDATE idempotency SET reserved = $3, node = $4, epoch = $5 WHERE key = $1 AND idempotency_key = $2",
                    &[&id, idempotency_key, &int(now.0), &self.node.name, &self.node.epoch],
                )?;
            }
            return Ok(answer);
        }
        if earlier.is_some() {
            remove(self, &[id], &[idempotency_key])?;
        }
        let kept = self.db.opt("SELECT kept_bytes FROM api_key WHERE id = $1", &[&id])?;
        let kept = kept.map(|row| uint(&row, 0)).transpose()?.unwrap_or(0);
        if asked.is_full(kept, || uint(&self.db.one(OF_DOMAIN, &[&id])?, 0))? {
            return Ok(Reservation::Full);
        }
        self.run(
            "WITH counted AS (UPDATE api_key SET kept_bytes = kept_bytes + $8 WHERE id = $1)
             INSERT INTO idempotency (key, idempotency_key, body_hash, since, reserved, node, epoch)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            &[
                &id,
                idempotency_key,
                &&body_hash[..],
                &int(now.0),
                &int(now.0),
                &self.node.name,
                &self.node.epoch,
                &int(ENTRY_BYTES + idempotency_key.len() as u64),
            ],
        )?;
        Ok(Reservation::Go { since: *now })
    }
}

/// What is kept for all API keys of a key's domain, of which there are at most `keys_max`; 0 for those of the node.
const OF_DOMAIN: &str = "SELECT coalesce(sum(kept_bytes), 0)::bigint FROM api_key
    WHERE domain = (SELECT domain FROM api_key WHERE id = $1)";

impl Answers<Remember, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &Remember) -> Result<()> {
        let Remember { key, idempotency_key, response } = asked;
        self.run(
            "WITH before AS (SELECT coalesce(length(response), 0) AS bytes FROM idempotency WHERE key = $1 AND idempotency_key = $2),
                 kept AS (UPDATE idempotency SET response = $3 WHERE key = $1 AND idempotency_key = $2)
             UPDATE api_key SET kept_bytes = kept_bytes + length($3::bytea) - before.bytes FROM before WHERE id = $1",
            &[&i64::from(key.0), idempotency_key, &&response[..]],
        )?;
        Ok(())
    }
}

impl Answers<Release, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &Release) -> Result<()> {
        // As if it had been reserved long ago.
        self.run(
            "UPDATE idempotency SET reserved = 0 WHERE key = $1 AND idempotency_key = $2",
            &[&i64::from(asked.key.0), &asked.idempotency_key],
        )?;
        Ok(())
    }
}

impl Answers<NoteLines, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &NoteLines) -> Result<Vec<u64>> {
        let NoteLines { key, idempotency_key, lines, now } = asked;
        let (id, mut altered) = (i64::from(key.0), Vec::new());
        // One that is released stays so: this may come after its request was given up.
        let renewed = self.run(
            "UPDATE idempotency SET reserved = $3, node = $4, epoch = $5 WHERE key = $1 AND idempotency_key = $2 AND reserved > 0",
            &[&id, idempotency_key, &int(now.0), &self.node.name, &self.node.epoch],
        )?;
        if renewed == 0 {
            return Ok(altered);
        }
        for lines in lines.chunk_by(|a, b| block_of(a) == block_of(b)) {
            let Some(block) = block_of(&lines[0]) else { continue };
            let found = self.db.opt(
                "SELECT digests FROM idempotency_line WHERE key = $1 AND idempotency_key = $2 AND block = $3",
                &[&id, idempotency_key, &int(block)],
            )?;
            let mut digests: Vec<u8> = found.map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
            let before = digests.len();
            if note(&mut digests, lines, &mut altered) {
                let grown = digests.len() - before;
                self.run(
                    "WITH counted AS (UPDATE api_key SET kept_bytes = kept_bytes + $5 WHERE id = $1)
                     INSERT INTO idempotency_line (key, idempotency_key, block, digests) VALUES ($1, $2, $3, $4)
                     ON CONFLICT (key, idempotency_key, block) DO UPDATE SET digests = excluded.digests",
                    &[&id, idempotency_key, &int(block), &digests, &int(grown as u64)],
                )?;
            }
        }
        Ok(altered)
    }
}

/// A reservation that is there already.
struct Reserved {
    body_hash: Vec<u8>,
    since: UnixMs,
    reserved: UnixMs,
    response: Option<Bytes>,
    /// Whether the process that made it is gone.
    is_left: bool,
}

impl Reserved {
    /// What a second request with the same key is told.
    fn again(&self, body_hash: &[u8; 32], now: UnixMs) -> Reservation {
        if self.body_hash != body_hash {
            return Reservation::Mismatch;
        }
        if let Some(response) = &self.response {
            return Reservation::Replay { response: response.clone() };
        }
        if !self.is_left && now.0.saturating_sub(self.reserved.0) < IN_PROGRESS_MS {
            return Reservation::InProgress;
        }
        Reservation::Go { since: self.since }
    }
}

fn reserved(write: &Transaction<'_>, key: KeyId, idempotency_key: &str) -> Result<Option<Reserved>> {
    let found = write.db.opt(
        "SELECT body_hash, since, reserved, response,
             NOT EXISTS (SELECT FROM node n WHERE n.name = i.node AND n.epoch = i.epoch AND NOT n.dead)
         FROM idempotency i WHERE key = $1 AND idempotency_key = $2",
        &[&i64::from(key.0), &idempotency_key],
    )?;
    let Some(row) = found else { return Ok(None) };
    Ok(Some(Reserved {
        body_hash: blob(&row, 0)?.to_vec(),
        since: UnixMs(uint(&row, 1)?),
        reserved: UnixMs(uint(&row, 2)?),
        response: row.try_get::<_, Option<&[u8]>>(3)?.map(Bytes::copy_from_slice),
        is_left: row.try_get(4)?,
    }))
}

/// Forgets those that were first reserved no later than this, at most `max`.
pub(super) fn forget(write: &Transaction<'_>, before: i64, max: i64) -> Result<()> {
    let rows = write.db.query(
        "SELECT key, idempotency_key FROM idempotency WHERE since <= $1 ORDER BY since LIMIT $2",
        &[&before, &max],
    )?;
    let keys: Vec<i64> = rows.iter().map(|row| Ok(row.try_get(0)?)).collect::<Result<_>>()?;
    let names: Vec<Box<str>> = rows.iter().map(|row| text(row, 1)).collect::<Result<_>>()?;
    remove(write, &keys, &names.iter().map(|name| &**name).collect::<Vec<_>>())
}

/// Removes reservations with their lines.
fn remove(write: &Transaction<'_>, keys: &[i64], names: &[&str]) -> Result<()> {
    if keys.is_empty() {
        return Ok(());
    }
    write.run(
        "WITH gone AS (
             DELETE FROM idempotency_line l USING unnest($1::bigint[], $2::text[]) AS g (key, name)
             WHERE l.key = g.key AND l.idempotency_key = g.name RETURNING l.key, length(l.digests) AS bytes),
         sums AS (SELECT key, sum(bytes)::bigint AS bytes FROM gone GROUP BY key)
         UPDATE api_key SET kept_bytes = kept_bytes - sums.bytes FROM sums WHERE id = sums.key",
        &[&keys, &names],
    )?;
    write.run(
        "WITH gone AS (
             DELETE FROM idempotency i USING unnest($1::bigint[], $2::text[]) AS g (key, name)
             WHERE i.key = g.key AND i.idempotency_key = g.name
             RETURNING i.key, $3 + octet_length(i.idempotency_key) + coalesce(length(i.response), 0) AS bytes),
         sums AS (SELECT key, sum(bytes)::bigint AS bytes FROM gone GROUP BY key)
         UPDATE api_key SET kept_bytes = kept_bytes - sums.bytes FROM sums WHERE id = sums.key",
        &[&keys, &names, &(ENTRY_BYTES as i32)],
    )?;
    write.note_rows(keys.len());
    Ok(())
}
