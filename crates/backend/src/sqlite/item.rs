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
    page: &Page<'_>,
) -> Result<Answer> {
    let items = match (ids, page.max, page.from) {
        ([], 1, ItemsFrom::Newest) => newest(db, last, topic)?.into_iter().collect(),
        ([], ..) => {
            let Some(stretch) = Stretch::of(db, topic, page.from)? else { return Ok(Answer::Missing) };
            let mut query = db.prepare_cached(&format!("{ITEM} {}", stretch.clause()))?;
            let mut rows = query.query(params![topic.0, stretch.bound, page.max])?;
            let (mut items, mut bytes) = (Vec::new(), 0);
            while let Some(row) = rows.next()? {
                // Looked at before it is copied.
                bytes += blob(row, 5)?.len();
                if bytes > page.bytes_max && !items.is_empty() {
                    break;
                }
                items.push(item(row)?);
            }
            stretch.newest_first(items)
        }
        (ids, ..) => named(db, topic, ids, page.bytes_max)?,
    };
    Ok(Answer::Items(items))
}

/// The ids of a topic's items, without their payloads.
pub(super) fn names(db: &Connection, topic: TopicId, from: &ItemsFrom, max: u32) -> Result<Answer> {
    let Some(stretch) = Stretch::of(db, topic, from)? else { return Ok(Answer::Missing) };
    let ids = db
        .prepare_cached(&format!("SELECT i.id FROM item i {}", stretch.clause()))?
        .query_map(params![topic.0, stretch.bound, max], |row| text(row, 0))?
        .collect::<Result<Vec<_>>>()?;
    let count = db
        .prepare_cached("SELECT items FROM topic WHERE id = ?1")?
        .query_row([topic.0], |row| row.get(0))
        .optional()?;
    Ok(Answer::ItemNames { ids: stretch.newest_first(ids), count: count.unwrap_or(0) })
}

/// Which of a topic's items are asked for.
pub(super) struct Page<'a> {
    pub(super) from: &'a ItemsFrom,
    pub(super) max: u32,
    pub(super) bytes_max: usize,
}

/// Where to begin reading a topic's items, and which way.
struct Stretch {
    /// Not this revision, and none on the other side of it.
    bound: i64,
    is_backward: bool,
}

impl Stretch {
    /// None when the item that it is told by is not there.
    fn of(db: &Connection, topic: TopicId, from: &ItemsFrom) -> Result<Option<Stretch>> {
        let (id, is_backward) = match from {
            ItemsFrom::Newest => return Ok(Some(Stretch { bound: i64::MAX, is_backward: true })),
            ItemsFrom::Oldest => return Ok(Some(Stretch { bound: -1, is_backward: false })),
            ItemsFrom::After(id) => (id, true),
            ItemsFrom::Before(id) => (id, false),
        };
        let bound = db
            .prepare_cached("SELECT revision FROM item WHERE topic = ?1 AND id = ?2")?
            .query_row(params![topic.0, id], |row| row.get(0))
            .optional()?;
        Ok(bound.map(|bound| Stretch { bound, is_backward }))
    }

    fn clause(&self) -> &'static str {
        match self.is_backward {
            true => "WHERE i.topic = ?1 AND i.revision < ?2 ORDER BY i.revision DESC LIMIT ?3",
            false => "WHERE i.topic = ?1 AND i.revision > ?2 ORDER BY i.revision LIMIT ?3",
        }
    }

    fn newest_first<T>(&self, mut read: Vec<T>) -> Vec<T> {
        if !self.is_backward {
            read.reverse();
        }
        read
    }
}

/// The last item, shared with those who log in.
fn newest(db: &Connection, last: &LastItems, topic: TopicId) -> Result<Option<Arc<Item>>> {
    let revision = db
        .prepare_cached("SELECT last FROM topic WHERE id = ?1 AND last IS NOT NULL")?
        .query_row([topic.0], |row| uint(row, 0).map(Revision))
        .optional()?;
    revision.map(|revision| shared(db, last, topic, revision)).transpose()
}

fn named(db: &Connection, topic: TopicId, ids: &[Box<str>], bytes_max: usize) -> Result<Vec<Arc<Item>>> {
    let mut query =
        db.prepare_cached("SELECT revision, length(payload) FROM item WHERE topic = ?1 AND id = ?2")?;
    let mut found: Vec<(i64, usize)> = Vec::new();
    for id in ids.iter().collect::<HashSet<_>>() {
        let row = query.query_row(params![topic.0, id], |row| Ok((row.get(0)?, uint(row, 1)? as usize)));
        found.extend(row.optional()?);
    }
    found.sort_unstable_by_key(|(revision, _)| std::cmp::Reverse(*revision));
    let mut bytes = 0;
    let fits = found.iter().enumerate().take_while(|(at, (_, length))| {
        bytes += length;
        *at == 0 || bytes <= bytes_max
    });
    fits.map(|(_, (revision, _))| read(db, Revision(*revision as u64))).collect()
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
