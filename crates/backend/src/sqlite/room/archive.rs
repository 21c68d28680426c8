//! The archives of rooms.
//!
//! A message is written once, at the end of one table for all rooms, and found by an index of rooms: what is written at once for many rooms
//! lies together.

use super::super::column::{blob, int, ms, text, uint};
use super::super::snapshot::Snapshot;
use super::super::transaction::Transaction;
use crate::rows::page::Room as Space;
use bytes::Bytes;
use carillon_core::model::*;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::archive::{ArchivePageAnswer, EXAMINED_MAX};
use carillon_core::ports::store::rooms::{
    KeepRoomMessage, ReadRoomArchiveEnds, ReplaceRoomMessage, RoomArchivePage, RoomArchivedMessages,
};
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};

/// Messages that are looked for at once.
const STEP: usize = 256;

impl Answers<KeepRoomMessage, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &KeepRoomMessage) -> Result<Result<ArchiveId, Missing>> {
        let KeepRoomMessage { room, received, sender, stanza } = asked;
        // As `kept_at` says.
        let received = self
            .db
            .prepare_cached(
                "UPDATE room SET messages = messages + 1, bytes = bytes + ?2,
                 archived_at = CASE WHEN ?3 < archived_at AND archived_at - ?3 <= 60000 THEN archived_at ELSE ?3 END
                 WHERE id = ?1 RETURNING archived_at",
            )?
            .query_row(params![room.0, stanza.len() as i64, int(received.0)], |row| ms(row, 0))
            .optional()?;
        let Some(received) = received else { return Ok(Err(Missing)) };
        self.run(
            "INSERT INTO room_message (room, received, sender, stanza) VALUES (?1, ?2, ?3, ?4)",
            params![room.0, int(received.0), sender.as_str(), &stanza[..]],
        )?;
        Ok(Ok(ArchiveId(self.db.last_insert_rowid().unsigned_abs())))
    }
}

impl Answers<ReplaceRoomMessage, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ReplaceRoomMessage) -> Result<Result<(), Missing>> {
        let ReplaceRoomMessage { room, id, stanza } = asked;
        let before = self
            .db
            .prepare_cached(
                "SELECT length(m.stanza) FROM room_message m JOIN room r ON r.id = m.room
                 WHERE m.seq = ?1 AND m.room = ?2 AND m.seq > r.erased",
            )?
            .query_row(params![int(id.0), room.0], |row| row.get::<_, i64>(0))
            .optional()?;
        let Some(before) = before else { return Ok(Err(Missing)) };
        self.run(
            "UPDATE room SET bytes = bytes + ?2 WHERE id = ?1",
            params![room.0, stanza.len() as i64 - before],
        )?;
        self.change("UPDATE room_message SET stanza = ?2 WHERE seq = ?1", params![int(id.0), &stanza[..]])
    }
}

impl Answers<RoomArchivePage, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &RoomArchivePage) -> Result<ArchivePageAnswer> {
        let Some(archive) = Archive::find(self.db, asked.room)? else {
            return Ok(ArchivePageAnswer::NoAccount);
        };
        let (filter, start) = (&asked.filter, asked.start);
        let (after, before) = match start {
            ArchiveStart::After(id) => (Some(id), None),
            ArchiveStart::Before(id) => (None, Some(id)),
            ArchiveStart::First | ArchiveStart::Last => (None, None),
        };
        for named in [filter.after, filter.before, after, before].into_iter().flatten() {
            if archive.message(named)?.is_none() {
                return Ok(ArchivePageAnswer::NotFound);
            }
        }
        let after = [filter.after, after].into_iter().flatten().map(|id| id.0).fold(archive.erased, u64::max);
        let before = [filter.before, before].into_iter().flatten().map(|id| id.0).fold(u64::MAX, u64::min);
        let (after, before) = archive.in_time(filter, after, before)?;
        archive.page(after, before, asked)
    }
}

impl Answers<RoomArchivedMessages, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &RoomArchivedMessages) -> Result<ArchivePageAnswer> {
        let Some(archive) = Archive::find(self.db, asked.room)? else {
            return Ok(ArchivePageAnswer::NoAccount);
        };
        let mut ids = asked.ids.clone();
        ids.sort();
        ids.dedup();
        let mut messages = Vec::with_capacity(ids.len());
        for id in ids {
            match archive.message(id)? {
                Some(message) => messages.push(message),
                None => return Ok(ArchivePageAnswer::NotFound),
            }
        }
        Ok(ArchivePageAnswer::Page { messages, more: false, reached: None })
    }
}

impl Answers<ReadRoomArchiveEnds, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ReadRoomArchiveEnds) -> Result<Option<ArchiveEnds>> {
        let Some(archive) = Archive::find(self.db, asked.room)? else { return Ok(None) };
        let end = |is_backward| -> Result<Option<(ArchiveId, UnixMs)>> {
            let found = archive.entries(archive.erased, u64::MAX, is_backward, 1)?;
            Ok(found.into_iter().next().map(|(_, message)| (message.id, message.received)))
        };
        Ok(end(false)?.zip(end(true)?).map(|(first, last)| ArchiveEnds { first, last }))
    }
}

