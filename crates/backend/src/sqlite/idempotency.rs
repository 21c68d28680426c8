//! Requests that may be sent again: what their idempotency keys stand for.

use super::column::{blob, int, uint};
use super::reservation::ReservationNumber;
use super::transaction::Transaction;
use crate::rows::idempotency::{IN_PROGRESS_MS, block_of, note};
use bytes::Bytes;
use carillon_core::model::{KeyId, UnixMs};
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::idempotency::{
    NoteLines, RESERVED_MS, Release, Remember, Reservation, Reserve,
};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, OptionalExtension, Result, params};

impl Answers<Reserve, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &Reserve) -> Result<Reservation> {
        let Reserve { key, idempotency_key, body_hash, now, .. } = asked;
        // The last rows may have been deleted since the store was opened: their numbers are not given again.
        let last_found = self.last_found.0;
        let earlier = reserved(self.db, *key, idempotency_key)?;
        if let Some(earlier) = &earlier
            && now.0.saturating_sub(earlier.since.0) < RESERVED_MS
        {
            let answer = earlier.again(body_hash, *now, self.last_found);
            if let Reservation::Go { .. } = answer {
                self.run(
                    "UPDATE idempotency SET reserved = ?3,
                         seq = (SELECT 1 + max(?4, coalesce(max(seq), 0)) FROM idempotency)
                     WHERE key = ?1 AND idempotency_key = ?2",
                    params![key.0, idempotency_key, int(now.0), last_found],
                )?;
            }
            return Ok(answer);
        }
        if earlier.is_some() {
            // And not replaced: what is deleted takes its lines along.
            self.run(
                "DELETE FROM idempotency WHERE key = ?1 AND idempotency_key = ?2",
                params![key.0, idempotency_key],
            )?;
        }
        if asked.is_full(kept_bytes(self.db, *key)?, || kept_bytes_of_domain(self.db, *key))? {
            return Ok(Reservation::Full);
        }
        self.run(
            "INSERT INTO idempotency (seq, key, idempotency_key, body_hash, since, reserved)
             VALUES ((SELECT 1 + max(?5, coalesce(max(seq), 0)) FROM idempotency), ?1, ?2, ?3, ?4, ?4)",
            params![key.0, idempotency_key, body_hash, int(now.0), last_found],
        )?;
        Ok(Reservation::Go { since: *now })
    }
}

impl Answers<Remember, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &Remember) -> Result<()> {
        self.run(
            "UPDATE idempotency SET response = ?3 WHERE key = ?1 AND idempotency_key = ?2",
            params![asked.key.0, asked.idempotency_key, &asked.response[..]],
        )?;
        Ok(())
    }
}

impl Answers<Release, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &Release) -> Result<()> {
        // As if it had been reserved long ago.
        self.run(
            "UPDATE idempotency SET reserved = 0 WHERE key = ?1 AND idempotency_key = ?2",
            params![asked.key.0, asked.idempotency_key],
        )?;
        Ok(())
    }
}

impl Answers<NoteLines, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &NoteLines) -> Result<Vec<u64>> {
        let NoteLines { key, idempotency_key, lines, now } = asked;
        let mut altered = Vec::new();
        // One that is released stays so: this may come after its request was given up.
        let renewed = self.run(
            "UPDATE idempotency SET reserved = ?3 WHERE key = ?1 AND idempotency_key = ?2 AND reserved > 0",
            params![key.0, idempotency_key, int(now.0)],
        )?;
        if renewed == 0 {
            return Ok(altered);
        }
        for lines in lines.chunk_by(|a, b| block_of(a) == block_of(b)) {
            let Some(block) = block_of(&lines[0]) else { continue };
            let mut digests = self
                .db
                .prepare_cached(
                    "SELECT digests FROM idempotency_line WHERE key = ?1 AND idempotency_key = ?2 AND block = ?3",
                )?
                .query_row(params![key.0, idempotency_key, int(block)], |row| row.get(0))
                .optional()?
                .unwrap_or_default();
            if note(&mut digests, lines, &mut altered) {
                self.run(
                    "INSERT INTO idempotency_line (key, idempotency_key, block, digests) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT DO UPDATE SET digests = excluded.digests",
                    params![key.0, idempotency_key, int(block), digests],
                )?;
            }
        }
        Ok(altered)
    }
}

/// A reservation that is there already.
struct Reserved {
    number: ReservationNumber,
    body_hash: [u8; 32],
    since: UnixMs,
    reserved: UnixMs,
    response: Option<Bytes>,
}

impl Reserved {
    /// What a second request with the same key is told. `last_found`: of the reservations up to this one, whoever made them
    /// is gone, since the file has one owner at a time.
    fn again(&self, body_hash: &[u8; 32], now: UnixMs, last_found: ReservationNumber) -> Reservation {
        if self.body_hash != *body_hash {
            return Reservation::Mismatch;
        }
        if let Some(response) = &self.response {
            return Reservation::Replay { response: response.clone() };
        }
        if self.number > last_found && now.0.saturating_sub(self.reserved.0) < IN_PROGRESS_MS {
            return Reservation::InProgress;
        }
        Reservation::Go { since: self.since }
    }
}

/// What is kept for the idempotency keys of an API key: triggers keep the sum.
fn kept_bytes(db: &Connection, key: KeyId) -> Result<u64> {
    let kept = db
        .prepare_cached("SELECT kept_bytes FROM api_key WHERE id = ?1")?
        .query_row([key.0], |row| uint(row, 0));
    Ok(kept.optional()?.unwrap_or(0))
}

/// The same for all API keys of its domain, of which there are at most `keys_max`; 0 for those of the node.
fn kept_bytes_of_domain(db: &Connection, key: KeyId) -> Result<u64> {
    db.prepare_cached(
        "SELECT coalesce(sum(kept_bytes), 0) FROM api_key
         WHERE domain IS NOT NULL AND domain = (SELECT domain FROM api_key WHERE id = ?1)",
    )?
    .query_row([key.0], |row| uint(row, 0))
}

fn reserved(db: &Connection, key: KeyId, idempotency_key: &str) -> Result<Option<Reserved>> {
    db.prepare_cached(
        "SELECT body_hash, since, reserved, response, seq FROM idempotency WHERE key = ?1 AND idempotency_key = ?2",
    )?
    .query_row(params![key.0, idempotency_key], |row| {
        let response = match row.get_ref(3)? {
            ValueRef::Null => None,
            _ => Some(Bytes::copy_from_slice(blob(row, 3)?)),
        };
        Ok(Reserved {
            number: ReservationNumber(row.get(4)?),
            body_hash: row.get(0)?,
            since: UnixMs(uint(row, 1)?),
            reserved: UnixMs(uint(row, 2)?),
            response,
        })
    })
    .optional()
}
