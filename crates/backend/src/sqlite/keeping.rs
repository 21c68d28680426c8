//! Notifications kept, many at a time: a statement costs more than a row, so those that follow each other in a group share
//! two.

use super::column::{id_blob, int, opt_int, uint};
use super::ending;
use super::push;
use super::transaction::Transaction;
use crate::rows::code::Code;
use crate::rows::payload::PayloadColumns;
use crate::rows::push::Tells;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::notifications::{StoreNotification, StoreNotificationAnswer};
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, Statement, params};
use std::sync::LazyLock;

impl Answers<StoreNotification, Error> for Transaction<'_> {
    fn answer(&mut self, question: &StoreNotification) -> Result<StoreNotificationAnswer> {
        keep(self, question)
    }
}

/// What there is before a notification is kept.
struct Found {
    account: AccountId,
    /// How many the account has that have not ended, scheduled ones included: nothing bounds those later.
    waiting: u64,
    /// Whether there is, or was, a notification of this id.
    known: bool,
    /// Where pushes for the account go.
    registrations: u64,
}

/// Keeps all of them, in their order; an answer for each.
pub(super) fn keep_all(
    write: &mut Transaction<'_>,
    keeps: &[&StoreNotification],
) -> Result<Vec<StoreNotificationAnswer>> {
    let mut answers = Vec::with_capacity(keeps.len());
    let mut chunks = keeps.chunks_exact(TOGETHER);
    for chunk in &mut chunks {
        if keep_together(write, chunk)? {
            answers.extend(chunk.iter().map(|_| StoreNotificationAnswer::Stored { ended: Vec::new() }));
        } else {
            for keep in chunk {
                answers.push(self::keep(write, keep)?);
            }
        }
    }
    for keep in chunks.remainder() {
        answers.push(self::keep(write, keep)?);
    }
    Ok(answers)
}

/// Keeps [`TOGETHER`] notifications by two statements, where nothing stands out: every account is there, no
/// notification was kept before, none takes another's place. Otherwise nothing is changed, and each goes alone.
fn keep_together(write: &Transaction<'_>, keeps: &[&StoreNotification]) -> Result<bool> {
    if keeps.iter().any(|keep| keep.notification.collapse_key.is_some()) {
        return Ok(false);
    }
    let Some(accounts) = look_together(write, keeps)? else { return Ok(false) };
    let mut insert = write.db.prepare_cached(&INSERT_TOGETHER)?;
    for (i, (keep, found)) in keeps.iter().zip(&accounts).enumerate() {
        bind(&mut insert, i * COLUMNS, keep, found.account)?;
    }
    insert.raw_execute()?;
    for (keep, found) in keeps.iter().zip(accounts) {
        wake(write, keep, &found)?;
    }
    Ok(true)
}

/// It is pushed to its account's registrations, if there are any.
fn wake(write: &Transaction<'_>, keep: &StoreNotification, found: &Found) -> Result<()> {
    match &keep.wake {
        Some(wake) if found.registrations > 0 => {
            push::wake(write, found.account, wake, Tells::Notification(keep.notification.id))
        }
        _ => Ok(()),
    }
}

/// The accounts that they are for; none when anything stands out.
fn look_together(write: &Transaction<'_>, keeps: &[&StoreNotification]) -> Result<Option<Vec<Found>>> {
    let mut look = write.db.prepare_cached(&LOOK_TOGETHER)?;
    for (i, keep) in keeps.iter().enumerate() {
        let notification = &keep.notification;
        look.raw_bind_parameter(3 * i + 1, notification.domain.0)?;
        look.raw_bind_parameter(3 * i + 2, notification.to.local().unwrap_or_default())?;
        look.raw_bind_parameter(3 * i + 3, id_blob(notification.id))?;
    }
    let mut accounts: Vec<Found> = Vec::with_capacity(keeps.len());
    let mut rows = look.raw_query();
    while let Some(row) = rows.next()? {
        let found = found(row)?;
        let Some(keep) = keeps.get(accounts.len()) else { break };
        let before = accounts.iter().filter(|other| other.account == found.account).count() as u64;
        if found.known || found.waiting + before >= u64::from(keep.queue_max) {
            return Ok(None);
        }
        accounts.push(found);
    }
    // An account that is not there has no row.
    Ok((accounts.len() == keeps.len()).then_some(accounts))
}

