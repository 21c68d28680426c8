//! Notifications that wait, handed out: to sessions, and when they are due.

use super::column::{blob, code, id_blob, int, jid, ms, notification_id, opt_ms, opt_text};
use super::lookup;
use super::page::Room;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use bytes::Bytes;
use carillon_core::model::*;
use carillon_core::ports::Part;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::notifications::{Pending, TakeDue};
use rusqlite::{Connection, Error, Result, Row, params};

impl Answers<Pending, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Pending) -> Result<Part<Notification>> {
        match lookup::account(self.db, asked.domain, &asked.local)? {
            Some(account) => waiting(self.db, account, asked),
            None => Ok(Part::default()),
        }
    }
}

/// The first page of the notifications that wait for an account, and whether there are more.
///
/// Scheduled ones are left out even when they are due: [`TakeDue`] hands those out, and once is enough.
fn waiting(db: &Connection, account: AccountId, asked: &Pending) -> Result<Part<Notification>> {
    let Pending { except, page, now, .. } = asked;
    // CROSS JOIN: the order of the queue's index must be that of the loop.
    let mut query = db.prepare_cached(
        "SELECT n.id, n.domain, n.local, d.name, n.audience, n.rank, n.accepted, n.expires, n.collapse_key, n.send_at,
             n.xml, n.payload, n.key
         FROM notification n CROSS JOIN domain d ON d.id = n.domain
         WHERE n.account = ?1 AND n.due IS NULL AND (n.expires IS NULL OR n.expires > ?2)
         ORDER BY n.rank, n.accepted, n.seq",
    )?;
    let mut rows = query.query(params![int(account.0), int(now.0)])?;
    let (mut found, mut room) = (Vec::new(), Room::new(*page));
    while let Some(row) = rows.next()? {
        if !except.is_empty() && except.contains(&notification_id(row, 0)?) {
            continue;
        }
        if !room.takes(blob(row, 11)?.len()) {
            return Ok(Part { entries: found, more: true });
        }
        found.push(notification(row)?);
    }
    Ok(Part { entries: found, more: false })
}

/// What expired meanwhile is left to the sweep.
impl Answers<TakeDue, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &TakeDue) -> Result<Part<Notification>> {
        let TakeDue { now, max } = asked;
        let mut query = self.db.prepare_cached(
            "SELECT n.id, n.domain, n.local, d.name, n.audience, n.rank, n.accepted, n.expires, n.collapse_key, n.send_at,
                 n.xml, n.payload, n.key
             FROM notification n CROSS JOIN domain d ON d.id = n.domain
             WHERE n.due <= ?1 AND (n.expires IS NULL OR n.expires > ?1) ORDER BY n.due, n.seq LIMIT ?2",
        )?;
        let mut notifications = query
            .query_map(params![int(now.0), u32::from(*max) + 1], notification)?
            .collect::<Result<Vec<_>>>()?;
        let more = notifications.len() > usize::from(*max);
        notifications.truncate(usize::from(*max));
        for due in &notifications {
            let id = id_blob(due.id);
            match due.audience {
                Audience::Always => self.run(
                    "UPDATE notification SET due = NULL, stored = ?2 WHERE id = ?1",
                    params![id, int(now.0)],
                )?,
                Audience::Active | Audience::Connected => {
                    self.run("DELETE FROM notification WHERE id = ?1", [id])?
                }
            };
        }
        Ok(Part { entries: notifications, more })
    }
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
