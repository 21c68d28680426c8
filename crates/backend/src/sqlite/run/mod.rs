//! Runs: the parts of the index of ended notifications by account, each of a range of ids.
//!
//! An index over all accounts has a page for each of them to be written to, and every group of writes changes as many pages as
//! it ends notifications. The index of a run is small, and notifications that end soon after they came belong to the newest run.
//! One that ends late belongs to the run of its id, wherever that is.

use super::column::{id_blob, notification_id};
use carillon_core::model::NotificationId;
use rusqlite::{Connection, OptionalExtension, Result, params};

/// How many notifications end in a run before the next begins. Fewer make fewer pages to be written to, and more runs to be
/// looked through for a list: measured with `store_cost` (docs/performance.md).
pub(super) const FULL: u32 = 2048;

/// The newest run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    number: i64,
    /// The lowest id that it is for.
    first: NotificationId,
    /// The highest id that has ended in it.
    newest: NotificationId,
    /// How many have ended in it, or [`Run::full`] if they are more.
    ended: u32,
    full: u32,
}

impl Run {
    /// The newest run of the store. Looks at `full` traces at most.
    pub(super) fn newest(db: &Connection, full: u32) -> Result<Run> {
        let (number, first) =
            db.query_row("SELECT number, first FROM run ORDER BY number DESC LIMIT 1", [], |row| {
                Ok((row.get(0)?, notification_id(row, 1)?))
            })?;
        let count = "SELECT count(*) FROM (SELECT 1 FROM trace WHERE id >= ?1 LIMIT ?2)";
        let ended = db.query_row(count, params![id_blob(first), full], |row| row.get(0))?;
        let newest = db
            .query_row("SELECT id FROM trace ORDER BY id DESC LIMIT 1", [], |row| notification_id(row, 0))
            .optional()?;
        Ok(Run { number, first, newest: newest.unwrap_or(first).max(first), ended, full })
    }

    /// The number of the run that an id belongs to.
    pub(super) fn of(&self, db: &Connection, id: NotificationId) -> Result<i64> {
        if id >= self.first {
            return Ok(self.number);
        }
        db.prepare_cached(OF)?.query_row([id_blob(id)], |row| row.get(0))
    }

    /// Notes a notification that has ended. One whose end is taken back is noted all the same: the run is a little smaller then.
    pub(super) fn note(&mut self, id: NotificationId) {
        if id >= self.first {
            self.newest = self.newest.max(id);
            self.ended = self.ended.saturating_add(1);
        }
    }

    /// The newest run from now on: the next one if this is full.
    pub(super) fn next(self, db: &Connection) -> Result<Run> {
        let Some(first) = self.newest.0.checked_add(1).filter(|_| self.ended >= self.full) else {
            return Ok(self);
        };
        let (number, first) = (self.number + 1, NotificationId(first));
        db.prepare_cached(BEGIN)?.execute(params![number, id_blob(first)])?;
        Ok(Run { number, first, newest: first, ended: 0, full: self.full })
    }

    /// Removes those of `numbers` that hold nothing any more. Their ids belong to the run before.
    pub(super) fn clear(&self, db: &Connection, numbers: &[i64]) -> Result<()> {
        let mut clear = db.prepare_cached(CLEAR)?;
        for number in numbers.iter().filter(|number| **number != self.number) {
            clear.execute([number])?;
        }
        Ok(())
    }
}

const OF: &str = "SELECT number FROM run WHERE first <= ?1 ORDER BY first DESC LIMIT 1";
const BEGIN: &str = "INSERT INTO run (number, first) VALUES (?1, ?2)";
// The first run stays, so that every id belongs to one.
const CLEAR: &str = "DELETE FROM run WHERE number = ?1 AND number > 0
    AND NOT EXISTS (SELECT 1 FROM trace INDEXED BY trace_run WHERE run = ?1)";

#[cfg(test)]
mod tests;
