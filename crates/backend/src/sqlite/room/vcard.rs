//! What rooms tell of themselves.

use super::super::column::{blob, corrupt};
use super::super::snapshot::Snapshot;
use super::super::transaction::Transaction;
use crate::rows::room::{photos_bytes, photos_of};
use bytes::Bytes;
use carillon_core::model::PhotoHash;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::rooms::{ReadRoomVcard, SetRoomVcard};
use rusqlite::{Error, OptionalExtension, Result, Row, params};

impl Answers<ReadRoomVcard, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ReadRoomVcard) -> Result<Option<Bytes>> {
        let mut query = self.db.prepare_cached("SELECT xml FROM room_vcard WHERE room = ?1")?;
        query.query_row([asked.room.0], |row| blob(row, 0).map(Bytes::copy_from_slice)).optional()
    }
}

impl Answers<SetRoomVcard, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &SetRoomVcard) -> Result<Result<(), Missing>> {
        let SetRoomVcard { room, xml, photos } = asked;
        if !self.db.prepare_cached("SELECT 1 FROM room WHERE id = ?1")?.exists([room.0])? {
            return Ok(Err(Missing));
        }
        if xml.is_empty() {
            self.run("DELETE FROM room_vcard WHERE room = ?1", [room.0])?;
        } else {
            let sql = "INSERT OR REPLACE INTO room_vcard (room, photos, xml) VALUES (?1, ?2, ?3)";
            self.run(sql, params![room.0, photos_bytes(photos), &xml[..]])?;
        }
        Ok(Ok(()))
    }
}

/// The hashes of a room's photos; none where it has no vCard.
pub(super) fn photos(row: &Row<'_>, column: usize) -> Result<Box<[PhotoHash]>> {
    let bytes = row.get_ref(column)?.as_blob_or_null().map_err(|_| corrupt(column, "hashes are no bytes"))?;
    photos_of(bytes.unwrap_or_default()).ok_or_else(|| corrupt(column, "a hash is cut off"))
}
