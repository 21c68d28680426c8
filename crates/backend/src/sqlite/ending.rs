//! How notifications end: the row moves to `trace`, the payload goes.

use super::column::{code, id_blob, int, jid, ms, notification_id, opt_code, opt_int, opt_ms, opt_text};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::rows::code::Code;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::notifications::{
    self, CancelNotification, CancelNotificationAnswer, EndNotifications, NotificationChange,
};
use carillon_wire::jid::BareJid;
use rusqlite::{Connection, Error, OptionalExtension, Params, Result, Row, params};
use std::sync::LazyLock;

/// An end: what is the same for all notifications that come to it.
#[derive(Clone, Copy)]
struct End {
    state: NotificationState,
    reason: Option<DropReason>,
    at: UnixMs,
}

impl Answers<EndNotifications, Error> for Transaction<'_> {
    fn answer(&mut self, question: &EndNotifications) -> Result<Vec<NotificationId>> {
        let changes: Vec<_> = question.changes.iter().collect();
        Ok(change(self, &changes)?.into_iter().map(|change| change.id).collect())
    }
}

impl Answers<notifications::Trace, Error> for Snapshot<'_> {
    fn answer(&mut self, question: &notifications::Trace) -> Result<Option<Box<Trace>>> {
        trace(self.db, question.id)
    }
}

/// The way of an acknowledgement, the busiest of all writes: two statements for [`TOGETHER`] of them. Returns the ends that these
/// changes did not make, which are few.
pub(super) fn change<'a>(
    write: &mut Transaction<'_>,
    changes: &[&'a NotificationChange],
) -> Result<Vec<&'a NotificationChange>> {
    let (mut ends, mut otherwise) = (Vec::new(), Vec::new());
    for change in changes {
        if change.state == NotificationState::Sent {
            finish_changes(write, &ends, &mut otherwise)?;
            ends.clear();
            write.run(
                "UPDATE notification SET sent = ?2 WHERE id = ?1",
                params![id_blob(change.id), int(change.sent.unwrap_or(change.at).0)],
            )?;
        } else if change.state.is_end() {
            ends.push(*change);
        }
        // Others are not for the asker to set.
    }
    finish_changes(write, &ends, &mut otherwise)?;
    Ok(otherwise)
}

/// Ends all of them, [`TOGETHER`] at a time: a statement costs more than a row.
fn finish_changes<'a>(
    write: &mut Transaction<'_>,
    changes: &[&'a NotificationChange],
    otherwise: &mut Vec<&'a NotificationChange>,
) -> Result<()> {
    let mut chunks = changes.chunks_exact(TOGETHER);
    for chunk in &mut chunks {
        if finish_together(write, chunk)? < chunk.len() {
            otherwise.extend(ended_otherwise(write.db, chunk)?);
        }
    }
    for change in chunks.remainder() {
        let end = End { state: change.state, reason: change.reason, at: change.at };
        if !finish(write, change.id, end, change.sent, change.acknowledged_by)? {
            otherwise.extend(ended_otherwise(write.db, &[change])?);
        }
    }
    Ok(())
}

/// Those of the changes that are not what ended their notifications.
fn ended_otherwise<'a>(
    db: &Connection,
    changes: &[&'a NotificationChange],
) -> Result<Vec<&'a NotificationChange>> {
    let mut otherwise = Vec::new();
    for change in changes {
        if !ended_trace(db, change.id)?.is_some_and(|trace| change.made(&trace)) {
            otherwise.push(*change);
        }
    }
    Ok(otherwise)
}

/// Ends [`TOGETHER`] notifications; how many had not ended. Of two ends of one the first counts.
fn finish_together(write: &mut Transaction<'_>, changes: &[&NotificationChange]) -> Result<usize> {
    let mut insert = write.db.prepare_cached(&INSERT_TOGETHER)?;
    let mut delete = write.db.prepare_cached(&DELETE_TOGETHER)?;
    for (i, change) in changes.iter().enumerate() {
        let (id, first) = (id_blob(change.id), i * COLUMNS);
        insert.raw_bind_parameter(first + 1, id)?;
        insert.raw_bind_parameter(first + 2, change.state.code())?;
        insert.raw_bind_parameter(first + 3, opt_int(change.sent))?;
        insert.raw_bind_parameter(first + 4, int(change.at.0))?;
        insert.raw_bind_parameter(first + 5, change.acknowledged_by.map(Code::code))?;
        insert.raw_bind_parameter(first + 6, change.reason.map(Code::code))?;
        insert.raw_bind_parameter(first + 7, write.run.of(write.db, change.id)?)?;
        delete.raw_bind_parameter(i + 1, id)?;
    }
    let ended = insert.raw_execute()?;
    if ended > 0 {
        changes.iter().for_each(|change| write.run.note(change.id));
    }
    delete.raw_execute()?;
    Ok(ended)
}

