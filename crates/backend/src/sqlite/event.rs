//! Events: how notifications ended and what happened to rooms, in the order of the commits. A trigger makes those of notifications, so that nothing
//! ends without one.

use super::column::{blob, corrupt, int, jid, ms, uint};
use super::ending;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::rows;
use bytes::Bytes;
use carillon_core::model::{ArchiveId, ArchivedMessage, Event, RoomFact, UnixMs};
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::notifications::{EVENT_BYTES_MAX, EVENTS_MAX, Events, EventsAnswer};
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};

/// Events that are looked at for one answer: other reads wait meanwhile.
const ROWS_MAX: u32 = 10_000;

impl Answers<Events, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Events) -> Result<EventsAnswer> {
        let Events { after, domain, wanted, max } = asked;
        let mut query = self.db.prepare_cached(
            "SELECT t.id, t.local, d.name, t.audience, t.rank, t.state, t.accepted, t.send_at, t.stored, t.sent, t.ended,
                 t.acknowledged_by, t.reason, t.expires, t.collapse_key, t.key, t.opened, t.agent, e.number,
                 coalesce(e.domain, t.domain), e.opened, e.fact, m.seq, m.received, m.stanza
             FROM event e LEFT JOIN trace t ON t.id = e.notification
                 LEFT JOIN domain d ON d.id = coalesce(e.domain, t.domain)
                 LEFT JOIN room_message m ON m.seq = e.message
                     AND m.seq > (SELECT erased FROM room WHERE id = m.room)
             WHERE e.number > ?1 ORDER BY e.number LIMIT ?2",
        )?;
        let mut rows = query.query(params![int(*after), ROWS_MAX])?;
        let (mut events, mut examined, mut bytes) = (Vec::new(), *after, 0);
        while events.len() < usize::from(*max)
            && bytes < EVENT_BYTES_MAX
            && let Some(row) = rows.next()?
        {
            examined = uint(row, 18)?;
            // Without a name it is of a domain that is gone, or its trace is forgotten.
            let is_there = row.get_ref(2)?.as_str_or_null()?.is_some();
            let is_theirs = is_there && domain.is_none_or(|wanted| row.get::<_, u32>(19) == Ok(wanted.0));
            if is_theirs {
                let event = Some(event(row)?).filter(|event| wanted.takes(event));
                bytes += event.as_ref().map_or(0, Event::bytes);
                events.extend(event.map(|event| (examined, event)));
            }
        }
        let oldest = oldest(self.db)?.map_or(0, |(number, _)| number);
        Ok(EventsAnswer { events, examined, oldest, newest: newest(self.db)? })
    }
}

fn event(row: &Row<'_>) -> Result<Event> {
    let Some(fact) = row.get_ref(21)?.as_blob_or_null()? else {
        let mut trace = ending::trace_of(row, jid(row, 1, 2)?)?;
        // The event of its end tells what was known then.
        trace.opened = trace.opened.filter(|_| row.get(20) == Ok(true));
        return Ok(Event::Notification(trace));
    };
    let message = match row.get::<_, Option<i64>>(22)? {
        Some(seq) => Some(ArchivedMessage {
            id: ArchiveId(seq.unsigned_abs()),
            received: ms(row, 23)?,
            stanza: Bytes::copy_from_slice(blob(row, 24)?),
        }),
        None => None,
    };
    rows::event::event(fact, message).map_err(|_| corrupt(21, "an event has a form that is not known"))
}

/// Notes what happened to a room, in the transaction in which it happens.
pub(super) fn note(write: &Transaction<'_>, fact: &RoomFact) -> Result<()> {
    let message = rows::event::message_of(fact).map(|id| int(id.0));
    write.run(
        "INSERT INTO event (notification, ended, domain, fact, message) VALUES (zeroblob(16), ?1, ?2, ?3, ?4)",
        params![int(fact.at.0), fact.domain.0, rows::event::fact_bytes(fact), message],
    )?;
    Ok(())
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
