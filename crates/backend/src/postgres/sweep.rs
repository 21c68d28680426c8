//! What is swept now and then: notifications that expired, and what nobody asks for any more.

use super::column::{Id, int};
use super::connection::Connection;
use super::error::{Error, Result};
use super::transaction::Transaction;
use super::{broadcast, ending, event, links};
use carillon_core::model::*;
use carillon_core::ports::Part;
use carillon_core::ports::store::idempotency::RESERVED_MS;
use carillon_core::ports::store::notifications::Sweep;
use carillon_core::ports::store::{Answers, OPERATION_KEPT_MS};

/// Ends what expired, and forgets what nobody asks for any more: old traces, idempotency keys and operations.
impl Answers<Sweep, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &Sweep) -> Result<Part<Trace>> {
        let Sweep { now, forget, max } = asked;
        let most = i64::from(*max);
        let traces = ending::expire(self, *now, *max)?;
        self.run(
            "WITH forgotten AS (
                 DELETE FROM trace WHERE id IN (SELECT id FROM trace WHERE ended < $1 ORDER BY ended LIMIT $2) RETURNING id)
             DELETE FROM push_step WHERE notification IN (SELECT id FROM forgotten)",
            &[&int(forget.0), &most],
        )?;
        super::idempotency::forget(self, reserved_before(*now), most)?;
        self.run(
            "DELETE FROM operation WHERE id IN (SELECT id FROM operation WHERE id < $1 ORDER BY id LIMIT $2)",
            &[&first_kept(*now), &most],
        )?;
        event::forget(self, *forget, *max)?;
        links::forget(self, *forget, *max)?;
        broadcast::sweep(self, *now, *forget, *max)?;
        self.run(
            "DELETE FROM held_name WHERE (domain, local) IN
                 (SELECT domain, local FROM held_name WHERE until <= $1 ORDER BY until LIMIT $2)",
            &[&int(now.0), &most],
        )?;
        Ok(Part { entries: traces, more: has_more(self.db, asked)? })
    }
}

/// Whether a sweep leaves anything to the next one.
pub(super) fn has_more(db: &Connection, asked: &Sweep) -> Result<bool> {
    let row = db.one(
        "SELECT EXISTS (SELECT 1 FROM notification WHERE expires <= $1)
             OR EXISTS (SELECT 1 FROM trace WHERE ended < $2)
             OR EXISTS (SELECT 1 FROM idempotency WHERE since <= $3)
             OR EXISTS (SELECT 1 FROM operation WHERE id < $4) OR EXISTS (SELECT 1 FROM held_name WHERE until <= $1)",
        &[&int(asked.now.0), &int(asked.forget.0), &reserved_before(asked.now), &first_kept(asked.now)],
    )?;
    Ok(row.try_get(0)?
        || event::has_old(db, asked.forget)?
        || links::has_old(db, asked.forget)?
        || broadcast::has_more(db, asked.now, asked.forget)?)
}

/// Idempotency keys reserved no later than this are forgotten.
fn reserved_before(now: UnixMs) -> i64 {
    int(now.0.saturating_sub(RESERVED_MS))
}

/// Operations before this one are forgotten.
fn first_kept(now: UnixMs) -> Id {
    Id(OperationId::first_at(UnixMs(now.0.saturating_sub(OPERATION_KEPT_MS))).0)
}
