//! What rooms tell of themselves.

use super::super::column::blob;
use super::super::error::{Error, Result};
use super::super::snapshot::Snapshot;
use super::super::transaction::Transaction;
use crate::rows::room::{photos_bytes, photos_of};
use bytes::Bytes;
use carillon_core::model::PhotoHash;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::rooms::{ReadRoomVcard, SetRoomVcard};

impl Answers<ReadRoomVcard, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ReadRoomVcard) -> Result<Option<Bytes>> {
        let row = self.db.opt("SELECT xml FROM room_vcard WHERE room = $1", &[&i64::from(asked.room.0)])?;
        row.map(|row| Ok(Bytes::copy_from_slice(blob(&row, 0)?))).transpose()
    }
}

impl Answers<SetRoomVcard, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &SetRoomVcard) -> Result<std::result::Result<(), Missing>> {
        let SetRoomVcard { room, xml, photos } = asked;
        let room = i64::from(room.0);
        if self.db.opt("SELECT 1 FROM room WHERE id = $1", &[&room])?.is_none() {
            return Ok(Err(Missing));
        }
        if xml.is_empty() {
            self.run("DELETE FROM room_vcard WHERE room = $1", &[&room])?;
        } else {
            self.run(
                "INSERT INTO room_vcard (room, photos, xml) VALUES ($1, $2, $3)
                 ON CONFLICT (room) DO UPDATE SET photos = $2, xml = $3",
                &[&room, &photos_bytes(photos), &&xml[..]],
            )?;
        }
        Ok(Ok(()))
    }
}

/// The hashes of a room's photos; none where it has no vCard.
pub(super) fn photos(bytes: Option<&[u8]>) -> Result<Box<[PhotoHash]>> {
    photos_of(bytes.unwrap_or_default()).ok_or(Error::Corrupt("a hash is cut off"))
}
