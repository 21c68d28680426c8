//! The rows of items, which logins, subscriptions and lists of items read alike.

use super::column::{blob, int, ms, text, uint, whole_jid};
use crate::rows::last::LastItems;
use bytes::Bytes;
use carillon_core::model::{DomainId, Item, Revision, TopicId};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result, Row, params};
use std::sync::Arc;

/// What [`item`] reads.
pub(super) const ITEM: &str =
    "SELECT i.revision, i.topic, i.id, i.publisher, i.published, i.payload, t.domain, t.name
    FROM item i JOIN topic t ON t.id = i.topic";

/// The column of [`ITEM`] with the payload.
pub(super) const PAYLOAD: usize = 5;

/// The item that `revision` made, from memory if it is there.
pub(super) fn shared(
    db: &Connection,
    last: &LastItems,
    topic: TopicId,
    revision: Revision,
) -> Result<Arc<Item>> {
    match last.find(topic, revision) {
        Some(item) => Ok(item),
        None => read(db, topic, revision).map(|item| last.keep(item)),
    }
}

/// The item of a topic that `revision` made.
pub(super) fn read(db: &Connection, topic: TopicId, revision: Revision) -> Result<Arc<Item>> {
    db.prepare_cached(&format!("{ITEM} WHERE i.topic = ?1 AND i.revision = ?2"))?
        .query_row(params![topic.0, int(revision.0)], item)
}

/// The item in a row of [`ITEM`].
pub(super) fn item(row: &Row<'_>) -> Result<Arc<Item>> {
    let publisher = match row.get_ref(3)? {
        ValueRef::Null => None,
        _ => Some(whole_jid(row, 3)?),
    };
    Ok(Arc::new(Item {
        revision: Revision(uint(row, 0)?),
        topic: TopicId(row.get(1)?),
        domain: DomainId(row.get(6)?),
        name: text(row, 7)?.into(),
        id: text(row, 2)?,
        publisher,
        published: ms(row, 4)?,
        payload: Bytes::copy_from_slice(blob(row, PAYLOAD)?),
    }))
}
