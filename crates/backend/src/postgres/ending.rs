//! How notifications end: the row moves to `trace`, the payload goes, and there is an event. Many share a statement.

use super::column::{
    Id, code, int, jid, ms, notification_id, opt_code, opt_int, opt_ms, opt_number, opt_text, short,
};
use super::connection::Connection;
use super::error::{Error, Result};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::notifications::{
    self, CancelNotification, CancelNotificationAnswer, EndNotifications, NotificationChange,
};
use std::collections::HashMap;
use tokio_postgres::Row;

impl Answers<EndNotifications, Error> for Transaction<'_> {
    fn answer(&mut self, question: &EndNotifications) -> Result<Vec<NotificationId>> {
        Ok(end_all(self, &[question])?.pop().unwrap_or_default())
    }
}

/// Ends what several ask for, in their order; for each the ends that its changes did not make.
pub(super) fn end_all(
    write: &mut Transaction<'_>,
    asks: &[&EndNotifications],
) -> Result<Vec<Vec<NotificationId>>> {
    let changes: Vec<&NotificationChange> = asks.iter().flat_map(|asked| &asked.changes).collect();
    let mut made = change(write, &changes)?.into_iter();
    let others = |asked: &&EndNotifications| {
        let made = asked.changes.iter().zip(&mut made);
        made.filter(|(_, made)| !made).map(|(change, _)| change.id).collect()
    };
    Ok(asks.iter().map(others).collect())
}

/// Makes changes; of each whether it is what it says now, because of it.
fn change(write: &mut Transaction<'_>, changes: &[&NotificationChange]) -> Result<Vec<bool>> {
    // Others are not for the asker to set.
    let mut made = vec![true; changes.len()];
    let mut ends = Vec::new();
    for (place, change) in changes.iter().enumerate() {
        if change.state == NotificationState::Sent {
            end_changes(write, changes, &std::mem::take(&mut ends), &mut made)?;
            write.run(
                "UPDATE notification SET sent = $2 WHERE id = $1",
                &[&Id::from(change.id), &int(change.sent.unwrap_or(change.at).0)],
            )?;
        } else if change.state.is_end() {
            ends.push(place);
        }
    }
    end_changes(write, changes, &ends, &mut made)?;
    Ok(made)
}

fn end_changes(
    write: &mut Transaction<'_>,
    changes: &[&NotificationChange],
    ends: &[usize],
    made: &mut [bool],
) -> Result<()> {
    let wanted: Vec<End> = ends.iter().map(|place| End::of(changes[*place])).collect();
    let ended = finish(write, &wanted)?;
    let others: Vec<usize> =
        ends.iter().zip(ended).filter(|(_, ended)| !ended).map(|(place, _)| *place).collect();
    if others.is_empty() {
        return Ok(());
    }
    let ids: Vec<_> = others.iter().map(|place| changes[*place].id).collect();
    let traces: HashMap<_, _> =
        ended_traces(write.db, &ids)?.into_iter().map(|trace| (trace.id, trace)).collect();
    for place in others {
        made[place] = traces.get(&changes[place].id).is_some_and(|trace| changes[place].made(trace));
    }
    Ok(())
}

/// The end of a notification.
struct End {
    id: NotificationId,
    state: NotificationState,
    sent: Option<UnixMs>,
    at: UnixMs,
    by: Option<AcknowledgedBy>,
    reason: Option<DropReason>,
}

impl End {
    fn of(change: &NotificationChange) -> End {
        let NotificationChange { id, state, sent, at, acknowledged_by: by, reason } = *change;
        End { id, state, sent, at, by, reason }
    }
}

