//! Events: how notifications ended, in the order of the commits. A trigger makes them, so that nothing ends without one.

use super::column::{int, jid, uint};
use super::ending;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use carillon_core::model::{States, Trace, UnixMs};
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::notifications::{EVENTS_MAX, Events, EventsAnswer};
use rusqlite::{Connection, Error, OptionalExtension, Result, params};

/// Events that are looked at for one answer: other reads wait meanwhile.
const ROWS_MAX: u32 = 10_000;

impl Answers<Events, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Events) -> Result<EventsAnswer> {
        let Events { after, domain, states, max } = asked;
        let mut query = self.db.prepare_cached(
            "SELECT t.id, t.local, d.name, t.audience, t.rank, t.state, t.accepted, t.send_at, t.stored, t.sent, t.ended,
                 t.acknowledged_by, t.reason, t.expires, t.collapse_key, t.key, t.opened, t.agent, e.number, t.domain, e.opened
             FROM event e LEFT JOIN trace t ON t.id = e.notification LEFT JOIN domain d ON d.id = t.domain
             WHERE e.number > ?1 ORDER BY e.number LIMIT ?2",
        )?;
        let mut rows = query.query(params![int(*after), ROWS_MAX])?;
        let (mut events, mut examined) = (Vec::new(), *after);
        while events.len() < usize::from(*max)
            && let Some(row) = rows.next()?
        {
            examined = uint(row, 18)?;
            // Without a name it is of a domain that is gone, or its trace is forgotten.
            let is_there = row.get_ref(2)?.as_str_or_null()?.is_some();
            let is_theirs = is_there && domain.is_none_or(|wanted| row.get::<_, u32>(19) == Ok(wanted.0));
            if is_theirs {
                let mut trace = ending::trace_of(row, jid(row, 1, 2)?)?;
                // The event of its end tells what was known then.
                trace.opened = trace.opened.filter(|_| row.get(20) == Ok(true));
                events.extend(wanted(*states, trace).map(|trace| (examined, trace)));
            }
        }
        let oldest = oldest(self.db)?.map_or(0, |(number, _)| number);
        Ok(EventsAnswer { events, examined, oldest, newest: newest(self.db)? })
    }
}

fn wanted(states: States, trace: Trace) -> Option<Trace> {
    states.contains(trace.shown()).then_some(trace)
}

/// The number of the newest event, also when it is forgotten.
pub(super) fn newest(db: &Connection) -> Result<u64> {
    let newest = db
        .prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'event'")?
        .query_row([], |row| uint(row, 0))
        .optional()?;
    Ok(newest.unwrap_or(0))
}

/// Forgets the oldest events: those beyond the bound, and those whose traces are forgotten. At most `max`.
pub(super) fn forget(write: &Transaction<'_>, forget: UnixMs, max: u32) -> Result<()> {
    if has_old(write.db, forget)? {
        write.run(
            "DELETE FROM event WHERE number IN
                 (SELECT number FROM (SELECT number, ended FROM event ORDER BY number LIMIT ?3)
                  WHERE number <= ?1 OR ended < ?2)",
            params![int(last_forgotten(write.db)?), int(forget.0), max],
        )?;
    }
    Ok(())
}

/// Whether the oldest is to be forgotten.
pub(super) fn has_old(db: &Connection, forget: UnixMs) -> Result<bool> {
    let Some((number, ended)) = oldest(db)? else { return Ok(false) };
    Ok(ended < forget.0 || number <= last_forgotten(db)?)
}

/// The number of the oldest event, and when its notification ended.
fn oldest(db: &Connection) -> Result<Option<(u64, u64)>> {
    db.prepare_cached("SELECT number, ended FROM event ORDER BY number LIMIT 1")?
        .query_row([], |row| Ok((uint(row, 0)?, uint(row, 1)?)))
        .optional()
}

fn last_forgotten(db: &Connection) -> Result<u64> {
    Ok(newest(db)?.saturating_sub(EVENTS_MAX))
}