/// How many notifications a statement ends that ends many.
const TOGETHER: usize = 16;
/// What is bound for each of them.
const COLUMNS: usize = 7;

// CROSS JOIN: first what was bound, then the row that it is about.
pub(super) static INSERT_TOGETHER: LazyLock<String> = LazyLock::new(|| {
    let values = vec!["(?, ?, ?, ?, ?, ?, ?)"; TOGETHER].join(", ");
    format!(
        "WITH change (id, state, sent, ended, acknowledged_by, reason, run) AS (VALUES {values})
         INSERT OR IGNORE INTO trace (id, domain, local, audience, rank, state, accepted, send_at, stored, sent, ended,
             acknowledged_by, reason, expires, collapse_key, key, run)
         SELECT n.id, n.domain, n.local, n.audience, n.rank, c.state, n.accepted, n.send_at, n.stored,
             coalesce(c.sent, n.sent), c.ended, c.acknowledged_by, c.reason, n.expires, n.collapse_key, n.key,
             c.run
         FROM change c CROSS JOIN notification n ON n.id = c.id"
    )
});
static DELETE_TOGETHER: LazyLock<String> = LazyLock::new(|| {
    let ids = vec!["?"; TOGETHER].join(", ");
    format!("DELETE FROM notification WHERE id IN ({ids})")
});

/// Ends one as acknowledged.
pub(super) fn acknowledged(
    write: &mut Transaction<'_>,
    id: NotificationId,
    at: UnixMs,
    by: AcknowledgedBy,
) -> Result<()> {
    let end = End { state: NotificationState::Acknowledged, reason: None, at };
    finish(write, id, end, None, Some(by)).map(drop)
}

/// Ends one; false when it is not there or has ended.
fn finish(
    write: &mut Transaction<'_>,
    id: NotificationId,
    end: End,
    sent: Option<UnixMs>,
    by: Option<AcknowledgedBy>,
) -> Result<bool> {
    let (key, run) = (id_blob(id), write.run.of(write.db, id)?);
    let moved = write.run(
        "INSERT INTO trace (id, domain, local, audience, rank, state, accepted, send_at, stored, sent, ended,
             acknowledged_by, reason, expires, collapse_key, key, run)
         SELECT id, domain, local, audience, rank, ?2, accepted, send_at, stored, coalesce(?3, sent), ?4, ?5, ?6,
             expires, collapse_key, key, ?7
         FROM notification WHERE id = ?1",
        params![
            key,
            end.state.code(),
            opt_int(sent),
            int(end.at.0),
            by.map(Code::code),
            end.reason.map(Code::code),
            run
        ],
    )?;
    if moved == 0 {
        return Ok(false);
    }
    write.run.note(id);
    write.run("DELETE FROM notification WHERE id = ?1", [key])?;
    Ok(true)
}

impl Answers<CancelNotification, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &CancelNotification) -> Result<CancelNotificationAnswer> {
        let end = End { state: NotificationState::Cancelled, reason: None, at: asked.now };
        let is_new = finish(self, asked.id, end, None, None)?;
        Ok(match ended_trace(self.db, asked.id)?.map(Box::new) {
            Some(trace) if is_new => CancelNotificationAnswer::Cancelled(trace),
            Some(trace) => CancelNotificationAnswer::Ended(trace),
            None => CancelNotificationAnswer::Missing,
        })
    }
}

fn trace(db: &Connection, id: NotificationId) -> Result<Option<Box<Trace>>> {
    if let Some(trace) = ended_trace(db, id)? {
        return Ok(Some(Box::new(trace)));
    }
    let waiting = db
        .prepare_cached(
            "SELECT n.id, n.local, d.name, n.audience, n.rank,
                 CASE WHEN n.due IS NOT NULL THEN ?2 WHEN n.sent IS NOT NULL THEN ?3 ELSE ?4 END,
                 n.accepted, n.send_at, n.stored, n.sent, NULL, NULL, NULL, n.expires, n.collapse_key, n.key, NULL, NULL
             FROM notification n JOIN domain d ON d.id = n.domain WHERE n.id = ?1",
        )?
        .query_row(
            params![
                id_blob(id),
                NotificationState::Scheduled.code(),
                NotificationState::Sent.code(),
                NotificationState::Stored.code()
            ],
            |row| trace_of(row, jid(row, 1, 2)?),
        )
        .optional()?;
    Ok(waiting.map(Box::new))
}