/// Ends them; of each whether this ended it: it was there, and is not named before.
fn finish(write: &mut Transaction<'_>, ends: &[End]) -> Result<Vec<bool>> {
    if ends.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<Id> = ends.iter().map(|end| end.id.into()).collect();
    let states: Vec<i16> = ends.iter().map(|end| short(end.state)).collect();
    let sent: Vec<Option<i64>> = ends.iter().map(|end| opt_int(end.sent)).collect();
    let at: Vec<i64> = ends.iter().map(|end| int(end.at.0)).collect();
    let by: Vec<Option<i16>> = ends.iter().map(|end| end.by.map(short)).collect();
    let reasons: Vec<Option<i16>> = ends.iter().map(|end| end.reason.map(short)).collect();
    let rows = write.returning(FINISH, &[&ids, &states, &sent, &at, &by, &reasons])?;
    // Their traces, and their events.
    write.note_rows(2 * rows.len());
    let mut ended = vec![false; ends.len()];
    for row in &rows {
        let place: i64 = row.try_get(0)?;
        if let Some(ended) = usize::try_from(place - 1).ok().and_then(|place| ended.get_mut(place)) {
            *ended = true;
        }
    }
    for (end, ended) in ends.iter().zip(&ended) {
        if *ended {
            write.note_event(end.id, end.at, false);
        }
    }
    Ok(ended)
}

const FINISH: &str = "WITH change AS (
        SELECT DISTINCT ON (id) * FROM unnest($1::uuid[], $2::smallint[], $3::bigint[], $4::bigint[], $5::smallint[], $6::smallint[])
            WITH ORDINALITY AS c (id, state, sent, ended, acknowledged_by, reason, place) ORDER BY id, place),
    gone AS (
        DELETE FROM notification n USING change c WHERE n.id = c.id
        RETURNING n.id, n.domain, n.local, n.audience, n.rank, c.state, n.accepted, n.send_at, n.stored,
            coalesce(c.sent, n.sent) AS sent, c.ended, c.acknowledged_by, c.reason, n.expires, n.collapse_key, n.key, c.place),
    kept AS (
        INSERT INTO trace (id, domain, local, audience, rank, state, accepted, send_at, stored, sent, ended,
            acknowledged_by, reason, expires, collapse_key, key)
        SELECT id, domain, local, audience, rank, state, accepted, send_at, stored, sent, ended,
            acknowledged_by, reason, expires, collapse_key, key FROM gone)
    SELECT place FROM gone";

/// Ends one as acknowledged, if it waits.
pub(super) fn acknowledged(
    write: &mut Transaction<'_>,
    id: NotificationId,
    at: UnixMs,
    by: AcknowledgedBy,
) -> Result<()> {
    let state = NotificationState::Acknowledged;
    finish(write, &[End { id, state, sent: None, at, by: Some(by), reason: None }]).map(drop)
}

/// Ends all of them; their traces as they then are.
fn finish_all(
    write: &mut Transaction<'_>,
    rows: &[Row],
    state: NotificationState,
    reason: Option<DropReason>,
    at: UnixMs,
) -> Result<Vec<Trace>> {
    let ids: Vec<NotificationId> = rows.iter().map(|row| notification_id(row, 0)).collect::<Result<_>>()?;
    let ends: Vec<End> =
        ids.iter().map(|id| End { id: *id, state, sent: None, at, by: None, reason }).collect();
    finish(write, &ends)?;
    ended_traces(write.db, &ids)
}

/// A newer one takes the place of those with its key. One that was given to a connection is not replaced: the device
/// may have it already.
pub(super) fn replaced(
    write: &mut Transaction<'_>,
    account: AccountId,
    collapse_key: &str,
    now: UnixMs,
) -> Result<Vec<Trace>> {
    let rows = write.db.query(
        "SELECT id FROM notification WHERE account = $1 AND collapse_key = $2 AND sent IS NULL ORDER BY seq",
        &[&int(account.0), &collapse_key],
    )?;
    finish_all(write, &rows, NotificationState::Replaced, None, now)
}

/// Drops the `excess` oldest of the lowest priority.
pub(super) fn over_bound(
    write: &mut Transaction<'_>,
    account: AccountId,
    excess: u64,
    now: UnixMs,
) -> Result<Vec<Trace>> {
    let rows = write.db.query(
        "SELECT id FROM notification WHERE account = $1 ORDER BY rank DESC, seq LIMIT $2",
        &[&int(account.0), &int(excess)],
    )?;
    finish_all(write, &rows, NotificationState::Dropped, Some(DropReason::QueueFull), now)
}

/// Ends what waits for an account that is being deleted, so many at most; how many.
pub(super) fn device_deleted(
    write: &mut Transaction<'_>,
    account: AccountId,
    now: UnixMs,
    max: i64,
) -> Result<usize> {
    let sql = "SELECT id FROM notification WHERE account = $1 ORDER BY seq LIMIT $2";
    let rows = write.db.query(sql, &[&int(account.0), &max])?;
    finish_all(write, &rows, NotificationState::Dropped, Some(DropReason::DeviceDeleted), now)?;
    Ok(rows.len())
}

