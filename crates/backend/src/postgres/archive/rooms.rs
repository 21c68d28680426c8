//! Rooms in inboxes.

use super::super::column::{blob, code, int, ms, number, short, text, uint};
use super::super::connection::Connection;
use super::super::error::Result;
use super::super::transaction::Transaction;
use super::read;
use crate::rows::inbox::{ROOMS_MAX, Standing};
use carillon_core::model::*;
use carillon_core::ports::Missing;
use carillon_core::ports::store::inbox::Emptied;
use tokio_postgres::Row;

/// How the rooms of a domain stand for an account that is a member.
pub(super) fn standing(db: &Connection, domain: DomainId, member: &str) -> Result<Vec<Standing>> {
    let rows = db.query(
        "SELECT r.id, r.kind, r.name, m.read, m.marked, m.folder, m.moved, m.muted, r.last, r.counted, m.read_counted,
             m.since, r.config, x.received
         FROM (SELECT * FROM room_member WHERE jid = $1 AND affiliation >= $2 ORDER BY affiliation DESC, room DESC LIMIT $4) m
         JOIN room r ON r.id = m.room JOIN room_message x ON x.seq = r.last
         WHERE r.domain = $3 AND r.last > r.erased",
        &[&member, &short(RoomAffiliation::Member), &i64::from(domain.0), &ROOMS_MAX],
    )?;
    let standing = |row: &Row| {
        Ok(Standing {
            room: RoomId(number(row, 0)?),
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
    };
    rows.iter().map(standing).collect()
}

/// What was noted, in five columns.
fn noted(row: &Row, first: usize) -> Result<Conversation> {
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
    let found = write.db.opt(
        "SELECT m.read, m.marked, m.folder, m.moved, m.muted, r.last, r.counted, m.read_counted, r.id
         FROM room r JOIN room_member m ON m.room = r.id AND m.jid = $4
         WHERE r.domain = $1 AND r.kind = $2 AND r.name = $3 AND m.affiliation >= $5 FOR NO KEY UPDATE OF m",
        &[&i64::from(domain.0), &short(kind), &name, &member, &short(RoomAffiliation::Member)],
    )?;
    let Some(row) = found else { return Ok(Err(Missing)) };
    let (mut noted, last) = (noted(&row, 0)?, ArchiveId(uint(&row, 5)?));
    let (counted, before, room): (u64, u64, i64) = (uint(&row, 6)?, uint(&row, 7)?, row.try_get(8)?);
    if !Conversation::of_room(noted, last, counted, before).is_there() {
        return Ok(Err(Missing));
    }
    noted.change(change, last);
    let read_counted = if change.is_read == Some(true) { counted } else { before };
    write.run(
        "UPDATE room_member SET read = $3, marked = $4, folder = $5, moved = $6, muted = $7, read_counted = $8
         WHERE room = $1 AND jid = $2",
        &[
            &room,
            &member,
            &int(noted.read.0),
            &int(noted.marked.0),
            &short(noted.folder),
            &int(noted.moved.0),
            &int(noted.muted.0),
            &int(read_counted),
        ],
    )?;
    Ok(Ok(Conversation::of_room(noted, last, counted, read_counted)))
}

/// Takes rooms out of an account's bin, at most `max`. Those that a message has taken out are noted as such, so that they are not looked at again.
pub(super) fn empty_bin(write: &Transaction<'_>, member: &str, max: u32) -> Result<Emptied> {
    let rows = write.returning(
        "UPDATE room_member m SET folder = CASE WHEN m.moved >= r.last THEN $2::smallint ELSE $3::smallint END,
             moved = CASE WHEN m.moved >= r.last THEN r.last ELSE m.moved END
         FROM room r WHERE r.id = m.room AND m.jid = $1
             AND m.room IN (SELECT room FROM room_member WHERE jid = $1 AND folder = 2 LIMIT $4)
         RETURNING m.folder = $2::smallint",
        &[&member, &short(Folder::Nowhere), &short(Folder::Inbox), &i64::from(max)],
    )?;
    let are_gone = rows.iter().map(|row| Ok(row.try_get(0)?)).collect::<Result<Vec<bool>>>()?;
    let conversations = are_gone.iter().filter(|is_gone| **is_gone).count() as u32;
    Ok(Emptied { conversations, more: are_gone.len() == max as usize })
}

/// A message of a room.
pub(super) fn message(db: &Connection, room: RoomId, id: ArchiveId) -> Result<Option<ArchivedMessage>> {
    let sql = "SELECT seq, received, stanza FROM room_message WHERE seq = $1 AND room = $2";
    let row = db.opt(sql, &[&int(id.0), &i64::from(room.0)])?;
    row.map(|row| read::message(&row)).transpose()
}
