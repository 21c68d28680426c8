//! Chat messages kept for accounts that were away.

use super::account;
use super::column::{blob, int, ms, uint};
use super::page::Room;
use super::write::Write;
use bytes::Bytes;
use carillon_core::model::*;
use carillon_core::ports::{Answer, Page};
use rusqlite::{Connection, Result, params};

pub(super) fn store(
    write: &mut Write<'_>,
    domain: DomainId,
    local: &str,
    received: UnixMs,
    stanza: &Bytes,
    queue_max: u32,
) -> Result<Answer> {
    let Some(account) = account::find(write.db, domain, local)? else { return Ok(Answer::Missing) };
    let kept: u64 = write
        .db
        .prepare_cached("SELECT count(*) FROM offline WHERE account = ?1")?
        .query_row([int(account.0)], |row| uint(row, 0))?;
    if kept >= u64::from(queue_max) {
        return Ok(Answer::Full);
    }
    write.run(
        "INSERT INTO offline (account, received, stanza) VALUES (?1, ?2, ?3)",
        params![int(account.0), int(received.0), &stanza[..]],
    )?;
    Ok(Answer::Done)
}

pub(super) fn list(db: &Connection, domain: DomainId, local: &str, after: u64, page: Page) -> Result<Answer> {
    let (messages, more) = match account::find(db, domain, local)? {
        Some(account) => waiting(db, account, after, page)?,
        None => (Vec::new(), false),
    };
    Ok(Answer::Offline { messages, more })
}

/// The first page of an account's messages after number `after`, and whether there are more.
fn waiting(
    db: &Connection,
    account: AccountId,
    after: u64,
    page: Page,
) -> Result<(Vec<OfflineMessage>, bool)> {
    let mut query = db.prepare_cached(
        "SELECT seq, received, stanza FROM offline WHERE account = ?1 AND seq > ?2 ORDER BY seq",
    )?;
    let mut rows = query.query(params![int(account.0), int(after)])?;
    let (mut messages, mut room) = (Vec::new(), Room::new(page));
    while let Some(row) = rows.next()? {
        let stanza = blob(row, 2)?;
        if !room.takes(stanza.len()) {
            return Ok((messages, true));
        }
        let stanza = Bytes::copy_from_slice(stanza);
        messages.push(OfflineMessage { seq: uint(row, 0)?, received: ms(row, 1)?, stanza });
    }
    Ok((messages, false))
}

pub(super) fn delete(write: &mut Write<'_>, domain: DomainId, local: &str, seqs: &[u64]) -> Result<Answer> {
    let Some(account) = account::find(write.db, domain, local)? else { return Ok(Answer::Done) };
    for seq in seqs {
        write
            .run("DELETE FROM offline WHERE seq = ?1 AND account = ?2", params![int(*seq), int(account.0)])?;
    }
    Ok(Answer::Done)
}
