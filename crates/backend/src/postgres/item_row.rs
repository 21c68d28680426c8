//! The rows of items, which logins, subscriptions and lists of items read alike.

use super::column::{blob, int, ms, number, text, uint, whole_jid};
use super::connection::Connection;
use super::error::{Error, Result};
use super::transaction::Transaction;
use bytes::Bytes;
use carillon_core::model::{DomainId, Item, Revision, TopicId};
use std::sync::Arc;
use tokio_postgres::Row;

/// What [`item`] reads.
pub(super) const ITEM: &str =
    "SELECT i.revision, i.topic, i.id, i.publisher, i.published, i.payload, t.domain, t.name
    FROM item i JOIN topic t ON t.id = i.topic";

/// The item of a topic that `revision` made.
pub(super) fn read(db: &Connection, topic: TopicId, revision: Revision) -> Result<Arc<Item>> {
    let sql = format!("{ITEM} WHERE i.topic = $1 AND i.revision = $2");
    let found = db.opt(&sql, &[&i64::from(topic.0), &int(revision.0)])?;
    item(&found.ok_or(Error::Corrupt("the last item of a topic is missing"))?)
}

/// The item in a row of [`ITEM`].
pub(super) fn item(row: &Row) -> Result<Arc<Item>> {
    let publisher = match row.try_get::<_, Option<&str>>(3)? {
        None => None,
        Some(_) => Some(whole_jid(row, 3)?),
    };
    Ok(Arc::new(Item {
        revision: Revision(uint(row, 0)?),
        topic: TopicId(number(row, 1)?),
        domain: DomainId(number(row, 6)?),
        name: text(row, 7)?.into(),
        id: text(row, 2)?,
        publisher,
        published: ms(row, 4)?,
        payload: Bytes::copy_from_slice(blob(row, 5)?),
    }))
}

impl Transaction<'_> {
    /// A topic's last item, where there is one.
    pub(super) fn newest(&self, topic: TopicId) -> Result<Option<Arc<Item>>> {
        let row = self.db.opt("SELECT last FROM topic WHERE id = $1", &[&i64::from(topic.0)])?;
        let last: Option<i64> = row.map(|row| row.try_get(0)).transpose()?.flatten();
        let Some(revision) = last.map(|last| Revision(last.unsigned_abs())) else { return Ok(None) };
        let shared = self.shared(topic);
        if let Some(item) = shared.and_then(|last| last.find(topic, revision)) {
            return Ok(Some(item));
        }
        let item = read(self.db, topic, revision)?;
        Ok(Some(shared.map_or(item.clone(), |last| last.keep(item))))
    }
}