pub(super) fn ended_trace(db: &Connection, id: NotificationId) -> Result<Option<Trace>> {
    db.prepare_cached(
        "SELECT t.id, t.local, d.name, t.audience, t.rank, t.state, t.accepted, t.send_at, t.stored, t.sent, t.ended,
             t.acknowledged_by, t.reason, t.expires, t.collapse_key, t.key, t.opened, t.agent
         FROM trace t JOIN domain d ON d.id = t.domain WHERE t.id = ?1",
    )?
    .query_row([id_blob(id)], |row| trace_of(row, jid(row, 1, 2)?))
    .optional()
}

/// The trace in a row: the id first, then two columns that say whose it is, then the rest as it is listed here.
pub(super) fn trace_of(row: &Row<'_>, to: BareJid) -> Result<Trace> {
    Ok(Trace {
        id: notification_id(row, 0)?,
        to,
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
        key: row.get::<_, Option<u32>>(15)?.map(KeyId),
        opened: opened(row)?,
    })
}

/// When the link of the notification of such a row was followed, and with what.
pub(super) fn opened(row: &Row<'_>) -> Result<Option<Opened>> {
    let Some(at) = opt_ms(row, 16)? else { return Ok(None) };
    Ok(Some(Opened { at, agent: code(row, 17)? }))
}

/// A newer one takes the place of those with its key. One that was given to a connection is not replaced: the device
/// may have it already.
pub(super) fn replaced(
    write: &mut Transaction<'_>,
    account: AccountId,
    collapse_key: &str,
    now: UnixMs,
) -> Result<Vec<Trace>> {
    let ids = ids(
        write.db,
        "SELECT id FROM notification WHERE account = ?1 AND collapse_key = ?2 AND sent IS NULL",
        params![int(account.0), collapse_key],
    )?;
    finish_all(write, &ids, End { state: NotificationState::Replaced, reason: None, at: now })
}

/// Drops the `excess` oldest of the lowest priority.
pub(super) fn over_bound(
    write: &mut Transaction<'_>,
    account: AccountId,
    excess: u64,
    now: UnixMs,
) -> Result<Vec<Trace>> {
    let ids = ids(
        write.db,
        "SELECT id FROM notification WHERE account = ?1 ORDER BY rank DESC, seq LIMIT ?2",
        params![int(account.0), int(excess)],
    )?;
    let reason = Some(DropReason::QueueFull);
    finish_all(write, &ids, End { state: NotificationState::Dropped, reason, at: now })
}

/// Ends what waits for an account that is being deleted, so many at most; how many.
pub(super) fn device_deleted(
    write: &mut Transaction<'_>,
    account: AccountId,
    now: UnixMs,
    max: usize,
) -> Result<usize> {
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let sql = "SELECT id FROM notification WHERE account = ?1 LIMIT ?2";
    let ids = ids(write.db, sql, params![int(account.0), max])?;
    let end = End { state: NotificationState::Dropped, reason: Some(DropReason::DeviceDeleted), at: now };
    for id in &ids {
        finish(write, *id, end, None, None)?;
    }
    Ok(ids.len())
}

/// Ends those whose time to live is over, so many at most.
pub(super) fn expire(write: &mut Transaction<'_>, now: UnixMs, max: u32) -> Result<Vec<Trace>> {
    let expired = ids(
        write.db,
        "SELECT id FROM notification WHERE expires <= ?1 ORDER BY expires LIMIT ?2",
        params![int(now.0), max],
    )?;
    finish_all(write, &expired, End { state: NotificationState::Expired, reason: None, at: now })
}

/// Ends several; their traces as they then are.
fn finish_all(write: &mut Transaction<'_>, ids: &[NotificationId], end: End) -> Result<Vec<Trace>> {
    let mut traces = Vec::with_capacity(ids.len());
    for id in ids {
        finish(write, *id, end, None, None)?;
        traces.extend(ended_trace(write.db, *id)?);
    }
    Ok(traces)
}

fn ids(db: &Connection, sql: &str, params: impl Params) -> Result<Vec<NotificationId>> {
    db.prepare_cached(sql)?.query_map(params, |row| notification_id(row, 0))?.collect()
}
