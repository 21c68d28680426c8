//! Notifications that wait, handed out: to sessions, and when they are due.

use super::column::{blob, code, corrupt, id_blob, int, jid, ms, notification_id, opt_ms, opt_text};
use super::lookup;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::rows::code::Code;
use crate::rows::page::Room;
use crate::rows::payload::PayloadColumns;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::notifications::{ClaimDue, Pending, Unended};
use carillon_core::ports::{Page, Part};
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, Rows, params};

impl Answers<Pending, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Pending) -> Result<Part<Notification>> {
        match lookup::account(self.db, asked.domain, &asked.local)? {
            Some(account) => waiting(self.db, account, asked),
            None => Ok(Part::default()),
        }
    }
}

impl Answers<Unended, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Unended) -> Result<Part<Notification>> {
        let Unended { domain, local, after, page, now } = asked;
        let Some(account) = lookup::account(self.db, *domain, local)? else { return Ok(Part::default()) };
        let mut query = self.db.prepare_cached(
            "SELECT n.id, n.domain, n.local, d.name, n.audience, n.rank, n.accepted, n.expires, n.collapse_key, n.send_at,
                 n.xml, n.payload, n.key, n.resource
             FROM notification n CROSS JOIN domain d ON d.id = n.domain
             WHERE n.account = ?1 AND n.id > ?3 AND (n.expires IS NULL OR n.expires > ?2) ORDER BY n.id",
        )?;
        let found = params![int(account.0), int(now.0), id_blob(*after)];
        first(&mut query.query(found)?, *page, &[])
    }
}

/// The first page of the notifications that wait for an account, and whether there are more.
///
/// Scheduled ones are left out even when they are due: [`ClaimDue`] hands those out, and once is enough.
fn waiting(db: &Connection, account: AccountId, asked: &Pending) -> Result<Part<Notification>> {
    let Pending { resource, except, page, now, .. } = asked;
    let mut query = db.prepare_cached(WAITING)?;
    let wanted = params![int(account.0), int(now.0), Audience::Always.code(), resource];
    first(&mut query.query(wanted)?, *page, except)
}

// CROSS JOIN: the order of the queue's index must be that of the loop.
const WAITING: &str =
    "SELECT n.id, n.domain, n.local, d.name, n.audience, n.rank, n.accepted, n.expires, n.collapse_key, n.send_at,
         n.xml, n.payload, n.key, n.resource
     FROM notification n CROSS JOIN domain d ON d.id = n.domain
     WHERE n.account = ?1 AND n.due IS NULL AND n.audience = ?3 AND (n.expires IS NULL OR n.expires > ?2)
         AND (n.resource IS NULL OR ?4 IS NULL OR n.resource = ?4)
     ORDER BY n.rank, n.seq";

/// The first page of what is in the rows.
fn first(rows: &mut Rows<'_>, page: Page, except: &[NotificationId]) -> Result<Part<Notification>> {
    let (mut found, mut room) = (Vec::new(), Room::new(page));
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

/// What expired meanwhile is left to the sweep. What is claimed is due when the claim ends.
impl Answers<ClaimDue, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ClaimDue) -> Result<Part<Notification>> {
        let ClaimDue { now, until, page } = asked;
        let mut query = self.db.prepare_cached(
            "SELECT n.id, n.domain, n.local, d.name, n.audience, n.rank, n.accepted, n.expires, n.collapse_key, n.send_at,
                 n.xml, n.payload, n.key, n.resource
             FROM notification n CROSS JOIN domain d ON d.id = n.domain
             WHERE n.due <= ?1 AND (n.expires IS NULL OR n.expires > ?1) ORDER BY n.due, n.seq",
        )?;
        let part = first(&mut query.query([int(now.0)])?, *page, &[])?;
        for due in &part.entries {
            self.run(
                "UPDATE notification SET due = ?2 WHERE id = ?1",
                params![id_blob(due.id), int(until.0)],
            )?;
        }
        Ok(part)
    }
}

/// Whether anything is due.
pub(super) fn is_due(db: &Connection, now: UnixMs) -> Result<bool> {
    db.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM notification WHERE due <= ?1 AND (expires IS NULL OR expires > ?1))",
    )?
    .query_row([int(now.0)], |row| row.get(0))
}

/// Those of a claim that are still there, in their order.
pub(super) fn claimed(db: &Connection, ids: &[NotificationId]) -> Result<Vec<Notification>> {
    let mut query = db.prepare_cached(
        "SELECT n.id, n.domain, n.local, d.name, n.audience, n.rank, n.accepted, n.expires, n.collapse_key, n.send_at,
             n.xml, n.payload, n.key, n.resource
         FROM notification n CROSS JOIN domain d ON d.id = n.domain WHERE n.id = ?1 AND n.due IS NOT NULL",
    )?;
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        found.extend(query.query_row([id_blob(*id)], notification).optional()?);
    }
    Ok(found)
}

/// The one of this id, if it waits.
pub(super) fn waits(db: &Connection, id: NotificationId, now: UnixMs) -> Result<Option<Notification>> {
    db.prepare_cached(
        "SELECT n.id, n.domain, n.local, d.name, n.audience, n.rank, n.accepted, n.expires, n.collapse_key, n.send_at,
             n.xml, n.payload, n.key, n.resource
         FROM notification n CROSS JOIN domain d ON d.id = n.domain
         WHERE n.id = ?1 AND (n.expires IS NULL OR n.expires > ?2)",
    )?
    .query_row(params![id_blob(id), int(now.0)], notification)
    .optional()
}

fn notification(row: &Row<'_>) -> Result<Notification> {
    let resource = opt_text(row, 13)?;
    let payload =
        PayloadColumns { xml: row.get(10)?, payload: blob(row, 11)?.into(), resource: resource.as_deref() }
            .read();
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
        payload: payload.ok_or_else(|| corrupt(11, "a payload that this version does not know"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Options, SqliteStore};
    use super::*;
    use carillon_core::ports::Store;

    #[test]
    fn a_page_is_read_from_the_index_in_its_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        SqliteStore::open(Options::new(&path)).expect("opens").close();
        let db = Connection::open(&path).expect("opens");
        let mut plan = db.prepare(&format!("EXPLAIN QUERY PLAN {WAITING}")).expect("prepares");
        let steps =
            plan.query_map(params![1, 0, 2, "phone"], |row| row.get::<_, String>("detail")).expect("a plan");
        let steps: Vec<_> = steps.map(|step| step.expect("text")).collect();
        assert_eq!(
            steps,
            [
                "SEARCH n USING INDEX notification_queue (account=? AND due=?)",
                "SEARCH d USING INTEGER PRIMARY KEY (rowid=?)"
            ]
        );
    }
}
