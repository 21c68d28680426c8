//! How conversations stand.
//!
//! The table says it as of the fold, with what clients have changed; the messages behind the fold are added when it is read (`listed`). While these are
//! still being read after a start, a marker finds nothing.

use super::super::archive_tail::TailEntry;
use super::super::column::{code, int, ms, uint};
use super::super::lookup;
use super::super::transaction::Transaction;
use super::rooms;
use crate::rows::code::Code;
use carillon_core::model::*;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::inbox::{ChangeConversation, Emptied, EmptyBin};
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};
use std::collections::{HashMap, HashSet};

/// Rows of a conversation that are looked at to count what is unread.
const ROWS_MAX: i64 = 4 * UNREAD_MAX as i64;

/// Rows that are looked at to find the message that was seen: each such message costs that much.
const SEARCHED_MAX: i64 = 512;

impl Answers<ChangeConversation, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ChangeConversation) -> Result<Result<Conversation, Missing>> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else {
            return Ok(Err(Missing));
        };
        let account = int(account.0);
        let domain = lookup::domain_name(self.db, asked.domain)?;
        let of_room = RoomKind::of_host(asked.with.domain()).filter(|(_, of)| Some(*of) == domain.as_deref());
        if let (Some((kind, domain)), Some(name)) = (of_room, asked.with.local()) {
            let member = format!("{}@{domain}", asked.local);
            return rooms::change(self, asked.domain, (kind, name), &member, &asked.change);
        }
        let peer = self
            .db
            .prepare_cached("SELECT id FROM archive_peer WHERE account = ?1 AND jid = ?2")?
            .query_row(params![account, asked.with.as_str()], |row| row.get(0));
        let Some(peer) = peer.optional()? else { return Ok(Err(Missing)) };
        if !standing(self, account, peer)?.is_none_or(|state| state.is_there()) {
            return Ok(Err(Missing));
        }
        let mut noted = row(self.db, account, peer)?;
        noted.change(&asked.change, ArchiveId(self.newest_message.seq));
        noted.unread = count(self.db, account, peer, noted.read)?;
        put(self, account, peer, &noted)?;
        Ok(Ok(standing(self, account, peer)?.unwrap_or(noted)))
    }
}

impl Answers<EmptyBin, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &EmptyBin) -> Result<Result<Emptied, Missing>> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else {
            return Ok(Err(Missing));
        };
        let account = int(account.0);
        let newest = ArchiveId(self.newest_message.seq);
        let mut emptied = 0;
        let binned = binned(self.db, account, asked.max)?;
        let mut more = binned.len() == asked.max as usize;
        let mut standing: HashMap<u32, Conversation> = binned.iter().copied().collect();
        let after = self.fold.of(account).max(erased(self.db, account)?);
        // All of them in one pass: there may be many messages behind the fold.
        let behind_fold = self.tail.now(account, after, |peer| standing.contains_key(&peer));
        for entry in behind_fold.into_iter().flatten() {
            standing.entry(entry.peer).or_default().add(ArchiveId(entry.seq), entry.kind());
        }
        for (peer, mut noted) in binned {
            // A message has taken it out of the bin: it need not be looked at again.
            let is_back = standing.get(&peer).is_some_and(|state| state.folder() != Folder::Bin);
            if is_back || noted.folder() != Folder::Bin {
                noted.folder = Folder::Inbox;
                put(self, account, peer, &noted)?;
                continue;
            }
            (noted.folder, noted.moved) = (Folder::Nowhere, newest);
            put(self, account, peer, &noted)?;
            emptied += 1;
        }
        if let Some(domain) = lookup::domain_name(self.db, asked.domain)? {
            let of_rooms = rooms::empty_bin(self, &format!("{}@{domain}", asked.local), asked.max)?;
            emptied += of_rooms.conversations;
            more |= of_rooms.more;
        }
        Ok(Ok(Emptied { conversations: emptied, more }))
    }
}

