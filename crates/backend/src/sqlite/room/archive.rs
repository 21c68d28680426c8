//! The archives of rooms.
//!
//! A message is written once, at the end of one table for all rooms, and found by an index of rooms: what is written at once for many rooms
//! lies together.

use super::super::column::{blob, int, ms, text, uint};
use super::super::snapshot::Snapshot;
use super::super::transaction::Transaction;
use super::super::{event, push};
use super::{inbox, noted};
use crate::rows::event::said;
use crate::rows::room::{self, Entry, RoomArchive};
use bytes::Bytes;
use carillon_core::model::*;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::archive::ArchivePageAnswer;
use carillon_core::ports::store::rooms::{
    KeepRoomMessage, ReadRoomArchiveEnds, ReplaceRoomMessage, RoomArchivePage, RoomArchivedMessages,
};
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};

impl Answers<KeepRoomMessage, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &KeepRoomMessage) -> Result<Result<ArchiveId, Missing>> {
        let KeepRoomMessage { room, received, sender, stanza, entry, displayed, wake, listeners, fact } =
            asked;
        let before = self
            .db
            .prepare_cached("SELECT archived_at, counted FROM room WHERE id = ?1")?
            .query_row([room.0], |row| Ok((ms(row, 0)?, uint(row, 1)?)))
            .optional()?;
        let Some((archived_at, counted)) = before else { return Ok(Err(Missing)) };
        let received = kept_at(*received, archived_at);
        let counted = counted + u64::from(*entry == RoomEntry::Counted);
        self.run(
            "INSERT INTO room_message (room, received, sender, stanza, counted) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![room.0, int(received.0), sender.as_str(), &stanza[..], int(counted)],
        )?;
        let seq = self.db.last_insert_rowid();
        self.run(
            "UPDATE room SET messages = messages + 1, bytes = bytes + ?2, archived_at = ?3, counted = ?4,
             last = CASE WHEN ?5 THEN ?6 ELSE last END WHERE id = ?1",
            params![
                room.0,
                stanza.len() as i64,
                int(received.0),
                int(counted),
                *entry != RoomEntry::Other,
                seq
            ],
        )?;
        let id = ArchiveId(seq.unsigned_abs());
        if *entry == RoomEntry::Counted {
            inbox::read(self, *room, sender, id, counted)?;
        }
        if let Some(named) = displayed {
            inbox::displayed(self, *room, sender, named)?;
        }
        if let Some(wake) = wake {
            push::wake_mentioned(self, id, wake)?;
        }
        if let Some(at) = listeners {
            push::wake_listeners(self, *room, sender, id, *at)?;
        }
        if let Some(fact) = fact {
            event::note(self, &said(fact, id))?;
        }
        Ok(Ok(id))
    }
}

impl Answers<ReplaceRoomMessage, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ReplaceRoomMessage) -> Result<Result<(), Missing>> {
        let ReplaceRoomMessage { room, id, stanza, facts } = asked;
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
        let done = self
            .change("UPDATE room_message SET stanza = ?2 WHERE seq = ?1", params![int(id.0), &stanza[..]])?;
        noted(self, done, facts)
    }
}

impl Answers<RoomArchivePage, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &RoomArchivePage) -> Result<ArchivePageAnswer> {
        match Archive::find(self.db, asked.room, asked.since)? {
            Some(archive) => room::page(&archive, asked),
            None => Ok(ArchivePageAnswer::NoAccount),
        }
    }
}

impl Answers<RoomArchivedMessages, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &RoomArchivedMessages) -> Result<ArchivePageAnswer> {
        match Archive::find(self.db, asked.room, asked.since)? {
            Some(archive) => room::named(&archive, &asked.ids),
            None => Ok(ArchivePageAnswer::NoAccount),
        }
    }
}

impl Answers<ReadRoomArchiveEnds, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ReadRoomArchiveEnds) -> Result<Option<ArchiveEnds>> {
        match Archive::find(self.db, asked.room, asked.since)? {
            Some(archive) => room::ends(&archive),
            None => Ok(None),
        }
    }
}

/// The archive of a room, as of a snapshot.
struct Archive<'a> {
    db: &'a Connection,
    room: u32,
    erased: u64,
}

impl Archive<'_> {
    /// What of it is behind a message.
    fn find(db: &Connection, room: RoomId, since: ArchiveId) -> Result<Option<Archive<'_>>> {
        db.prepare_cached("SELECT erased FROM room WHERE id = ?1")?
            .query_row([room.0], |row| Ok(Archive { db, room: room.0, erased: uint(row, 0)?.max(since.0) }))
            .optional()
    }
}

impl RoomArchive for Archive<'_> {
    type Error = Error;

    fn erased(&self) -> u64 {
        self.erased
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

    fn entries(&self, after: u64, before: u64, is_backward: bool, max: usize) -> Result<Vec<Entry>> {
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
}

fn entry(row: &Row<'_>) -> Result<Entry> {
    let message = ArchivedMessage {
        id: ArchiveId(uint(row, 0)?),
        received: ms(row, 1)?,
        stanza: Bytes::copy_from_slice(blob(row, 3)?),
    };
    Ok((text(row, 2)?, message))
}
