//! Parked sessions between two processes of a node.

use super::column::{blob, int, ms, number};
use super::error::{Error, Result};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::rows::page::Room;
use bytes::Bytes;
use carillon_core::ports::Part;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::parked::{
    ForgetParked, ParkedGroup, ParkedGroups, StoreParked, StoreParkedAnswer,
};
use tokio_postgres::Row;

impl Answers<StoreParked, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &StoreParked) -> Result<StoreParkedAnswer> {
        let StoreParked { group, bytes_max } = asked;
        let node = &self.node.name;
        let others = self.db.one(
            "SELECT coalesce(sum(length(bytes)), 0)::bigint FROM parked WHERE node = $1 AND number <> $2",
            &[node, &i64::from(group.number)],
        )?;
        if others.try_get::<_, i64>(0)?.unsigned_abs() + group.bytes.len() as u64 > *bytes_max {
            return Ok(StoreParkedAnswer::Full);
        }
        self.run(
            "INSERT INTO parked (node, number, shard, shards, sessions, written, bytes) VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (node, number) DO UPDATE SET shard = $3, shards = $4, sessions = $5, written = $6, bytes = $7",
            &[
                node,
                &i64::from(group.number),
                &i64::from(group.shard),
                &i64::from(group.shards),
                &i64::from(group.sessions),
                &int(group.written.0),
                &&group.bytes[..],
            ],
        )?;
        Ok(StoreParkedAnswer::Stored)
    }
}

impl Answers<ParkedGroups, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ParkedGroups) -> Result<Part<ParkedGroup>> {
        let after = asked.after.map_or(-1, i64::from);
        let rows = self.db.query(
            "SELECT number, shard, shards, sessions, written, bytes FROM parked WHERE node = $1 AND number > $2
             ORDER BY number LIMIT $3",
            &[&self.node.name, &after, &(i64::from(asked.page.entries) + 1)],
        )?;
        let (mut entries, mut room) = (Vec::new(), Room::new(asked.page));
        for row in &rows {
            if !room.takes(blob(row, 5)?.len()) {
                return Ok(Part { entries, more: true });
            }
            entries.push(group(row)?);
        }
        Ok(Part { entries, more: false })
    }
}

fn group(row: &Row) -> Result<ParkedGroup> {
    let short = |column| {
        let n = number(row, column)?;
        u16::try_from(n).map_err(|_| Error::Corrupt("a number out of its range"))
    };
    Ok(ParkedGroup {
        number: number(row, 0)?,
        shard: short(1)?,
        shards: short(2)?,
        sessions: number(row, 3)?,
        written: ms(row, 4)?,
        bytes: Bytes::copy_from_slice(blob(row, 5)?),
    })
}

impl Answers<ForgetParked, Error> for Transaction<'_> {
    fn answer(&mut self, _: &ForgetParked) -> Result<()> {
        self.run("DELETE FROM parked WHERE node = $1", &[&self.node.name]).map(drop)
    }
}
