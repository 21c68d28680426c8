//! Notifications that wait, handed out: to sessions, and when they are due.

use super::column::{
    Id, blob, code, int, jid, ms, notification_id, number, opt_ms, opt_number, opt_text, short,
};
use super::connection::Connection;
use super::error::{Error, Result};
use super::lookup;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::rows::page::Room;
use crate::rows::payload::PayloadColumns;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::notifications::{ClaimDue, Pending, Unended};
use carillon_core::ports::{Page, Part};
use tokio_postgres::Row;

/// What [`notification`] reads.
macro_rules! notifications {
    ($rest:literal) => {
        concat!(
            "SELECT n.id, n.domain, n.local, d.name, n.audience, n.rank, n.accepted, n.expires, n.collapse_key, n.send_at,
                 n.xml, n.payload, n.key, n.resource
             FROM notification n JOIN domain d ON d.id = n.domain ",
            $rest
        )
    };
}

/// Scheduled ones are left out even when they are due: [`ClaimDue`] hands those out, and once is enough.
impl Answers<Pending, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Pending) -> Result<Part<Notification>> {
        let Pending { domain, local, resource, except, page, now } = asked;
        let Some(account) = lookup::account(self.db, *domain, local)? else { return Ok(Part::default()) };
        let except: Vec<Id> = except.iter().map(|id| Id::from(*id)).collect();
        let rows = self.db.query(
            notifications!(
                "WHERE n.account = $1 AND n.due IS NULL AND n.audience = $3 AND (n.expires IS NULL OR n.expires > $2)
                     AND n.id <> ALL ($4::uuid[])
                     AND (n.resource IS NULL OR $6::text IS NULL OR n.resource = $6)
                 ORDER BY n.rank, n.seq LIMIT $5"
            ),
            &[&int(account.0), &int(now.0), &short(Audience::Always), &except, &one_more(*page), resource],
        )?;
        first(&rows, *page)
    }
}

impl Answers<Unended, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Unended) -> Result<Part<Notification>> {
        let Unended { domain, local, after, page, now } = asked;
        let Some(account) = lookup::account(self.db, *domain, local)? else { return Ok(Part::default()) };
        let rows = self.db.query(
            notifications!(
                "WHERE n.account = $1 AND n.id > $3 AND (n.expires IS NULL OR n.expires > $2) ORDER BY n.id LIMIT $4"
            ),
            &[&int(account.0), &int(now.0), &Id::from(*after), &one_more(*page)],
        )?;
        first(&rows, *page)
    }
}

/// As many rows as a page has, and one that says that there are more.
fn one_more(page: Page) -> i64 {
    i64::from(page.entries) + 1
}

/// The first page of what is in the rows.
fn first(rows: &[Row], page: Page) -> Result<Part<Notification>> {
    let (mut entries, mut room) = (Vec::new(), Room::new(page));
    for row in rows {
        if !room.takes(blob(row, 11)?.len()) {
            return Ok(Part { entries, more: true });
        }
        entries.push(notification(row)?);
    }
    Ok(Part { entries, more: false })
}

/// What expired meanwhile is left to the sweep. What is claimed is due when the claim ends. What another group is changing is passed over.
impl Answers<ClaimDue, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ClaimDue) -> Result<Part<Notification>> {
        let ClaimDue { now, until, page } = asked;
        let rows = self.db.query(
            notifications!(
                "WHERE n.due <= $1 AND (n.expires IS NULL OR n.expires > $1) ORDER BY n.due, n.seq LIMIT $2
                 FOR NO KEY UPDATE OF n SKIP LOCKED"
            ),
            &[&int(now.0), &one_more(*page)],
        )?;
        let part = first(&rows, *page)?;
        let ids: Vec<Id> = part.entries.iter().map(|due| due.id.into()).collect();
        self.run("UPDATE notification SET due = $2 WHERE id = ANY ($1::uuid[])", &[&ids, &int(until.0)])?;
        Ok(part)
    }
}

/// Whether anything is due.
pub(super) fn is_due(db: &Connection, now: UnixMs) -> Result<bool> {
    let row = db.one(
        "SELECT EXISTS (SELECT 1 FROM notification WHERE due <= $1 AND (expires IS NULL OR expires > $1))",
        &[&int(now.0)],
    )?;
    Ok(row.try_get(0)?)
}

/// Those of a claim that are still there, in their order.
pub(super) fn claimed(db: &Connection, ids: &[NotificationId]) -> Result<Vec<Notification>> {
    let ids: Vec<Id> = ids.iter().map(|id| Id::from(*id)).collect();
    let rows = db.query(
        notifications!(
            "WHERE n.id = ANY ($1::uuid[]) AND n.due IS NOT NULL ORDER BY array_position($1::uuid[], n.id)"
        ),
        &[&ids],
    )?;
    rows.iter().map(notification).collect()
}

/// The one of this id, if it waits.
pub(super) fn waits(db: &Connection, id: NotificationId, now: UnixMs) -> Result<Option<Notification>> {
    let row = db.opt(
        notifications!("WHERE n.id = $1 AND (n.expires IS NULL OR n.expires > $2)"),
        &[&Id::from(id), &int(now.0)],
    )?;
    row.map(|row| notification(&row)).transpose()
}

fn notification(row: &Row) -> Result<Notification> {
    let resource = opt_text(row, 13)?;
    let payload = PayloadColumns {
        xml: row.try_get(10)?,
        payload: blob(row, 11)?.into(),
        resource: resource.as_deref(),
    }
    .read();
    Ok(Notification {
        id: notification_id(row, 0)?,
        domain: DomainId(number(row, 1)?),
        to: jid(row, 2, 3)?,
        audience: code(row, 4)?,
        priority: code(row, 5)?,
        accepted: ms(row, 6)?,
        expires: opt_ms(row, 7)?,
        collapse_key: opt_text(row, 8)?.map(Into::into),
        key: opt_number(row, 12)?.map(KeyId),
        send_at: opt_ms(row, 9)?,
        payload: payload.ok_or(Error::Corrupt("a payload that this version does not know"))?,
    })
}