/// An account has seen the message with this id. Which one that is is looked for among the newest that are unread.
pub(super) fn displayed(write: &Transaction<'_>, account: i64, peer: u32, id: &str) -> Result<()> {
    let Some(behind_fold) = behind_fold(write, account, peer)? else { return Ok(()) };
    let mut state = row(write.db, account, peer)?;
    behind_fold.iter().for_each(|entry| state.add(ArchiveId(entry.seq), entry.kind()));
    let read = state.read.0.max(erased(write.db, account)?);
    let unread = |(seq, kind): &(u64, EntryKind)| *seq > read && *kind == EntryKind::Received;
    let mut newest: Vec<u64> = behind_fold
        .iter()
        .rev()
        .map(|entry| (entry.seq, entry.kind()))
        .filter(unread)
        .map(|(seq, _)| seq)
        .collect();
    let behind_fold = newest.len();
    let mut query = write.db.prepare_cached(
        "SELECT seq, kind FROM archive_conversation WHERE account = ?1 AND peer = ?2 AND seq > ?3 ORDER BY seq DESC LIMIT ?4",
    )?;
    let rows = query.query_map(params![account, peer, int(read), SEARCHED_MAX], |row| {
        Ok((uint(row, 0)?, code(row, 1)?))
    })?;
    for found in rows {
        newest.extend(Some(found?).filter(unread).map(|(seq, _)| seq));
        if newest.len() >= MARKED_MAX {
            break;
        }
    }
    for (place, seq) in newest.into_iter().take(MARKED_MAX).enumerate() {
        let is_it = write
            .db
            .prepare_cached("SELECT stanza FROM archive_message WHERE seq = ?1")?
            .query_row([int(seq)], |row| Ok(has_id(super::super::column::blob(row, 0)?, id)));
        if is_it.optional()? == Some(true) {
            let mut noted = row(write.db, account, peer)?;
            noted.read_to(ArchiveId(seq));
            // In the tables are those before it in the list that are not behind the fold.
            noted.unread = place.saturating_sub(behind_fold) as u32;
            return put(write, account, peer, &noted);
        }
    }
    Ok(())
}

/// Messages of an account have entered their tables: in the order of the conversations, and in each in theirs.
pub(super) fn fold(write: &Transaction<'_>, account: i64, entries: &[TailEntry]) -> Result<()> {
    let erased = erased(write.db, account)?;
    for entries in entries.chunk_by(|a, b| a.peer == b.peer) {
        let Some(peer) = entries.first().map(|entry| entry.peer) else { continue };
        let mut noted = row(write.db, account, peer)?;
        for entry in entries.iter().filter(|entry| entry.seq > erased) {
            noted.add(ArchiveId(entry.seq), entry.kind());
        }
        put(write, account, peer, &noted)?;
    }
    Ok(())
}

/// Messages of a conversation were removed from the tables, the oldest first. Nothing says any more with whom it was once nothing is left of it, unless
/// it was muted: the account would wonder why it is not.
pub(super) fn swept(write: &Transaction<'_>, account: i64, peer: u32) -> Result<()> {
    let mut noted = row(write.db, account, peer)?;
    // Unknown while those behind the fold are being read after a start.
    let behind_fold = write.tail.now(account, write.fold.of(account), |other| other == peer);
    let has_none_behind = behind_fold.is_some_and(|entries| entries.is_empty());
    if noted.muted == UnixMs(0) && has_none_behind && is_empty(write, account, peer)? {
        write.run("DELETE FROM inbox WHERE account = ?1 AND peer = ?2", params![account, peer])?;
        write.run("DELETE FROM archive_peer WHERE id = ?1", [peer])?;
        return Ok(());
    }
    let is_there = write
        .db
        .prepare_cached("SELECT 1 FROM archive_conversation WHERE account = ?1 AND peer = ?2 AND seq = ?3")?
        .exists(params![account, peer, int(noted.last.0)])?;
    if !is_there {
        noted.last = ArchiveId(0);
    }
    noted.unread = count(write.db, account, peer, noted.read)?;
    put(write, account, peer, &noted)
}

/// An archive was erased: what is noted of its conversations goes, and with whom those were that had no message any more. Of the others the sweep says
/// it.
pub(super) fn erased_all(write: &Transaction<'_>, account: i64) -> Result<()> {
    if let Some(behind_fold) = write.tail.now(account, write.fold.of(account), |_| true) {
        let of_this = write.archived.iter().filter(|entry| entry.0 == account).map(|entry| entry.1.peer);
        let coming: HashSet<u32> = behind_fold.iter().map(|entry| entry.peer).chain(of_this).collect();
        let coming = format!("{:?}", coming.iter().collect::<Vec<_>>());
        write.run(
            "DELETE FROM archive_peer WHERE id IN (SELECT peer FROM inbox WHERE account = ?1 AND last = 0)
             AND id NOT IN (SELECT value FROM json_each(?2))
             AND NOT EXISTS (SELECT 1 FROM archive_conversation c WHERE c.account = ?1 AND c.peer = archive_peer.id)",
            params![account, coming],
        )?;
    }
    write.run("DELETE FROM inbox WHERE account = ?1", [account])?;
    Ok(())
}

