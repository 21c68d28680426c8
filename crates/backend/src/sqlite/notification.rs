//! Notifications that wait: stored, handed out, due.

use super::column::{blob, code, id_blob, int, jid, ms, notification_id, opt_ms, opt_text, uint};
use super::keeping::Keep;
use super::page::Room;
use super::write::Write;
use super::{account, ending, keeping};
use bytes::Bytes;
use carillon_core::model::*;
use carillon_core::ports::{Answer, Page};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use std::sync::LazyLock;

pub(super) fn store(write: &mut Write<'_>, keep: Keep<'_>) -> Result<Answer> {
    let Keep { notification, queue_max, now } = keep;
    let Some(local) = notification.to.local() else { return Ok(Answer::Missing) };
    let Some(found) = look(write.db, notification, local)? else { return Ok(Answer::Missing) };
    if found.known {
        return Ok(Answer::Stored { new: false, ended: Vec::new() });
    }
    let mut ended = match &notification.collapse_key {
        Some(key) => ending::replaced(write, found.account, key, now)?,
        None => Vec::new(),
    };
    insert(write, keep, found.account)?;
    let excess = (found.waiting + 1).saturating_sub(u64::from(queue_max)).saturating_sub(ended.len() as u64);
    if excess > 0 {
        ended.extend(ending::over_bound(write, found.account, excess, now)?);
    }
    Ok(Answer::Stored { new: true, ended })
}

/// What there is before a notification is stored.
struct Found {
    account: AccountId,
    /// How many the account has that have not ended, scheduled ones included: nothing bounds those later.
    waiting: u64,
    /// Whether there is, or was, a notification of this id.
    known: bool,
}

/// One statement for the three, because the statement costs more than what it looks up.
fn look(db: &Connection, notification: &Notification, local: &str) -> Result<Option<Found>> {
    db.prepare_cached(
        "SELECT a.id, (SELECT count(*) FROM notification WHERE account = a.id),
             EXISTS (SELECT 1 FROM notification WHERE id = ?3) OR EXISTS (SELECT 1 FROM trace WHERE id = ?3)
         FROM account a WHERE a.domain = ?1 AND a.local = ?2",
    )?
    .query_row(params![notification.domain.0, local, id_blob(notification.id)], |row| {
        Ok(Found { account: AccountId(uint(row, 0)?), waiting: uint(row, 1)?, known: row.get(2)? })
    })
    .optional()
}

fn insert(write: &Write<'_>, keep: Keep<'_>, account: AccountId) -> Result<usize> {
    let mut insert = write.db.prepare_cached(&INSERT_ONE)?;
    keeping::bind(&mut insert, 0, &keep, int(account.0))?;
    insert.raw_execute()
}

static INSERT_ONE: LazyLock<String> = LazyLock::new(|| format!("{}{}", keeping::INSERT, keeping::ROW));

pub(super) fn pending(
    db: &Connection,
    domain: DomainId,
    local: &str,
    except: &[NotificationId],
    page: Page,
    now: UnixMs,
) -> Result<Answer> {
    let (notifications, more) = match account::find(db, domain, local)? {
        Some(account) => waiting(db, account, except, page, now)?,
        None => (Vec::new(), false),
    };
    Ok(Answer::Pending { notifications, more })
}

/// The first page of the notifications that wait for an account, and whether there are more.
///
/// Scheduled ones are left out even when they are due: [`take_due`] hands those out, and once is enough.
fn waiting(
    db: &Connection,
    account: AccountId,
    except: &[NotificationId],
    page: Page,
    now: UnixMs,
) -> Result<(Vec<Pending>, bool)> {
    // CROSS JOIN: the order of the queue's index must be that of the loop.
    let mut query = db.prepare_cached(
        "SELECT n.id, n.domain, n.local, d.name, n.audience, n.rank, n.accepted, n.expires, n.collapse_key, n.send_at,
             n.xml, n.payload, n.key
         FROM notification n CROSS JOIN domain d ON d.id = n.domain
         WHERE n.account = ?1 AND n.due IS NULL AND (n.expires IS NULL OR n.expires > ?2)
         ORDER BY n.rank, n.accepted, n.seq",
    )?;
    let mut rows = query.query(params![int(account.0), int(now.0)])?;
    let (mut found, mut room) = (Vec::new(), Room::new(page));
    while let Some(row) = rows.next()? {
        if !except.is_empty() && except.contains(&notification_id(row, 0)?) {
            continue;
        }
        if !room.takes(blob(row, 11)?.len()) {
            return Ok((found, true));
        }
        found.push(notification(row)?);
    }
    Ok((found, false))
}

/// Takes what is due. What expired meanwhile is left to the sweep.
pub(super) fn take_due(write: &mut Write<'_>, now: UnixMs, max: u16) -> Result<Answer> {
    let mut query = write.db.prepare_cached(
        "SELECT n.id, n.domain, n.local, d.name, n.audience, n.rank, n.accepted, n.expires, n.collapse_key, n.send_at,
             n.xml, n.payload, n.key
         FROM notification n CROSS JOIN domain d ON d.id = n.domain
         WHERE n.due <= ?1 AND (n.expires IS NULL OR n.expires > ?1) ORDER BY n.due, n.seq LIMIT ?2",
    )?;
    let mut notifications = query
        .query_map(params![int(now.0), u32::from(max) + 1], notification)?
        .collect::<Result<Vec<Pending>>>()?;
    let more = notifications.len() > usize::from(max);
    notifications.truncate(usize::from(max));
    for due in &notifications {
        let id = id_blob(due.id);
        match due.audience {
            Audience::Always => write.run(
                "UPDATE notification SET due = NULL, stored = ?2 WHERE id = ?1",
                params![id, int(now.0)],
            )?,
            Audience::Active | Audience::Connected => {
                write.run("DELETE FROM notification WHERE id = ?1", [id])?
            }
        };
    }
    Ok(Answer::Pending { notifications, more })
}

fn notification(row: &Row<'_>) -> Result<Notification> {
    let payload = blob(row, 11)?;
    Ok(Notification {
        id: notification_id(row, 0)?,
        domain: DomainId(row.get(1)?),
        to: jid(row, 2, 3)?,
        audience: code(row, 4)?,
        priority: code(row, 5)?,
        accepted: ms(row, 6)?,
        expires: opt_ms(row, 7)?,
        collapse_key: opt_text(row, 8)?.map(Into::into),
        key: row.get::<_, Option<u32>>(12)?.map(KeyId),
        send_at: opt_ms(row, 9)?,
        payload: match row.get(10)? {
            true => Payload::Xml(Bytes::copy_from_slice(payload)),
            false => Payload::Json(std::str::from_utf8(payload)?.into()),
        },
    })
}
