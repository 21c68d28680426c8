//! API keys, and the idempotency keys used with them.

use super::column::{int, ms, text, uint};
use super::domain;
use super::ending::RESERVED_MS;
use super::write::Write;
use carillon_core::model::*;
use carillon_core::ports::{Answer, Reservation};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

/// How long a request may take before another with the same key may try: it must have died.
const IN_PROGRESS_MS: u64 = 60 * 1000;

pub(super) fn create(
    write: &mut Write<'_>,
    hash: &[u8; 32],
    name: &str,
    domain: Option<DomainId>,
    scopes: Scopes,
    now: UnixMs,
) -> Result<Answer> {
    if let Some(domain) = domain
        && domain::name(write.db, domain)?.is_none()
    {
        return Ok(Answer::Missing);
    }
    let made = write.run(
        "INSERT INTO api_key (hash, name, domain, scopes, created) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO NOTHING",
        params![hash, name, domain.map(|d| d.0), scopes.bits(), int(now.0)],
    )?;
    if made == 0 {
        return Ok(Answer::Exists);
    }
    let id = KeyId(domain::number(write.db.last_insert_rowid())?);
    Ok(Answer::Key(ApiKey { id, name: name.into(), domain, scopes, created: now }))
}

pub(super) fn find(db: &Connection, hash: &[u8; 32]) -> Result<Answer> {
    let found = db
        .prepare_cached("SELECT id, name, domain, scopes, created FROM api_key WHERE hash = ?1")?
        .query_row([hash], key)
        .optional()?;
    Ok(found.map_or(Answer::Missing, Answer::Key))
}

pub(super) fn list(db: &Connection, domain: Option<DomainId>) -> Result<Answer> {
    let mut query = db.prepare_cached(
        "SELECT id, name, domain, scopes, created FROM api_key WHERE ?1 IS NULL OR domain = ?1 ORDER BY id",
    )?;
    let keys = query.query_map([domain.map(|d| d.0)], key)?.collect::<Result<_>>()?;
    Ok(Answer::Keys(keys))
}

pub(super) fn delete(write: &mut Write<'_>, id: KeyId) -> Result<Answer> {
    if write.run("DELETE FROM api_key WHERE id = ?1", [id.0])? == 0 {
        return Ok(Answer::Missing);
    }
    write.run("DELETE FROM idempotency WHERE key = ?1", [id.0])?;
    Ok(Answer::Done)
}

pub(super) fn reserve(
    write: &mut Write<'_>,
    key: KeyId,
    idempotency_key: &str,
    body_hash: &[u8; 32],
    now: UnixMs,
) -> Result<Answer> {
    let answer = match reserved(write.db, key, idempotency_key)? {
        Some(earlier) if now.0.saturating_sub(earlier.since.0) < RESERVED_MS => earlier.again(body_hash, now),
        _ => {
            write.run(
                "INSERT OR REPLACE INTO idempotency (key, idempotency_key, body_hash, since, reserved)
                 VALUES (?1, ?2, ?3, ?4, ?4)",
                params![key.0, idempotency_key, body_hash, int(now.0)],
            )?;
            return Ok(Answer::Reserved(Reservation::Go { since: now }));
        }
    };
    if let Reservation::Go { .. } = answer {
        write.run(
            "UPDATE idempotency SET reserved = ?3 WHERE key = ?1 AND idempotency_key = ?2",
            params![key.0, idempotency_key, int(now.0)],
        )?;
    }
    Ok(Answer::Reserved(answer))
}

pub(super) fn remember(
    write: &mut Write<'_>,
    key: KeyId,
    idempotency_key: &str,
    status: u16,
    response: &str,
) -> Result<Answer> {
    write.run(
        "UPDATE idempotency SET status = ?3, response = ?4 WHERE key = ?1 AND idempotency_key = ?2",
        params![key.0, idempotency_key, status, response],
    )?;
    Ok(Answer::Done)
}

pub(super) fn release(write: &mut Write<'_>, key: KeyId, idempotency_key: &str) -> Result<Answer> {
    // As if it had been reserved long ago.
    write.run(
        "UPDATE idempotency SET reserved = 0 WHERE key = ?1 AND idempotency_key = ?2",
        params![key.0, idempotency_key],
    )?;
    Ok(Answer::Done)
}

/// A reservation that is there already.
struct Reserved {
    body_hash: [u8; 32],
    since: UnixMs,
    reserved: UnixMs,
    response: Option<(u16, Box<str>)>,
}

impl Reserved {
    /// What a second request with the same key is told.
    fn again(self, body_hash: &[u8; 32], now: UnixMs) -> Reservation {
        if self.body_hash != *body_hash {
            return Reservation::Mismatch;
        }
        if let Some((status, response)) = self.response {
            return Reservation::Replay { status, response };
        }
        if now.0.saturating_sub(self.reserved.0) < IN_PROGRESS_MS {
            return Reservation::InProgress;
        }
        Reservation::Go { since: self.since }
    }
}

fn reserved(db: &Connection, key: KeyId, idempotency_key: &str) -> Result<Option<Reserved>> {
    db.prepare_cached(
        "SELECT body_hash, since, reserved, status, response FROM idempotency WHERE key = ?1 AND idempotency_key = ?2",
    )?
    .query_row(params![key.0, idempotency_key], |row| {
        let response = match row.get::<_, Option<u16>>(3)? {
            Some(status) => Some((status, text(row, 4)?)),
            None => None,
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

fn key(row: &Row<'_>) -> Result<ApiKey> {
    Ok(ApiKey {
        id: KeyId(row.get(0)?),
        name: text(row, 1)?,
        domain: row.get::<_, Option<u32>>(2)?.map(DomainId),
        scopes: Scopes::from_bits(row.get(3)?),
        created: ms(row, 4)?,
    })
}
