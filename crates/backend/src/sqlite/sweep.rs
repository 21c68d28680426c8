//! What is swept now and then: notifications that expired, and what nobody asks for any more.

use super::column::{int, notification_id};
use super::transaction::Transaction;
use super::{account, broadcast, ending, event, links, push};
use carillon_core::model::*;
use carillon_core::ports::Part;
use carillon_core::ports::store::idempotency::RESERVED_MS;
use carillon_core::ports::store::notifications::Sweep;
use carillon_core::ports::store::{Answers, OPERATION_KEPT_MS};
use rusqlite::{Connection, Error, Result, params};

/// Ends what expired, and forgets what nobody asks for any more: old traces, idempotency keys and operations.
impl Answers<Sweep, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &Sweep) -> Result<Part<Trace>> {
        let Sweep { now, forget, max } = asked;
        let traces = ending::expire(self, *now, *max)?;
        forget_traces(self, *forget, *max)?;
        self.run(
            "DELETE FROM idempotency WHERE seq IN
                 (SELECT seq FROM idempotency WHERE since <= ?1 ORDER BY since LIMIT ?2)",
            params![reserved_before(*now), max],
        )?;
        self.run(
            "DELETE FROM operation WHERE id IN (SELECT id FROM operation WHERE id < ?1 ORDER BY id LIMIT ?2)",
            params![first_kept(*now), max],
        )?;
        event::forget(self, *forget, *max)?;
        links::forget(self, *forget, *max)?;
        broadcast::sweep(self, *now, *forget, *max)?;
        account::release_names(self, *now, *max)?;
        let more = has_more(self.db, asked)?;
        Ok(Part { entries: traces, more })
    }
}

/// Whether a sweep leaves anything to the next one.
pub(super) fn has_more(db: &Connection, asked: &Sweep) -> Result<bool> {
    let more: bool = db
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM notification WHERE expires <= ?1)
             OR EXISTS (SELECT 1 FROM trace WHERE ended < ?2)
             OR EXISTS (SELECT 1 FROM idempotency WHERE since <= ?3)
             OR EXISTS (SELECT 1 FROM operation WHERE id < ?4) OR EXISTS (SELECT 1 FROM held_name WHERE until <= ?1)",
        )?
        .query_row(
            params![int(asked.now.0), int(asked.forget.0), reserved_before(asked.now), first_kept(asked.now)],
            |row| row.get(0),
        )?;
    Ok(more
        || event::has_old(db, asked.forget)?
        || links::has_old(db, asked.forget)?
        || broadcast::has_more(db, asked.now, asked.forget)?)
}

/// Idempotency keys reserved no later than this are forgotten.
fn reserved_before(now: UnixMs) -> i64 {
    int(now.0.saturating_sub(RESERVED_MS))
}

/// Operations before this one are forgotten.
fn first_kept(now: UnixMs) -> [u8; 16] {
    OperationId::first_at(UnixMs(now.0.saturating_sub(OPERATION_KEPT_MS))).0.to_be_bytes()
}

/// Forgets traces, with the pushes of their notifications, and the runs that held nothing else.
fn forget_traces(write: &Transaction<'_>, forget: UnixMs, max: u32) -> Result<()> {
    let forgotten = write
        .db
        .prepare_cached(
            "DELETE FROM trace WHERE id IN (SELECT id FROM trace WHERE ended < ?1 ORDER BY ended LIMIT ?2) RETURNING run, id",
        )?
        .query_map(params![int(forget.0), max], |row| Ok((row.get(0)?, notification_id(row, 1)?)))?
        .collect::<Result<Vec<(i64, NotificationId)>>>()?;
    let (mut runs, ids): (Vec<_>, Vec<_>) = forgotten.into_iter().unzip();
    push::forget_steps(write, &ids)?;
    runs.sort_unstable();
    runs.dedup();
    write.run.clear(write.db, &runs)
}
