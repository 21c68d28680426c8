//! How conversations stand: a row of each says it, and changes with every message. `listed` has their pages.

use super::super::column::{blob, code, int, ms, number, short, uint};
use super::super::connection::Connection;
use super::super::error::{Error, Result};
use super::super::lookup;
use super::super::transaction::Transaction;
use super::erased;
use super::rooms;
use carillon_core::model::*;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::inbox::{ChangeConversation, Emptied, EmptyBin};
use tokio_postgres::Row;

/// Rows of a conversation that are looked at to count what is unread.
const ROWS_MAX: i64 = 4 * UNREAD_MAX as i64;

/// Rows that are looked at to find the message that was seen: each such message costs that much.
const SEARCHED_MAX: i64 = 512;

impl Answers<ChangeConversation, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ChangeConversation) -> Result<std::result::Result<Conversation, Missing>> {
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
        let Some(peer) = super::conversation(self.db, account, asked.with.as_str())? else {
            return Ok(Err(Missing));
        };
        let mut noted = row(self.db, account, peer)?;
        if !noted.is_there() {
            return Ok(Err(Missing));
        }
        noted.change(&asked.change, ArchiveId(super::newest(self.db)?));
        noted.unread = count(self.db, account, peer, noted.read)?;
        put(self, account, peer, &noted)?;
        Ok(Ok(noted))
    }
}

impl Answers<EmptyBin, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &EmptyBin) -> Result<std::result::Result<Emptied, Missing>> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else {
            return Ok(Err(Missing));
        };
        let account = int(account.0);
        let newest = ArchiveId(super::newest(self.db)?);
        let mut emptied = 0;
        let binned = self.db.query(
            "SELECT last, read, unread, marked, folder, moved, muted, peer FROM inbox WHERE account = $1 AND folder = 2 LIMIT $2",
            &[&account, &i64::from(asked.max)],
        )?;
        let mut more = binned.len() == asked.max as usize;
        for row in &binned {
            let (peer, mut noted) = (row.try_get(7)?, conversation(row, 0)?);
            if noted.folder() == Folder::Bin {
                (noted.folder, noted.moved) = (Folder::Nowhere, newest);
                emptied += 1;
            } else {
                // A message has taken it out of the bin: it need not be looked at again.
                noted.folder = Folder::Inbox;
            }
            put(self, account, peer, &noted)?;
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
pub(super) fn displayed(write: &Transaction<'_>, account: i64, peer: i64, id: &str) -> Result<()> {
    let mut noted = row(write.db, account, peer)?;
    let read = noted.read.0.max(erased(write.db, account)?);
    let rows = write.db.query(
        "SELECT r.seq, m.stanza FROM (
             SELECT seq, kind FROM archive_entry WHERE account = $1 AND peer = $2 AND seq > $3 ORDER BY seq DESC LIMIT $4) AS r
         JOIN archive_message m ON m.seq = r.seq WHERE r.kind = $5 ORDER BY r.seq DESC LIMIT $6",
        &[
            &account,
            &peer,
            &int(read),
            &SEARCHED_MAX,
            &short(EntryKind::Received),
            &(MARKED_MAX as i64),
        ],
    )?;
    for (place, row) in rows.iter().enumerate() {
        if has_id(blob(row, 1)?, id) {
            noted.read_to(ArchiveId(uint(row, 0)?));
            noted.unread = place as u32;
            return put(write, account, peer, &noted);
        }
    }
    Ok(())
}

/// Messages of a conversation were removed, the oldest first. Nothing says any more with whom it was once nothing is left of it, unless it was
/// muted. Whoever sweeps has the store alone: nobody begins a message of it meanwhile.
pub(super) fn swept(write: &Transaction<'_>, account: i64, peer: i64) -> Result<()> {
    let mut noted = row(write.db, account, peer)?;
    let messages = "SELECT 1 FROM archive_entry WHERE account = $1 AND peer = $2 LIMIT 1";
    if noted.muted == UnixMs(0) && write.db.opt(messages, &[&account, &peer])?.is_none() {
        write.run("DELETE FROM inbox WHERE account = $1 AND peer = $2", &[&account, &peer])?;
        write.run("DELETE FROM archive_peer WHERE id = $1", &[&peer])?;
        return Ok(());
    }
    let sql = "SELECT 1 FROM archive_entry WHERE account = $1 AND seq = $2";
    if write.db.opt(sql, &[&account, &int(noted.last.0)])?.is_none() {
        noted.last = ArchiveId(0);
    }
    noted.unread = count(write.db, account, peer, noted.read)?;
    put(write, account, peer, &noted)
}

