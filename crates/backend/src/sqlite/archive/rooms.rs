//! Rooms in inboxes.

use super::super::column::{blob, code, int, ms, text, uint};
use super::super::transaction::Transaction;
use crate::rows::code::Code;
use crate::rows::inbox::{ROOMS_MAX, Standing};
use bytes::Bytes;
use carillon_core::model::*;
use carillon_core::ports::Missing;
use carillon_core::ports::store::inbox::Emptied;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

/// How the rooms of a domain stand for an account that is a member.
pub(super) fn standing(db: &Connection, domain: DomainId, member: &str) -> Result<Vec<Standing>> {
    let mut query = db.prepare_cached(
        "SELECT r.id, r.kind, r.name, m.read, m.marked, m.folder, m.moved, m.muted, r.last, r.counted, m.read_counted,
             m.since, r.config, x.received
         FROM (SELECT * FROM room_member WHERE jid = ?1 AND affiliation >= ?2 ORDER BY affiliation DESC, room DESC LIMIT ?4) m
         JOIN room r ON r.id = m.room JOIN room_message x ON x.seq = r.last
         WHERE r.domain = ?3 AND r.last > r.erased",
    )?;
    let rows =
        query.query_map(params![member, RoomAffiliation::Member.code(), domain.0, ROOMS_MAX], |row| {
            Ok(Standing {
                room: RoomId(row.get(0)?),
                kind: code(row, 1)?,
                name: text(row, 2)?,
                noted: noted(row, 3)?,
                last: ArchiveId(uint(row, 8)?),
                counted: uint(row, 9)?,
                read_counted: uint(row, 10)?,
                since: ArchiveId(uint(row, 11)?),
                config: blob(row, 12)?.to_vec(),
                received: ms(row, 13)?,
            })
        })?;
    rows.collect()
}

/// What was noted, in five columns.
fn noted(row: &Row<'_>, first: usize) -> Result<Conversation> {
    Ok(Conversation {
        read: ArchiveId(uint(row, first)?),
        marked: ArchiveId(uint(row, first + 1)?),
        folder: code(row, first + 2)?,
        moved: ArchiveId(uint(row, first + 3)?),
        muted: ms(row, first + 4)?,
        ..Conversation::default()
    })
}

/// Changes how a room stands for a member.
pub(super) fn change(
    write: &Transaction<'_>,
    domain: DomainId,
    (kind, name): (RoomKind, &str),
    member: &str,
    change: &ConversationChange,
) -> Result<std::result::Result<Conversation, Missing>> {
    let found = write
        .db
        .prepare_cached(
            "SELECT m.read, m.marked, m.folder, m.moved, m.muted, r.last, r.counted, m.read_counted, r.id
             FROM room r JOIN room_member m ON m.room = r.id AND m.jid = ?4
             WHERE r.domain = ?1 AND r.kind = ?2 AND r.name = ?3 AND m.affiliation >= ?5",
        )?
        .query_row(params![domain.0, kind.code(), name, member, RoomAffiliation::Member.code()], |row| {
            let numbers = (uint(row, 5)?, uint(row, 6)?, uint(row, 7)?, row.get::<_, i64>(8)?);
            Ok((noted(row, 0)?, numbers))
        })
        .optional()?;
    let Some((mut noted, (last, counted, before, room))) = found else { return Ok(Err(Missing)) };
    let last = ArchiveId(last);
    if !Conversation::of_room(noted, last, counted, before).is_there() {
        return Ok(Err(Missing));
    }
    noted.change(change, last);
    let read_counted = if change.is_read == Some(true) { counted } else { before };
    write.run(
        "UPDATE room_member SET read = ?3, marked = ?4, folder = ?5, moved = ?6, muted = ?7, read_counted = ?8
         WHERE room = ?1 AND jid = ?2",
        params![
            room,
            member,
            int(noted.read.0),
            int(noted.marked.0),
            noted.folder.code(),
            int(noted.moved.0),
            int(noted.muted.0),
            int(read_counted)
        ],
    )?;
    Ok(Ok(Conversation::of_room(noted, last, counted, read_counted)))
}

/// Takes rooms out of an account's bin, at most `max`. Those that a message has taken out are noted as such, so that they are not looked at again.
pub(super) fn empty_bin(write: &Transaction<'_>, member: &str, max: u32) -> Result<Emptied> {
    let mut query = write.db.prepare_cached(
        "UPDATE room_member SET folder = iif(moved >= (SELECT last FROM room WHERE id = room), ?2, ?3),
             moved = iif(moved >= (SELECT last FROM room WHERE id = room), (SELECT last FROM room WHERE id = room), moved)
         WHERE (room, jid) IN (
             SELECT room, jid FROM room_member INDEXED BY room_member_bin WHERE jid = ?1 AND folder = 2 LIMIT ?4)
         RETURNING folder = ?2",
    )?;
    let (nowhere, inbox) = (Folder::Nowhere.code(), Folder::Inbox.code());
    let rows = query.query_map(params![member, nowhere, inbox, max], |row| row.get(0))?;
    let are_gone = rows.collect::<Result<Vec<bool>>>()?;
    let conversations = are_gone.iter().filter(|is_gone| **is_gone).count() as u32;
    Ok(Emptied { conversations, more: are_gone.len() == max as usize })
}

/// A message of a room.
pub(super) fn message(db: &Connection, room: RoomId, id: ArchiveId) -> Result<Option<ArchivedMessage>> {
    db.prepare_cached("SELECT received, stanza FROM room_message WHERE seq = ?1 AND room = ?2")?
        .query_row(params![int(id.0), room.0], |row| {
            let stanza = Bytes::copy_from_slice(blob(row, 1)?);
            Ok(ArchivedMessage { id, received: ms(row, 0)?, stanza })
        })
        .optional()
}
