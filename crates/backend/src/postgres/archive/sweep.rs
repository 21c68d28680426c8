//! Removing what is not kept any longer.

use super::super::column::{int, number, opt_ms, uint};
use super::super::error::{Error, Result};
use super::super::lookup;
use super::super::transaction::Transaction;
use super::inbox;
use carillon_core::model::*;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::archive::{EraseArchive, SweepArchives, SweepArchivesAnswer};
use std::collections::BTreeSet;
use tokio_postgres::Row;

/// Archives that are looked at at once.
const ARCHIVES_MAX: i64 = 256;

impl Answers<EraseArchive, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &EraseArchive) -> Result<std::result::Result<(), Missing>> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else {
            return Ok(Err(Missing));
        };
        let (id, newest) = (int(account.0), int(super::newest(self.db)?));
        self.run(
            "INSERT INTO archive (account, erased) VALUES ($1, $2) ON CONFLICT (account) DO UPDATE SET erased = $2",
            &[&id, &newest],
        )?;
        inbox::erased_all(self, id)?;
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
    seq: i64,
    peer: i64,
    /// Its time and its bytes, where it is there.
    message: Option<(UnixMs, u64)>,
    /// Whether it is in nobody else's archive.
    is_last: bool,
}

impl Answers<SweepArchives, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &SweepArchives) -> Result<SweepArchivesAnswer> {
        let archives = archives(self, asked.after)?;
        let is_end = (archives.len() as i64) < ARCHIVES_MAX;
        let mut removed = 0;
        for archive in &archives {
            removed += sweep(self, archive, asked.now, asked.max - removed)?;
            if removed == asked.max {
                // There may be more of this one.
                let next = Some(AccountId(archive.account as u64 - 1));
                return Ok(SweepArchivesAnswer { removed, next });
            }
        }
        let last = archives.last().map(|archive| AccountId(archive.account as u64));
        Ok(SweepArchivesAnswer { removed, next: last.filter(|_| !is_end) })
    }
}

fn archives(write: &Transaction<'_>, after: AccountId) -> Result<Vec<Archive>> {
    let rows = write.db.query(
        "SELECT r.account, r.messages, r.bytes, r.erased, a.id IS NOT NULL, coalesce(d.archive_days, 0),
             coalesce(d.archive_messages_max, 0), coalesce(d.archive_bytes_max, 0)
         FROM archive r LEFT JOIN account a ON a.id = r.account LEFT JOIN domain d ON d.id = a.domain
         WHERE r.account > $1 ORDER BY r.account LIMIT $2",
        &[&int(after.0), &ARCHIVES_MAX],
    )?;
    let archive = |row: &Row| {
        let bounds = ArchiveBounds { days: number(row, 5)?, messages: number(row, 6)?, bytes: uint(row, 7)? };
        let bounds = row.try_get::<_, bool>(4)?.then_some(bounds);
        let [messages, bytes, erased] = [uint(row, 1)?, uint(row, 2)?, uint(row, 3)?];
        Ok(Archive { account: row.try_get(0)?, messages, bytes, erased, bounds })
    };
    rows.iter().map(archive).collect()
}

/// Removes the oldest messages of an archive that are not kept, at most `max`; how many.
fn sweep(write: &Transaction<'_>, archive: &Archive, now: UnixMs, max: u32) -> Result<u32> {
    let (mut removed, mut messages, mut bytes) = (0, archive.messages, archive.bytes);
    let mut gone = Vec::new();
    let cutoff = archive.bounds.map_or(UnixMs(0), |bounds| bounds.cutoff(now));
    for oldest in oldest(write, archive.account, max)? {
        let is_kept = match (archive.bounds, oldest.message) {
            (Some(bounds), Some((received, _))) => {
                oldest.seq.unsigned_abs() > archive.erased
                    && received >= cutoff
                    && !bounds.are_exceeded(messages, bytes)
            }
            _ => false,
        };
        if is_kept {
            break;
        }
        removed += 1;
        messages = messages.saturating_sub(1);
        bytes = bytes.saturating_sub(oldest.message.map_or(0, |(_, bytes)| bytes));
        gone.push(oldest);
    }
    remove(write, archive.account, &gone)?;
    for peer in gone.iter().map(|message| message.peer).collect::<BTreeSet<_>>() {
        inbox::swept(write, archive.account, peer)?;
    }
    if removed > 0 {
        write.run(
            "UPDATE archive SET messages = $2, bytes = $3 WHERE account = $1",
            &[&archive.account, &int(messages), &int(bytes)],
        )?;
    }
    if archive.bounds.is_none() && removed < max {
        write.run("DELETE FROM archive_peer WHERE account = $1", &[&archive.account])?;
        write.run("DELETE FROM inbox WHERE account = $1", &[&archive.account])?;
        write.run("DELETE FROM archive WHERE account = $1", &[&archive.account])?;
    }
    Ok(removed)
}

fn oldest(write: &Transaction<'_>, account: i64, max: u32) -> Result<Vec<Oldest>> {
    let rows = write.db.query(
        "SELECT e.seq, e.peer, m.received, coalesce(length(m.stanza), 0)::bigint,
             coalesce(m.sender IS NULL OR m.recipient IS NULL OR m.sender = m.recipient, true)
         FROM archive_entry e LEFT JOIN archive_message m ON m.seq = e.seq WHERE e.account = $1 ORDER BY e.seq LIMIT $2",
        &[&account, &i64::from(max)],
    )?;
    let oldest = |row: &Row| {
        let bytes = uint(row, 3)?;
        let message = opt_ms(row, 2)?.map(|received| (received, bytes));
        Ok(Oldest { seq: row.try_get(0)?, peer: row.try_get(1)?, message, is_last: row.try_get(4)? })
    };
    rows.iter().map(oldest).collect()
}

/// Removes messages from an archive, and altogether those that are in nobody else's.
fn remove(write: &Transaction<'_>, account: i64, gone: &[Oldest]) -> Result<()> {
    if gone.is_empty() {
        return Ok(());
    }
    let seqs =
        |is_last| gone.iter().filter(move |message| message.is_last == is_last).map(|message| message.seq);
    let (unshared, shared): (Vec<i64>, Vec<i64>) = (seqs(true).collect(), seqs(false).collect());
    write.run(
        "WITH gone AS (DELETE FROM archive_entry WHERE account = $1 AND seq = ANY ($2::bigint[] || $3::bigint[])),
             unshared AS (DELETE FROM archive_message WHERE seq = ANY ($2::bigint[]))
         UPDATE archive_message SET sender = nullif(sender, $1), recipient = nullif(recipient, $1)
         WHERE seq = ANY ($3::bigint[])",
        &[&account, &unshared, &shared],
    )?;
    Ok(())
}
