//! Removing what is not kept any longer.

use super::super::column::{int, ms, uint};
use super::super::lookup;
use super::super::transaction::Transaction;
use super::inbox;
use carillon_core::model::*;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::archive::{EraseArchive, SweepArchives, SweepArchivesAnswer};
use rusqlite::{Error, Result, Row, params};
use std::collections::BTreeSet;

/// Archives that are looked at at once.
const ARCHIVES_MAX: usize = 256;

impl Answers<EraseArchive, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &EraseArchive) -> Result<Result<(), Missing>> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else {
            return Ok(Err(Missing));
        };
        self.run(
            "INSERT INTO archive (account, erased) VALUES (?1, ?2) ON CONFLICT (account) DO UPDATE SET erased = ?2",
            params![int(account.0), int(self.newest_message.seq)],
        )?;
        inbox::erased_all(self, int(account.0))?;
        Ok(Ok(()))
    }
}

/// An archive, and how much of it is kept.
struct Archive {
    account: i64,
    messages: u64,
    bytes: u64,
    erased: u64,
    /// None where the account is gone: nothing is.
    bounds: Option<ArchiveBounds>,
}

/// The oldest message of an archive.
struct Oldest {
    seq: u64,
    peer: u32,
    /// Its time and its bytes, where it is there.
    message: Option<(UnixMs, u64)>,
    /// Whether it is in nobody else's archive.
    is_last: bool,
}

impl Answers<SweepArchives, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &SweepArchives) -> Result<SweepArchivesAnswer> {
        // What is not in the tables is not found: a round begins when it is.
        if asked.after == AccountId(0) && self.has_tail {
            self.wants_fold = true;
            return Ok(SweepArchivesAnswer { removed: 0, next: Some(AccountId(0)) });
        }
        let archives = archives(self, asked.after)?;
        let is_end = archives.len() < ARCHIVES_MAX;
        let mut removed = 0;
        for archive in &archives {
            let max = asked.max - removed;
            removed += self.overwriting(|write| sweep(write, archive, asked.now, max))?;
            if removed == asked.max {
                // There may be more of this one.
                return Ok(SweepArchivesAnswer {
                    removed,
                    next: Some(AccountId(archive.account as u64 - 1)),
                });
            }
        }
        let last = archives.last().map(|archive| AccountId(archive.account as u64));
        Ok(SweepArchivesAnswer { removed, next: last.filter(|_| !is_end) })
    }
}

fn archives(write: &Transaction<'_>, after: AccountId) -> Result<Vec<Archive>> {
    let mut query = write.db.prepare_cached(
        "SELECT r.account, r.messages, r.bytes, r.erased, a.id IS NOT NULL, d.archive_days, d.archive_messages_max,
         d.archive_bytes_max FROM archive r LEFT JOIN account a ON a.id = r.account LEFT JOIN domain d ON d.id = a.domain
         WHERE r.account > ?1 ORDER BY r.account LIMIT ?2",
    )?;
    let archive = |row: &Row<'_>| {
        let bounds = match row.get(4)? {
            true => Some(ArchiveBounds { days: row.get(5)?, messages: row.get(6)?, bytes: uint(row, 7)? }),
            false => None,
        };
        let [messages, bytes, erased] = [uint(row, 1)?, uint(row, 2)?, uint(row, 3)?];
        Ok(Archive { account: row.get(0)?, messages, bytes, erased, bounds })
    };
    query.query_map(params![int(after.0), ARCHIVES_MAX as i64], archive)?.collect()
}

/// Removes the oldest messages of an archive that are not kept, at most `max`; how many.
fn sweep(write: &Transaction<'_>, archive: &Archive, now: UnixMs, max: u32) -> Result<u32> {
    let (mut removed, mut messages, mut bytes) = (0, archive.messages, archive.bytes);
    let mut peers = BTreeSet::new();
    let cutoff = archive.bounds.map_or(UnixMs(0), |bounds| bounds.cutoff(now));
    for oldest in oldest(write, archive.account, max)? {
        let is_kept = match (archive.bounds, oldest.message) {
            (Some(bounds), Some((received, _))) => {
                oldest.seq > archive.erased && received >= cutoff && !bounds.are_exceeded(messages, bytes)
            }
            _ => false,
        };
        if is_kept {
            break;
        }
        remove(write, archive.account, &oldest)?;
        peers.insert(oldest.peer);
        removed += 1;
        messages = messages.saturating_sub(1);
        bytes = bytes.saturating_sub(oldest.message.map_or(0, |(_, bytes)| bytes));
    }
    for peer in peers {
        inbox::swept(write, archive.account, peer)?;
    }
    if removed > 0 {
        write.run(
            "UPDATE archive SET messages = ?2, bytes = ?3 WHERE account = ?1",
            params![archive.account, int(messages), int(bytes)],
        )?;
    }
    if archive.bounds.is_none() && removed < max {
        // What is not folded yet makes a new one.
        write.run("DELETE FROM archive_peer WHERE account = ?1", [archive.account])?;
        write.run("DELETE FROM inbox WHERE account = ?1", [archive.account])?;
        write.run("DELETE FROM archive WHERE account = ?1", [archive.account])?;
    }
    Ok(removed)
}

fn oldest(write: &Transaction<'_>, account: i64, max: u32) -> Result<Vec<Oldest>> {
    let mut query = write.db.prepare_cached(
        "SELECT e.seq, e.peer, m.received, length(m.stanza), m.sender IS NULL OR m.recipient IS NULL OR m.sender = m.recipient
         FROM archive_entry e LEFT JOIN archive_message m ON m.seq = e.seq WHERE e.account = ?1 ORDER BY e.seq LIMIT ?2",
    )?;
    let oldest = |row: &Row<'_>| {
        let message = match row.get_ref(2)? {
            rusqlite::types::ValueRef::Null => None,
            _ => Some((ms(row, 2)?, uint(row, 3)?)),
        };
        Ok(Oldest {
            seq: uint(row, 0)?,
            peer: row.get(1)?,
            message,
            is_last: row.get::<_, Option<bool>>(4)?.unwrap_or(true),
        })
    };
    query.query_map(params![account, max], oldest)?.collect()
}

fn remove(write: &Transaction<'_>, account: i64, message: &Oldest) -> Result<()> {
    let seq = int(message.seq);
    write.run("DELETE FROM archive_entry WHERE account = ?1 AND seq = ?2", params![account, seq])?;
    write.run(
        "DELETE FROM archive_conversation WHERE account = ?1 AND peer = ?2 AND seq = ?3",
        params![account, message.peer, seq],
    )?;
    if message.is_last && message.seq < write.newest_message.seq {
        write.run("DELETE FROM archive_message WHERE seq = ?1", [seq])?;
    } else if message.is_last {
        // The newest of all stays, or its number would be given again; nothing of what it said does.
        let emptied =
            "UPDATE archive_message SET sender = NULL, recipient = NULL, stanza = X'' WHERE seq = ?1";
        write.run(emptied, [seq])?;
    } else {
        let gone = "UPDATE archive_message SET sender = nullif(sender, ?2), recipient = nullif(recipient, ?2) WHERE seq = ?1";
        write.run(gone, params![seq, account])?;
    }
    Ok(())
}