/// An archive was erased: removes what is noted of its conversations, and the addresses of those without messages. The sweep removes
/// those of the others.
pub(super) fn erased_all(write: &Transaction<'_>, account: i64) -> Result<()> {
    write.run(
        "DELETE FROM archive_peer p USING inbox i WHERE i.account = $1 AND i.last = 0 AND p.id = i.peer
         AND NOT EXISTS (SELECT 1 FROM archive_entry e WHERE e.account = $1 AND e.peer = p.id)",
        &[&account],
    )?;
    write.run("DELETE FROM inbox WHERE account = $1", &[&account])?;
    Ok(())
}

/// How many messages from the other side are behind this one.
fn count(db: &Connection, account: i64, peer: i64, read: ArchiveId) -> Result<u32> {
    let after = read.0.max(erased(db, account)?);
    let row = db.one(
        "SELECT count(*) FROM (SELECT kind FROM archive_entry WHERE account = $1 AND peer = $2 AND seq > $3
             ORDER BY seq DESC LIMIT $4) AS newest WHERE kind = $5",
        &[&account, &peer, &int(after), &ROWS_MAX, &short(EntryKind::Received)],
    )?;
    Ok(number(&row, 0)?.min(UNREAD_MAX))
}

/// How a conversation stands.
pub(super) fn row(db: &Connection, account: i64, peer: i64) -> Result<Conversation> {
    let found = db.opt(
        "SELECT last, read, unread, marked, folder, moved, muted FROM inbox WHERE account = $1 AND peer = $2",
        &[&account, &peer],
    )?;
    Ok(found.map(|row| conversation(&row, 0)).transpose()?.unwrap_or_default())
}

/// How a conversation stands, in the seven columns from `first`.
pub(super) fn conversation(row: &Row, first: usize) -> Result<Conversation> {
    let id = |column| uint(row, first + column).map(ArchiveId);
    Ok(Conversation {
        last: id(0)?,
        read: id(1)?,
        unread: number(row, first + 2)?,
        marked: id(3)?,
        folder: code(row, first + 4)?,
        moved: id(5)?,
        muted: ms(row, first + 6)?,
    })
}

/// Conversations as columns.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) last: Vec<i64>,
    pub(super) read: Vec<i64>,
    pub(super) unread: Vec<i64>,
    pub(super) marked: Vec<i64>,
    pub(super) folder: Vec<i16>,
    pub(super) moved: Vec<i64>,
    pub(super) muted: Vec<i64>,
}

impl Rows {
    pub(super) fn push(&mut self, noted: &Conversation) {
        self.last.push(int(noted.last.0));
        self.read.push(int(noted.read.0));
        self.unread.push(noted.unread.into());
        self.marked.push(int(noted.marked.0));
        self.folder.push(short(noted.folder));
        self.moved.push(int(noted.moved.0));
        self.muted.push(int(noted.muted.0));
    }
}

fn put(write: &Transaction<'_>, account: i64, peer: i64, noted: &Conversation) -> Result<()> {
    write.run(
        "INSERT INTO inbox (account, peer, last, read, unread, marked, folder, moved, muted)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (account, peer) DO UPDATE SET last = $3, read = $4, unread = $5, marked = $6, folder = $7, moved = $8,
             muted = $9",
        &[
            &account,
            &peer,
            &int(noted.last.0),
            &int(noted.read.0),
            &i64::from(noted.unread),
            &int(noted.marked.0),
            &short(noted.folder),
            &int(noted.moved.0),
            &int(noted.muted.0),
        ],
    )?;
    Ok(())
}