/// Keeps one.
fn keep(write: &mut Transaction<'_>, keep: &StoreNotification) -> Result<StoreNotificationAnswer> {
    let StoreNotification { notification, queue_max, now, .. } = keep;
    let Some(local) = notification.to.local() else { return Ok(StoreNotificationAnswer::NoAccount) };
    let Some(found) = look(write.db, notification, local)? else {
        return Ok(StoreNotificationAnswer::NoAccount);
    };
    if found.known {
        if notification.is_due(*now) {
            // It waits for the device from now on, behind what does already.
            write.run(
                "UPDATE notification SET due = NULL, stored = ?2, seq = (SELECT max(seq) + 1 FROM notification)
                 WHERE id = ?1 AND due IS NOT NULL",
                params![id_blob(notification.id), int(now.0)],
            )?;
        }
        return Ok(StoreNotificationAnswer::Known);
    }
    let mut ended = match &notification.collapse_key {
        Some(key) => ending::replaced(write, found.account, key, *now)?,
        None => Vec::new(),
    };
    let mut insert = write.db.prepare_cached(&INSERT_ONE)?;
    bind(&mut insert, 0, keep, found.account)?;
    insert.raw_execute()?;
    wake(write, keep, &found)?;
    let excess = (found.waiting + 1).saturating_sub(u64::from(*queue_max)).saturating_sub(ended.len() as u64);
    if excess > 0 {
        ended.extend(ending::over_bound(write, found.account, excess, *now)?);
    }
    Ok(StoreNotificationAnswer::Stored { ended })
}

/// One statement for the three, because the statement costs more than what it looks up.
fn look(db: &Connection, notification: &Notification, local: &str) -> Result<Option<Found>> {
    db.prepare_cached(
        "SELECT a.id, (SELECT count(*) FROM notification WHERE account = a.id),
             EXISTS (SELECT 1 FROM notification WHERE id = ?3) OR EXISTS (SELECT 1 FROM trace WHERE id = ?3), a.registrations
         FROM account a WHERE a.domain = ?1 AND a.local = ?2",
    )?
    .query_row(params![notification.domain.0, local, id_blob(notification.id)], found)
    .optional()
}

fn found(row: &Row<'_>) -> Result<Found> {
    Ok(Found {
        account: AccountId(uint(row, 0)?),
        waiting: uint(row, 1)?,
        known: row.get(2)?,
        registrations: uint(row, 3)?,
    })
}

/// Binds the columns of one notification, behind the first `from` parameters.
fn bind(insert: &mut Statement<'_>, from: usize, keep: &StoreNotification, account: AccountId) -> Result<()> {
    let StoreNotification { notification, now, .. } = keep;
    let due = notification.send_at.filter(|at| at > now);
    // A scheduled one counts as stored from when it waits for the device.
    let stored = if due.is_none() { Some(*now) } else { None };
    let PayloadColumns { xml, payload, resource } = PayloadColumns::of(&notification.payload);
    insert.raw_bind_parameter(from + 1, id_blob(notification.id))?;
    insert.raw_bind_parameter(from + 2, int(account.0))?;
    insert.raw_bind_parameter(from + 3, notification.domain.0)?;
    insert.raw_bind_parameter(from + 4, notification.to.local().unwrap_or_default())?;
    insert.raw_bind_parameter(from + 5, notification.audience.code())?;
    insert.raw_bind_parameter(from + 6, notification.priority.code())?;
    insert.raw_bind_parameter(from + 7, int(notification.accepted.0))?;
    insert.raw_bind_parameter(from + 8, opt_int(notification.expires))?;
    insert.raw_bind_parameter(from + 9, notification.collapse_key.as_deref())?;
    insert.raw_bind_parameter(from + 10, opt_int(notification.send_at))?;
    insert.raw_bind_parameter(from + 11, opt_int(due))?;
    insert.raw_bind_parameter(from + 12, opt_int(stored))?;
    insert.raw_bind_parameter(from + 13, xml)?;
    insert.raw_bind_parameter(from + 14, payload)?;
    insert.raw_bind_parameter(from + 15, notification.key.map(|key| key.0))?;
    insert.raw_bind_parameter(from + 16, resource)
}

/// How many notifications a statement keeps that keeps many.
const TOGETHER: usize = 16;
/// What is bound for each of them.
const COLUMNS: usize = 16;

/// The beginning of a statement that keeps notifications; `(?, …)` for each follows.
const INSERT: &str = "INSERT INTO notification (id, account, domain, local, audience, rank, accepted, expires, \
     collapse_key, send_at, due, stored, xml, payload, key, resource) VALUES ";

/// What is bound for one notification.
const ROW: &str = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

static INSERT_ONE: LazyLock<String> = LazyLock::new(|| format!("{INSERT}{ROW}"));

static INSERT_TOGETHER: LazyLock<String> =
    LazyLock::new(|| format!("{INSERT}{}", [ROW; TOGETHER].join(", ")));

// CROSS JOIN: in the order of what was bound.
static LOOK_TOGETHER: LazyLock<String> = LazyLock::new(|| {
    let values = ["(?, ?, ?)"; TOGETHER].join(", ");
    format!(
        "WITH keep (domain, local, id) AS (VALUES {values})
         SELECT a.id, (SELECT count(*) FROM notification WHERE account = a.id),
             EXISTS (SELECT 1 FROM notification n WHERE n.id = k.id) OR EXISTS (SELECT 1 FROM trace t WHERE t.id = k.id),
             a.registrations
         FROM keep k CROSS JOIN account a ON a.domain = k.domain AND a.local = k.local"
    )
});