/// The archive of a room, as of a snapshot.
struct Archive<'a> {
    db: &'a Connection,
    room: u32,
    /// Up to here it was erased.
    erased: u64,
}

impl Archive<'_> {
    fn find(db: &Connection, room: RoomId) -> Result<Option<Archive<'_>>> {
        db.prepare_cached("SELECT erased FROM room WHERE id = ?1")?
            .query_row([room.0], |row| Ok(Archive { db, room: room.0, erased: uint(row, 0)? }))
            .optional()
    }

    fn message(&self, id: ArchiveId) -> Result<Option<ArchivedMessage>> {
        if id.0 <= self.erased {
            return Ok(None);
        }
        self.db
            .prepare_cached(
                "SELECT seq, received, sender, stanza FROM room_message WHERE seq = ?1 AND room = ?2",
            )?
            .query_row(params![int(id.0), self.room], entry)
            .optional()
            .map(|found| found.map(|(_, message)| message))
    }

    /// Messages between two numbers, without these, and who sent them.
    fn entries(
        &self,
        after: u64,
        before: u64,
        is_backward: bool,
        max: usize,
    ) -> Result<Vec<(Box<str>, ArchivedMessage)>> {
        let sql = match is_backward {
            false => {
                "SELECT seq, received, sender, stanza FROM room_message WHERE room = ?1 AND seq > ?2 AND seq < ?3
                 ORDER BY seq LIMIT ?4"
            }
            true => {
                "SELECT seq, received, sender, stanza FROM room_message WHERE room = ?1 AND seq > ?2 AND seq < ?3
                 ORDER BY seq DESC LIMIT ?4"
            }
        };
        let mut query = self.db.prepare_cached(sql)?;
        query.query_map(params![self.room, int(after), int(before), max as i64], entry)?.collect()
    }

    /// The range of numbers, narrowed to those of a time as far as the order of the messages says: the times ascend but where the clock was
    /// set back.
    fn in_time(&self, filter: &ArchiveFilter, after: u64, before: u64) -> Result<(u64, u64)> {
        let Some(start) = filter.start else { return Ok((after, before)) };
        // The first half of the range that is too old is left out, again and again.
        let (mut low, mut high) = (after, before.min(self.newest()? + 1));
        while high.saturating_sub(low) > STEP as u64 {
            let middle = low + (high - low) / 2;
            let found = self.entries(middle - 1, high, false, 1)?;
            match found.first() {
                Some((_, message)) if message.received < start => low = message.id.0,
                _ => high = middle,
            }
        }
        Ok((low.max(after), before))
    }

    fn newest(&self) -> Result<u64> {
        let newest = self.entries(self.erased, u64::MAX, true, 1)?;
        Ok(newest.first().map_or(self.erased, |(_, message)| message.id.0))
    }

    fn page(&self, mut after: u64, mut before: u64, asked: &RoomArchivePage) -> Result<ArchivePageAnswer> {
        let (filter, is_backward) = (&asked.filter, asked.start.is_backward());
        let (mut messages, mut space, mut examined) = (Vec::new(), Space::new(asked.page), 0);
        // One more than there is space for says whether more follow.
        let step = match filter.with {
            Some(_) => STEP,
            None => STEP.min(usize::from(asked.page.entries) + 1),
        };
        let (more, reached) = 'page: loop {
            let entries = self.entries(after, before, is_backward, step)?;
            let Some(last) = entries.last().map(|(_, message)| message.id) else { break (false, None) };
            examined += entries.len();
            for (sender, message) in entries {
                let is_wanted = filter.start.is_none_or(|start| message.received >= start)
                    && filter.end.is_none_or(|end| message.received <= end)
                    && filter.with.as_ref().is_none_or(|with| {
                        with.bare_str() == &*sender && (with.is_bare() || is_with(&message.stanza, with))
                    });
                if !is_wanted {
                    continue;
                }
                if !space.takes(message.stanza.len()) {
                    break 'page (true, None);
                }
                messages.push(message);
            }
            match is_backward {
                true => before = last.0,
                false => after = last.0,
            }
            if examined >= EXAMINED_MAX {
                break (true, Some(last));
            }
        };
        if is_backward {
            messages.reverse();
        }
        Ok(ArchivePageAnswer::Page { messages, more, reached })
    }
}

fn entry(row: &Row<'_>) -> Result<(Box<str>, ArchivedMessage)> {
    let message = ArchivedMessage {
        id: ArchiveId(uint(row, 0)?),
        received: ms(row, 1)?,
        stanza: Bytes::copy_from_slice(blob(row, 3)?),
    };
    Ok((text(row, 2)?, message))
}
