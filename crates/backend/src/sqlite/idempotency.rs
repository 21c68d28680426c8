//! Requests that may be sent again: what their idempotency keys stand for.

use super::column::{blob, int, uint};
use super::transaction::Transaction;
use bytes::Bytes;
use carillon_core::model::{KeyId, UnixMs};
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::idempotency::{RESERVED_MS, Release, Remember, Reservation, Reserve};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, OptionalExtension, Result, params};

/// How long a request may take before another with the same key may try: it must have died.
const IN_PROGRESS_MS: u64 = 60 * 1000;

impl Answers<Reserve, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &Reserve) -> Result<Reservation> {
        let Reserve { key, idempotency_key, body_hash, now } = asked;
        let answer = match reserved(self.db, *key, idempotency_key)? {
            Some(earlier) if now.0.saturating_sub(earlier.since.0) < RESERVED_MS => {
                earlier.again(body_hash, *now)
            }
            _ => {
                self.run(
                    "INSERT OR REPLACE INTO idempotency (key, idempotency_key, body_hash, since, reserved)
                     VALUES (?1, ?2, ?3, ?4, ?4)",
                    params![key.0, idempotency_key, body_hash, int(now.0)],
                )?;
                return Ok(Reservation::Go { since: *now });
            }
        };
        if let Reservation::Go { .. } = answer {
            self.run(
                "UPDATE idempotency SET reserved = ?3 WHERE key = ?1 AND idempotency_key = ?2",
                params![key.0, idempotency_key, int(now.0)],
            )?;
        }
        Ok(answer)
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

/// A reservation that is there already.
struct Reserved {
    body_hash: [u8; 32],
    since: UnixMs,
    reserved: UnixMs,
    response: Option<Bytes>,
}

impl Reserved {
    /// What a second request with the same key is told.
    fn again(self, body_hash: &[u8; 32], now: UnixMs) -> Reservation {
        if self.body_hash != *body_hash {
            return Reservation::Mismatch;
        }
        if let Some(response) = self.response {
            return Reservation::Replay { response };
        }
        if now.0.saturating_sub(self.reserved.0) < IN_PROGRESS_MS {
            return Reservation::InProgress;
        }
        Reservation::Go { since: self.since }
    }
}

fn reserved(db: &Connection, key: KeyId, idempotency_key: &str) -> Result<Option<Reserved>> {
    db.prepare_cached(
        "SELECT body_hash, since, reserved, response FROM idempotency WHERE key = ?1 AND idempotency_key = ?2",
    )?
    .query_row(params![key.0, idempotency_key], |row| {
        let response = match row.get_ref(3)? {
            ValueRef::Null => None,
            _ => Some(Bytes::copy_from_slice(blob(row, 3)?)),
        };
        Ok(Reserved {
            body_hash: row.get(0)?,
            since: UnixMs(uint(row, 1)?),
            reserved: UnixMs(uint(row, 2)?),
            response,
        })
    })
    .optional()
}
