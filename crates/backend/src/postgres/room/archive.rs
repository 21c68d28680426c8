//! The archives of rooms.

use super::super::column::{blob, int, ms, text, uint};
use super::super::connection::Connection;
use super::super::error::{Error, Result};
use super::super::push;
use super::super::snapshot::Snapshot;
use super::super::transaction::Transaction;
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
use tokio_postgres::Row;

impl Answers<KeepRoomMessage, Error> for Transaction<'_> {
    /// The time is as [`kept_at`] says. One statement, and another where somebody has read something.
    fn answer(&mut self, asked: &KeepRoomMessage) -> Result<std::result::Result<ArchiveId, Missing>> {
        let KeepRoomMessage { room, received, sender, stanza, entry, displayed, wake, listeners, fact } =
            asked;
        let kept = self.returning_opt(
            "WITH next AS (SELECT nextval(pg_get_serial_sequence('room_message', 'seq')) AS seq),
             noted AS (
                 UPDATE room SET messages = messages + 1, bytes = bytes + $2,
                 archived_at = CASE WHEN $3 < archived_at AND archived_at - $3 <= 60000 THEN archived_at ELSE $3 END,
                 counted = counted + $6, last = CASE WHEN $7 THEN next.seq ELSE last END
                 FROM next WHERE id = $1 RETURNING next.seq, archived_at, counted)
             INSERT INTO room_message (seq, room, received, sender, stanza, counted) OVERRIDING SYSTEM VALUE
             SELECT seq, $1, archived_at, $4, $5, counted FROM noted RETURNING seq, counted",
            &[
                &i64::from(room.0),
                &(stanza.len() as i64),
                &int(received.0),
                &sender.as_str(),
                &&stanza[..],
                &i64::from(*entry == RoomEntry::Counted),
                &(*entry != RoomEntry::Other),
            ],
        )?;
        let Some(row) = kept else { return Ok(Err(Missing)) };
        let (id, counted) = (ArchiveId(uint(&row, 0)?), uint(&row, 1)?);
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
            self.note_fact(&said(fact, id));
        }
        Ok(Ok(id))
    }
}

impl Answers<ReplaceRoomMessage, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ReplaceRoomMessage) -> Result<std::result::Result<(), Missing>> {
        let ReplaceRoomMessage { room, id, stanza, facts } = asked;
        let done = self.change(
            "WITH found AS (
                 SELECT m.seq, length(m.stanza) AS before FROM room_message m JOIN room r ON r.id = m.room
                 WHERE m.seq = $2 AND m.room = $1 AND m.seq > r.erased),
             counted AS (
                 UPDATE room SET bytes = bytes + length($3::bytea) - found.before FROM found WHERE id = $1)
             UPDATE room_message m SET stanza = $3 FROM found WHERE m.seq = found.seq",
            &[&i64::from(room.0), &int(id.0), &&stanza[..]],
        )?;
        Ok(noted(self, done, facts))
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
    room: i64,
    erased: u64,
}

impl Archive<'_> {
    /// What of it is behind a message.
    fn find(db: &Connection, room: RoomId, since: ArchiveId) -> Result<Option<Archive<'_>>> {
        let room = i64::from(room.0);
        let row = db.opt("SELECT erased FROM room WHERE id = $1", &[&room])?;
        row.map(|row| Ok(Archive { db, room, erased: uint(&row, 0)?.max(since.0) })).transpose()
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
        let row = self.db.opt(
            "SELECT seq, received, sender, stanza FROM room_message WHERE seq = $1 AND room = $2",
            &[&int(id.0), &self.room],
        )?;
        row.map(|row| entry(&row).map(|(_, message)| message)).transpose()
    }

    fn entries(&self, after: u64, before: u64, is_backward: bool, max: usize) -> Result<Vec<Entry>> {
        let sql = match is_backward {
            false => {
                "SELECT seq, received, sender, stanza FROM room_message WHERE room = $1 AND seq > $2 AND seq < $3
                 ORDER BY seq LIMIT $4"
            }
            true => {
                "SELECT seq, received, sender, stanza FROM room_message WHERE room = $1 AND seq > $2 AND seq < $3
                 ORDER BY seq DESC LIMIT $4"
            }
        };
        let rows = self.db.query(sql, &[&self.room, &int(after), &int(before), &(max as i64)])?;
        rows.iter().map(entry).collect()
    }
}

fn entry(row: &Row) -> Result<Entry> {
    let message = ArchivedMessage {
        id: ArchiveId(uint(row, 0)?),
        received: ms(row, 1)?,
        stanza: Bytes::copy_from_slice(blob(row, 3)?),
    };
    Ok((text(row, 2)?, message))
}