/// Whether a conversation that has no message behind the fold has none in the tables, nor one of this transaction.
fn is_empty(write: &Transaction<'_>, account: i64, peer: u32) -> Result<bool> {
    let mut messages = write
        .db
        .prepare_cached("SELECT 1 FROM archive_conversation WHERE account = ?1 AND peer = ?2 LIMIT 1")?;
    let is_its = |entry: &(i64, TailEntry)| entry.0 == account && entry.1.peer == peer;
    Ok(!messages.exists(params![account, peer])? && !write.archived.iter().any(is_its))
}

/// How a conversation stands, with the messages behind the fold that are committed. Unknown while these are still being read after a start.
fn standing(write: &Transaction<'_>, account: i64, peer: u32) -> Result<Option<Conversation>> {
    let mut state = row(write.db, account, peer)?;
    let Some(entries) = behind_fold(write, account, peer)? else { return Ok(None) };
    entries.iter().for_each(|entry| state.add(ArchiveId(entry.seq), entry.kind()));
    Ok(Some(state))
}

/// The committed messages of a conversation that are not in the tables.
fn behind_fold(write: &Transaction<'_>, account: i64, peer: u32) -> Result<Option<Vec<TailEntry>>> {
    let after = write.fold.of(account).max(erased(write.db, account)?);
    Ok(write.tail.now(account, after, |other| other == peer))
}

/// Up to which message an archive was erased.
pub(super) fn erased(db: &Connection, account: i64) -> Result<u64> {
    let erased = db
        .prepare_cached("SELECT erased FROM archive WHERE account = ?1")?
        .query_row([account], |row| uint(row, 0));
    Ok(erased.optional()?.unwrap_or(0))
}

/// How many messages from the other side are behind this one, in the tables.
fn count(db: &Connection, account: i64, peer: u32, read: ArchiveId) -> Result<u32> {
    let after = read.0.max(erased(db, account)?);
    let unread: u32 = db
        .prepare_cached(
            "SELECT count(*) FROM (SELECT kind FROM archive_conversation WHERE account = ?1 AND peer = ?2 AND seq > ?3
             ORDER BY seq DESC LIMIT ?4) WHERE kind = ?5",
        )?
        .query_row(params![account, peer, int(after), ROWS_MAX, EntryKind::Received.code()], |row| row.get(0))?;
    Ok(unread.min(UNREAD_MAX))
}

/// What is noted of the conversations in the bin.
fn binned(db: &Connection, account: i64, max: u32) -> Result<Vec<(u32, Conversation)>> {
    let mut query = db.prepare_cached(
        "SELECT last, read, unread, marked, folder, moved, muted, peer FROM inbox INDEXED BY inbox_bin
         WHERE account = ?1 AND folder = 2 LIMIT ?2",
    )?;
    query.query_map(params![account, max], |row| Ok((row.get(7)?, conversation(row)?)))?.collect()
}

/// What is noted of a conversation.
pub(super) fn row(db: &Connection, account: i64, peer: u32) -> Result<Conversation> {
    let found = db
        .prepare_cached(
            "SELECT last, read, unread, marked, folder, moved, muted FROM inbox WHERE account = ?1 AND peer = ?2",
        )?
        .query_row(params![account, peer], conversation);
    Ok(found.optional()?.unwrap_or_default())
}

/// What is noted of a conversation, in the first seven columns.
pub(super) fn conversation(row: &Row<'_>) -> Result<Conversation> {
    let id = |column| uint(row, column).map(ArchiveId);
    Ok(Conversation {
        last: id(0)?,
        read: id(1)?,
        unread: row.get(2)?,
        marked: id(3)?,
        folder: code(row, 4)?,
        moved: id(5)?,
        muted: ms(row, 6)?,
    })
}

fn put(write: &Transaction<'_>, account: i64, peer: u32, noted: &Conversation) -> Result<()> {
    write.run(
        "INSERT OR REPLACE INTO inbox (account, peer, last, read, unread, marked, folder, moved, muted)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            account,
            peer,
            int(noted.last.0),
            int(noted.read.0),
            noted.unread,
            int(noted.marked.0),
            noted.folder.code(),
            int(noted.moved.0),
            int(noted.muted.0)
        ],
    )?;
    Ok(())
}
