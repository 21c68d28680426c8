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

/// The number of a reservation: those that are made later have a higher one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReservationNumber(i64);

impl ReservationNumber {
    /// The last of them; 0 if there is none.
    pub(super) fn last(db: &Connection) -> Result<ReservationNumber> {
        let last = db.query_row("SELECT coalesce(max(seq), 0) FROM idempotency", [], |row| row.get(0))?;
        Ok(ReservationNumber(last))
    }
}

impl Answers<Reserve, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &Reserve) -> Result<Reservation> {
        let Reserve { key, idempotency_key, body_hash, now } = asked;
        let answer = match reserved(self.db, *key, idempotency_key)? {
            Some(earlier) if now.0.saturating_sub(earlier.since.0) < RESERVED_MS => {
                earlier.again(body_hash, *now, self.last_found)
            }
            _ => Reservation::Go { since: *now },
        };
        if let Reservation::Go { since } = answer {
            // The last rows may have been deleted since the store was opened: their numbers are not given again.
            self.run(
                "INSERT OR REPLACE INTO idempotency (seq, key, idempotency_key, body_hash, since, reserved)
                 VALUES ((SELECT 1 + max(?6, coalesce(max(seq), 0)) FROM idempotency), ?1, ?2, ?3, ?4, ?5)",
                params![key.0, idempotency_key, body_hash, int(since.0), int(now.0), self.last_found.0],
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
    number: ReservationNumber,
    body_hash: [u8; 32],
    since: UnixMs,
    reserved: UnixMs,
    response: Option<Bytes>,
}

impl Reserved {
    /// What a second request with the same key is told. `last_found`: of the reservations up to this one, whoever made them
    /// is gone, since the file has one owner at a time.
    fn again(self, body_hash: &[u8; 32], now: UnixMs, last_found: ReservationNumber) -> Reservation {
        if self.body_hash != *body_hash {
            return Reservation::Mismatch;
        }
        if let Some(response) = self.response {
            return Reservation::Replay { response };
        }
        if self.number > last_found && now.0.saturating_sub(self.reserved.0) < IN_PROGRESS_MS {
            return Reservation::InProgress;
        }
        Reservation::Go { since: self.since }
    }
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
