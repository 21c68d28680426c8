//! The items of topics.

use super::column::{blob, int, ms, text, uint, whole_jid};
use super::last::LastItems;
use super::topic;
use super::write::Write;
use bytes::Bytes;
use carillon_core::model::*;
use carillon_core::ports::Answer;
use carillon_wire::jid::BareJid;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use std::collections::HashSet;
use std::sync::Arc;

const ITEM: &str = "SELECT i.revision, i.topic, i.id, i.publisher, i.published, i.payload, t.domain, t.name
    FROM item i JOIN topic t ON t.id = i.topic";

pub(super) fn publish(write: &mut Write<'_>, item: &Item, keep: u32) -> Result<Answer> {
    if !topic::exists(write.db, item.topic)? {
        return Ok(Answer::Missing);
    }
    let item = Arc::new(Item { revision: write.advance(), ..item.clone() });
    if keep > 0 {
        insert(write, &item)?;
        trim(write, item.topic, keep)?;
        write.note_published(item.clone());
    }
    Ok(Answer::Published(item))
}

/// Adds an item as the last of its topic, in place of one of the same id.
fn insert(write: &Write<'_>, item: &Item) -> Result<()> {
    let replaced =
        write.run("DELETE FROM item WHERE topic = ?1 AND id = ?2", params![item.topic.0, item.id])?;
    write.run(
        "INSERT INTO item (revision, topic, id, publisher, published, payload) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            int(item.revision.0),
            item.topic.0,
            item.id,
            item.publisher.as_ref().map(BareJid::as_str),
            int(item.published.0),
            &item.payload[..]
        ],
    )?;
    write.run(
        "UPDATE topic SET items = items + 1 - ?2, last = ?3 WHERE id = ?1",
        params![item.topic.0, replaced as i64, int(item.revision.0)],
    )?;
    Ok(())
}

/// Removes the oldest items of a topic over `keep`.
pub(super) fn trim(write: &Write<'_>, topic: TopicId, keep: u32) -> Result<()> {
    let kept: u32 = write
        .db
        .prepare_cached("SELECT items FROM topic WHERE id = ?1")?
        .query_row([topic.0], |row| row.get(0))?;
    let excess = kept.saturating_sub(keep);
    if excess == 0 {
        return Ok(());
    }
    write.run(
        "DELETE FROM item WHERE revision IN
             (SELECT revision FROM item WHERE topic = ?1 ORDER BY revision LIMIT ?2)",
        params![topic.0, excess],
    )?;
    removed(write, topic, excess as usize)
}

pub(super) fn retract(write: &mut Write<'_>, topic: TopicId, id: &str) -> Result<Answer> {
    if write.run("DELETE FROM item WHERE topic = ?1 AND id = ?2", params![topic.0, id])? == 0 {
        return Ok(Answer::Missing);
    }
    removed(write, topic, 1)?;
    write.advance();
    Ok(Answer::Done)
}

pub(super) fn purge(write: &mut Write<'_>, topic: TopicId) -> Result<Answer> {
    let count = write.run("DELETE FROM item WHERE topic = ?1", [topic.0])?;
    if count > 0 {
        removed(write, topic, count)?;
        write.advance();
    }
    Ok(Answer::Done)
}

/// Brings a topic's own figures in line after `count` of its items were removed.
fn removed(write: &Write<'_>, topic: TopicId, count: usize) -> Result<()> {
    write.run(
        "UPDATE topic SET items = items - ?2, last = (SELECT max(revision) FROM item WHERE topic = ?1)
         WHERE id = ?1",
        params![topic.0, count as i64],
    )?;
    Ok(())
}

pub(super) fn list(
    db: &Connection,
    last: &LastItems,
    topic: TopicId,
    ids: &[Box<str>],
    max: u32,
) -> Result<Answer> {
    let items = match (ids, max) {
        ([], 1) => newest(db, last, topic)?.into_iter().collect(),
        ([], max) => db
            .prepare_cached(&format!("{ITEM} WHERE i.topic = ?1 ORDER BY i.revision DESC LIMIT ?2"))?
            .query_map(params![topic.0, max], item)?
            .collect::<Result<_>>()?,
        (ids, _) => named(db, topic, ids)?,
    };
    Ok(Answer::Items(items))
}

/// The last item, shared with those who log in.
fn newest(db: &Connection, last: &LastItems, topic: TopicId) -> Result<Option<Arc<Item>>> {
    let revision = db
        .prepare_cached("SELECT last FROM topic WHERE id = ?1 AND last IS NOT NULL")?
        .query_row([topic.0], |row| uint(row, 0).map(Revision))
        .optional()?;
    revision.map(|revision| shared(db, last, topic, revision)).transpose()
}

fn named(db: &Connection, topic: TopicId, ids: &[Box<str>]) -> Result<Vec<Arc<Item>>> {
    let mut query = db.prepare_cached(&format!("{ITEM} WHERE i.topic = ?1 AND i.id = ?2"))?;
    let mut items = Vec::new();
    for id in ids.iter().collect::<HashSet<_>>() {
        items.extend(query.query_row(params![topic.0, id], item).optional()?);
    }
    items.sort_by_key(|item| std::cmp::Reverse(item.revision));
    Ok(items)
}

/// The item that `revision` made, from memory if it is there.
pub(super) fn shared(
    db: &Connection,
    last: &LastItems,
    topic: TopicId,
    revision: Revision,
) -> Result<Arc<Item>> {
    match last.find(topic, revision) {
        Some(item) => Ok(item),
        None => read(db, revision).map(|item| last.keep(item)),
    }
}

/// The item that `revision` made.
pub(super) fn read(db: &Connection, revision: Revision) -> Result<Arc<Item>> {
    db.prepare_cached(&format!("{ITEM} WHERE i.revision = ?1"))?.query_row([int(revision.0)], item)
}

fn item(row: &Row<'_>) -> Result<Arc<Item>> {
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
        payload: Bytes::copy_from_slice(blob(row, 5)?),
    }))
}
