//! Events: how notifications ended and what happened to rooms, in the order in which they become visible.

use super::column::{blob, int, ms, opt_number, opt_text, uint};
use super::connection::Connection;
use super::ending;
use super::error::{Error, Result};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::rows;
use bytes::Bytes;
use carillon_core::model::{ArchiveId, ArchivedMessage, Event, UnixMs};
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::notifications::{EVENT_BYTES_MAX, EVENTS_MAX, Events, EventsAnswer};
use tokio_postgres::Row;

/// Events that are looked at for one answer: other reads wait meanwhile.
const ROWS_MAX: i64 = 10_000;
/// Of those, how many are read at a time.
const STEP: i64 = 1_000;

impl Answers<Events, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Events) -> Result<EventsAnswer> {
        let Events { after, domain, wanted, max } = asked;
        let (mut events, mut examined, mut looked_at, mut bytes) = (Vec::new(), *after, 0, 0);
        let is_full = |events: &Vec<(u64, Event)>, bytes: usize| {
            events.len() == usize::from(*max) || bytes >= EVENT_BYTES_MAX
        };
        while looked_at < ROWS_MAX && !is_full(&events, bytes) {
            let step = STEP.min(ROWS_MAX - looked_at);
            let rows = self.db.query(EVENTS, &[&int(examined), &step])?;
            looked_at += step;
            for row in &rows {
                if is_full(&events, bytes) {
                    break;
                }
                examined = uint(row, 18)?;
                // Without a name it is of a domain that is gone, or its trace is forgotten.
                let is_theirs = domain.is_none() || opt_number(row, 19)? == domain.map(|domain| domain.0);
                if opt_text(row, 2)?.is_some() && is_theirs {
                    let event = Some(event(row)?).filter(|event| wanted.takes(event));
                    bytes += event.as_ref().map_or(0, Event::bytes);
                    events.extend(event.map(|event| (examined, event)));
                }
            }
            if (rows.len() as i64) < step {
                break;
            }
        }
        let oldest = oldest(self.db)?.map_or(0, |(number, _)| number);
        Ok(EventsAnswer { events, examined, oldest, newest: newest(self.db)? })
    }
}

const EVENTS: &str = "SELECT e.notification, t.local, d.name, t.audience, t.rank, t.state, t.accepted, t.send_at, t.stored, t.sent, t.ended,
        t.acknowledged_by, t.reason, t.expires, t.collapse_key, t.key, t.opened, t.agent, e.number,
        coalesce(e.domain, t.domain), e.opened, e.fact, m.seq, m.received, m.stanza
    FROM event e LEFT JOIN trace t ON t.id = e.notification
        LEFT JOIN domain d ON d.id = coalesce(e.domain, t.domain)
        LEFT JOIN room_message m ON m.seq = e.message AND m.seq > (SELECT erased FROM room WHERE id = m.room)
    WHERE e.number > $1 ORDER BY e.number LIMIT $2";

fn event(row: &Row) -> Result<Event> {
    let Some(fact) = row.try_get::<_, Option<&[u8]>>(21)? else {
        let mut trace = ending::trace(row)?;
        // The event of its end tells what was known then.
        if !row.try_get::<_, bool>(20)? {
            trace.opened = None;
        }
        return Ok(Event::Notification(trace));
    };
    let message = match row.try_get::<_, Option<i64>>(22)? {
        Some(seq) => Some(ArchivedMessage {
            id: ArchiveId(seq.unsigned_abs()),
            received: ms(row, 23)?,
            stanza: Bytes::copy_from_slice(blob(row, 24)?),
        }),
        None => None,
    };
    rows::event::event(fact, message).map_err(|_| Error::Corrupt("an event has a form that is not known"))
}

/// The number of the newest event, also when it is forgotten.
pub(super) fn newest(db: &Connection) -> Result<u64> {
    uint(&db.one("SELECT newest FROM event_number", &[])?, 0)
}

/// Forgets the oldest events: those beyond the bound, and those whose traces are forgotten. At most `max`.
pub(super) fn forget(write: &Transaction<'_>, forget: UnixMs, max: u32) -> Result<()> {
    if has_old(write.db, forget)? {
        write.run(
            "DELETE FROM event WHERE number IN
                 (SELECT number FROM (SELECT number, ended FROM event ORDER BY number LIMIT $3) AS first
                  WHERE number <= $1 OR ended < $2)",
            &[&int(last_forgotten(write.db)?), &int(forget.0), &i64::from(max)],
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
    let row = db.opt("SELECT number, ended FROM event ORDER BY number LIMIT 1", &[])?;
    row.map(|row| Ok((uint(&row, 0)?, uint(&row, 1)?))).transpose()
}

fn last_forgotten(db: &Connection) -> Result<u64> {
    Ok(newest(db)?.saturating_sub(EVENTS_MAX))
}
