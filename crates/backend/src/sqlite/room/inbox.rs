//! What members have read of their rooms.

use super::super::column::{blob, int, uint};
use super::super::transaction::Transaction;
use carillon_core::model::*;
use carillon_wire::jid::BareJid;
use rusqlite::{OptionalExtension, Result, params};

/// A member has read everything up to this message, with which there were so many that count. Not written where it has read more.
pub(super) fn read(
    write: &Transaction<'_>,
    room: RoomId,
    member: &BareJid,
    id: ArchiveId,
    counted: u64,
) -> Result<()> {
    write.run(
        "UPDATE room_member SET read = ?3, read_counted = ?4, marked = 0
         WHERE room = ?1 AND jid = ?2 AND read < ?3",
        params![room.0, member.as_str(), int(id.0), int(counted)],
    )?;
    Ok(())
}

/// A member has seen the message with this number or this id, which is looked for among the newest.
pub(super) fn displayed(write: &Transaction<'_>, room: RoomId, member: &BareJid, named: &str) -> Result<()> {
    if let Ok(seq) = named.parse::<i64>() {
        let found = write
            .db
            .prepare_cached("SELECT seq, counted FROM room_message WHERE seq = ?1 AND room = ?2")?
            .query_row(params![seq, room.0], |row| Ok((uint(row, 0)?, uint(row, 1)?)))
            .optional()?;
        if let Some((seq, counted)) = found {
            return read(write, room, member, ArchiveId(seq), counted);
        }
    }
    let mut query = write.db.prepare_cached(
        "SELECT seq, counted, stanza FROM room_message WHERE room = ?1 ORDER BY seq DESC LIMIT ?2",
    )?;
    let mut rows = query.query(params![room.0, MARKED_MAX as i64])?;
    while let Some(row) = rows.next()? {
        if has_id(blob(row, 2)?, named) {
            return read(write, room, member, ArchiveId(uint(row, 0)?), uint(row, 1)?);
        }
    }
    Ok(())
}
