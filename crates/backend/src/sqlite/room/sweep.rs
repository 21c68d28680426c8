//! Removing what the archives of rooms do not keep any longer.

use super::super::column::{blob, int, ms, uint};
use super::super::transaction::Transaction;
use super::form;
use crate::rows::room::Sweep;
use carillon_core::model::*;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::rooms::{EraseRoomArchive, SweepRoomArchives, SweepRoomArchivesAnswer};
use rusqlite::{Error, OptionalExtension, Result, Row, params};

/// Rooms that are looked at at once.
const ROOMS_MAX: usize = 256;

impl Answers<EraseRoomArchive, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &EraseRoomArchive) -> Result<Result<(), Missing>> {
        self.change(
            "UPDATE room SET erased = coalesce((SELECT max(seq) FROM room_message WHERE room = ?1), erased)
             WHERE id = ?1",
            [asked.room.0],
        )
    }
}

impl Answers<SweepRoomArchives, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &SweepRoomArchives) -> Result<SweepRoomArchivesAnswer> {
        let mut removed = 0;
        let mut after = asked.after;
        for _ in 0..ROOMS_MAX {
            // The next room of which there is a message, whether it is still there or not.
            let next: Option<u32> = self
                .db
                .prepare_cached("SELECT room FROM room_message WHERE room > ?1 ORDER BY room LIMIT 1")?
                .query_row([after.0], |row| row.get(0))
                .optional()?;
            let Some(room) = next else { return Ok(SweepRoomArchivesAnswer { removed, next: None }) };
            removed += sweep(self, room, asked.now, asked.max - removed)?;
            if removed == asked.max {
                // There may be more of this one.
                return Ok(SweepRoomArchivesAnswer { removed, next: Some(RoomId(room - 1)) });
            }
            after = RoomId(room);
        }
        Ok(SweepRoomArchivesAnswer { removed, next: Some(after) })
    }
}

fn archive(write: &Transaction<'_>, room: u32) -> Result<Sweep> {
    let mut query = write.db.prepare_cached(
        "SELECT r.messages, r.bytes, r.erased, d.archive_days, d.archive_messages_max, d.archive_bytes_max,
             d.room_archive_days, r.config
         FROM room r JOIN domain d ON d.id = r.domain WHERE r.id = ?1",
    )?;
    let of = |row: &Row<'_>| {
        let policy = Policy {
            archive_days: row.get(3)?,
            archive_messages_max: row.get(4)?,
            archive_bytes_max: uint(row, 5)?,
            room_archive_days: row.get(6)?,
            ..Policy::default()
        };
        let config: RoomConfig = form(blob(row, 7)?, 7)?;
        let bounds = policy.room_archive_bounds(config.archive_days);
        Ok(Sweep { messages: uint(row, 0)?, bytes: uint(row, 1)?, erased: uint(row, 2)?, bounds })
    };
    Ok(query.query_row([room], of).optional()?.unwrap_or_else(Sweep::of_nothing))
}

/// Removes the oldest messages of an archive as long as they are not to be kept, at most so many; how many.
fn sweep(write: &Transaction<'_>, room: u32, now: UnixMs, max: u32) -> Result<u32> {
    let mut archive = archive(write, room)?;
    let (mut removed, mut bytes_removed, mut last) = (0, 0, 0);
    {
        let mut query = write.db.prepare_cached(
            "SELECT seq, received, length(stanza) FROM room_message WHERE room = ?1 ORDER BY seq LIMIT ?2",
        )?;
        let mut rows = query.query(params![room, max])?;
        while let Some(row) = rows.next()? {
            let (seq, received, bytes) = (uint(row, 0)?, ms(row, 1)?, uint(row, 2)?);
            if !archive.removes(seq, received, bytes, now) {
                break;
            }
            (removed, bytes_removed, last) = (removed + 1, bytes_removed + bytes, seq);
        }
    }
    if removed > 0 {
        write.run("DELETE FROM room_message WHERE room = ?1 AND seq <= ?2", params![room, int(last)])?;
        write.run(
            "UPDATE room SET messages = messages - ?2, bytes = bytes - ?3 WHERE id = ?1",
            params![room, removed, int(bytes_removed)],
        )?;
    }
    Ok(removed)
}
