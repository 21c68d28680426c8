//! Parked sessions between two processes.

use super::column::{blob, int, ms, uint};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::rows::page::Room;
use bytes::Bytes;
use carillon_core::ports::Part;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::parked::{
    ForgetParked, ParkedGroup, ParkedGroups, StoreParked, StoreParkedAnswer,
};
use rusqlite::{Error, Result, Row, params};

impl Answers<StoreParked, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &StoreParked) -> Result<StoreParkedAnswer> {
        let StoreParked { group, bytes_max } = asked;
        // SQLite knows how long a blob is without reading its pages.
        let others: u64 = self
            .db
            .prepare_cached("SELECT coalesce(sum(length(bytes)), 0) FROM parked WHERE number <> ?1")?
            .query_row([group.number], |row| uint(row, 0))?;
        if others + group.bytes.len() as u64 > *bytes_max {
            return Ok(StoreParkedAnswer::Full);
        }
        self.run(
            "INSERT OR REPLACE INTO parked (number, shard, shards, sessions, written, bytes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                group.number,
                group.shard,
                group.shards,
                group.sessions,
                int(group.written.0),
                &group.bytes[..]
            ],
        )?;
        Ok(StoreParkedAnswer::Stored)
    }
}

impl Answers<ParkedGroups, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ParkedGroups) -> Result<Part<ParkedGroup>> {
        let mut query = self.db.prepare_cached(
            "SELECT number, shard, shards, sessions, written, bytes FROM parked WHERE number > ?1 ORDER BY number",
        )?;
        let mut rows = query.query([asked.after.map_or(-1, i64::from)])?;
        let (mut entries, mut room) = (Vec::new(), Room::new(asked.page));
        while let Some(row) = rows.next()? {
            if !room.takes(blob(row, 5)?.len()) {
                return Ok(Part { entries, more: true });
            }
            entries.push(group(row)?);
        }
        Ok(Part { entries, more: false })
    }
}

fn group(row: &Row<'_>) -> Result<ParkedGroup> {
    Ok(ParkedGroup {
        number: row.get(0)?,
        shard: row.get(1)?,
        shards: row.get(2)?,
        sessions: row.get(3)?,
        written: ms(row, 4)?,
        bytes: Bytes::copy_from_slice(blob(row, 5)?),
    })
}

impl Answers<ForgetParked, Error> for Transaction<'_> {
    fn answer(&mut self, _: &ForgetParked) -> Result<()> {
        self.run("DELETE FROM parked", []).map(drop)
    }
}