/// Ends those whose time to live is over, so many at most.
pub(super) fn expire(write: &mut Transaction<'_>, now: UnixMs, max: u32) -> Result<Vec<Trace>> {
    let rows = write.db.query(
        "SELECT id FROM notification WHERE expires <= $1 ORDER BY expires, seq LIMIT $2",
        &[&int(now.0), &i64::from(max)],
    )?;
    finish_all(write, &rows, NotificationState::Expired, None, now)
}

impl Answers<CancelNotification, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &CancelNotification) -> Result<CancelNotificationAnswer> {
        let state = NotificationState::Cancelled;
        let end = End { id: asked.id, state, sent: None, at: asked.now, by: None, reason: None };
        let is_new = finish(self, &[end])?.contains(&true);
        Ok(match ended_traces(self.db, &[asked.id])?.pop().map(Box::new) {
            Some(trace) if is_new => CancelNotificationAnswer::Cancelled(trace),
            Some(trace) => CancelNotificationAnswer::Ended(trace),
            None => CancelNotificationAnswer::Missing,
        })
    }
}

impl Answers<notifications::Trace, Error> for Snapshot<'_> {
    fn answer(&mut self, question: &notifications::Trace) -> Result<Option<Box<Trace>>> {
        if let Some(trace) = ended_traces(self.db, &[question.id])?.pop() {
            return Ok(Some(Box::new(trace)));
        }
        let waiting = self.db.opt(
            "SELECT n.id, n.local, d.name, n.audience, n.rank,
                 CASE WHEN n.due IS NOT NULL THEN $2::smallint WHEN n.sent IS NOT NULL THEN $3::smallint ELSE $4::smallint END,
                 n.accepted, n.send_at, n.stored, n.sent, NULL::bigint, NULL::smallint, NULL::smallint, n.expires,
                 n.collapse_key, n.key, NULL::bigint, NULL::smallint
             FROM notification n JOIN domain d ON d.id = n.domain WHERE n.id = $1",
            &[
                &Id::from(question.id),
                &short(NotificationState::Scheduled),
                &short(NotificationState::Sent),
                &short(NotificationState::Stored),
            ],
        )?;
        waiting.map(|row| trace(&row).map(Box::new)).transpose()
    }
}

/// The traces of those that have ended and are not forgotten, in their order.
pub(super) fn ended_traces(db: &Connection, ids: &[NotificationId]) -> Result<Vec<Trace>> {
    let ids: Vec<Id> = ids.iter().map(|id| Id::from(*id)).collect();
    db.query(
        "SELECT t.id, t.local, d.name, t.audience, t.rank, t.state, t.accepted, t.send_at, t.stored, t.sent, t.ended,
             t.acknowledged_by, t.reason, t.expires, t.collapse_key, t.key, t.opened, t.agent
         FROM unnest($1::uuid[]) WITH ORDINALITY AS r (id, place) JOIN trace t ON t.id = r.id
         JOIN domain d ON d.id = t.domain ORDER BY r.place",
        &[&ids],
    )?
    .iter()
    .map(trace)
    .collect()
}

/// The trace in a row: the id first, then local part and domain name, then the rest as it is listed here.
pub(super) fn trace(row: &Row) -> Result<Trace> {
    Ok(Trace {
        id: notification_id(row, 0)?,
        to: jid(row, 1, 2)?,
        audience: code(row, 3)?,
        priority: code(row, 4)?,
        state: code(row, 5)?,
        accepted: ms(row, 6)?,
        send_at: opt_ms(row, 7)?,
        stored: opt_ms(row, 8)?,
        sent: opt_ms(row, 9)?,
        ended: opt_ms(row, 10)?,
        acknowledged_by: opt_code(row, 11)?,
        reason: opt_code(row, 12)?,
        expires: opt_ms(row, 13)?,
        collapse_key: opt_text(row, 14)?.map(Into::into),
        key: opt_number(row, 15)?.map(KeyId),
        opened: match opt_ms(row, 16)? {
            None => None,
            Some(at) => Some(Opened { at, agent: code(row, 17)? }),
        },
    })
}
