//! The items of topics.

use super::column::{blob, int, text, uint};
use super::item_row::{self, ITEM, PAYLOAD, item};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::rows::last::LastItems;
use carillon_core::model::*;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::items::{ItemNames, ItemNamesAnswer, Items, Publish, Purge, Retract};
use carillon_wire::jid::BareJid;
use rusqlite::{Connection, Error, OptionalExtension, Result, params};
use std::collections::HashSet;
use std::sync::Arc;

impl Answers<Publish, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &Publish) -> Result<Option<Arc<Item>>> {
        let Publish { item, keep, bytes_max } = asked;
        let Some(standing) = Standing::of(self.db, item.topic)? else { return Ok(None) };
        let item = Arc::new(Item { revision: Revision(standing.revision.0 + 1), ..item.clone() });
        match keep {
            0 => {
                self.run(
                    "UPDATE topic SET revision = ?2 WHERE id = ?1",
                    params![item.topic.0, int(item.revision.0)],
                )?;
            }
            keep => {
                insert(self, &item, &standing, *keep, *bytes_max)?;
                self.topic_changed(item.topic);
                self.note_published(item.clone());
            }
        }
        Ok(Some(item))
    }
}

/// A topic's revision, and how much it keeps, as its row says: nothing is counted.
struct Standing {
    revision: Revision,
    items: u32,
    /// Of their ids and payloads.
    bytes: u64,
}

impl Standing {
    fn of(db: &Connection, topic: TopicId) -> Result<Option<Standing>> {
        db.prepare_cached("SELECT revision, items, bytes FROM topic WHERE id = ?1")?
            .query_row([topic.0], |row| {
                Ok(Standing { revision: Revision(uint(row, 0)?), items: row.get(1)?, bytes: uint(row, 2)? })
            })
            .optional()
    }
}

/// Items that were removed.
#[derive(Clone, Copy, Default)]
struct Removed {
    items: u32,
    bytes: u64,
}

/// Deletes an item by its id.
const ONE: &str =
    "DELETE FROM item WHERE topic = ?1 AND id = ?2 RETURNING length(CAST(id AS BLOB)) + length(payload)";
/// Deletes the oldest items.
const OLDEST: &str =
    "DELETE FROM item WHERE seq IN (SELECT seq FROM item WHERE topic = ?1 ORDER BY revision LIMIT ?2)
     RETURNING length(CAST(id AS BLOB)) + length(payload)";

/// Deletes items by one of these.
fn delete(write: &Transaction<'_>, which: &str, params: impl rusqlite::Params) -> Result<Removed> {
    let mut delete = write.db.prepare_cached(which)?;
    let mut rows = delete.query(params)?;
    let mut removed = Removed::default();
    while let Some(row) = rows.next()? {
        removed.items += 1;
        removed.bytes += uint(row, 0)?;
    }
    Ok(removed)
}

/// Adds an item as the last of its topic: in place of one of the same id, and of the oldest over `keep` and `bytes_max`.
fn insert(
    write: &Transaction<'_>,
    item: &Item,
    standing: &Standing,
    keep: u32,
    bytes_max: u64,
) -> Result<()> {
    let replaced = delete(write, ONE, params![item.topic.0, item.id])?;
    let mut items = (standing.items + 1).saturating_sub(replaced.items);
    let mut bytes =
        standing.bytes.saturating_sub(replaced.bytes) + (item.id.len() + item.payload.len()) as u64;
    // Before it is there: it stays, however large it is.
    let by_count = remove_oldest(write, item.topic, items.saturating_sub(keep))?;
    (items, bytes) = (items.saturating_sub(by_count.items), bytes.saturating_sub(by_count.bytes));
    while bytes > bytes_max && items > 1 {
        let oldest = remove_oldest(write, item.topic, 1)?;
        if oldest.items == 0 {
            break;
        }
        (items, bytes) = (items - 1, bytes.saturating_sub(oldest.bytes));
    }
    write.run(
        "INSERT INTO item (topic, revision, id, publisher, published, payload) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            item.topic.0,
            int(item.revision.0),
            item.id,
            item.publisher.as_ref().map(BareJid::as_str),
            int(item.published.0),
            &item.payload[..]
        ],
    )?;
    write.run(
        "UPDATE topic SET revision = ?2, items = ?3, bytes = ?4, last = ?2 WHERE id = ?1",
        params![item.topic.0, int(item.revision.0), items, int(bytes)],
    )?;
    Ok(())
}

/// Removes the oldest items of a topic over `keep`, at most `max` of them, as a part of a change of the topic; whether there are more.
pub(super) fn trim(write: &Transaction<'_>, topic: TopicId, keep: u32, max: u32) -> Result<bool> {
    let kept = Standing::of(write.db, topic)?.map_or(0, |standing| standing.items);
    let excess = kept.saturating_sub(keep);
    if excess > 0 {
        let gone = remove_oldest(write, topic, excess.min(max))?;
        removed(write, topic, gone)?;
    }
    Ok(excess > max)
}

fn remove_oldest(write: &Transaction<'_>, topic: TopicId, count: u32) -> Result<Removed> {
    if count == 0 {
        return Ok(Removed::default());
    }
    delete(write, OLDEST, params![topic.0, count])
}

impl Answers<Retract, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &Retract) -> Result<Result<(), Missing>> {
        let gone = delete(self, ONE, params![asked.topic.0, asked.item])?;
        if gone.items == 0 {
            return Ok(Err(Missing));
        }
        removed(self, asked.topic, gone)?;
        self.topic_changed(asked.topic);
        Ok(Ok(()))
    }
}

impl Answers<Purge, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &Purge) -> Result<bool> {
        purge(self, asked.topic, asked.items_max)?;
        Ok(Standing::of(self.db, asked.topic)?.is_some_and(|standing| standing.items > 0))
    }
}

/// Removes the oldest items of a topic, so many at most; how many.
pub(super) fn purge(write: &mut Transaction<'_>, topic: TopicId, max: u32) -> Result<usize> {
    let gone = remove_oldest(write, topic, max)?;
    if gone.items > 0 {
        removed(write, topic, gone)?;
        write.topic_changed(topic);
    }
    Ok(gone.items as usize)
}

/// Brings a topic's own figures in line after items were removed.
fn removed(write: &Transaction<'_>, topic: TopicId, gone: Removed) -> Result<()> {
    write.run(
        "UPDATE topic SET revision = revision + 1, items = items - ?2, bytes = bytes - ?3,
             last = (SELECT max(revision) FROM item WHERE topic = ?1)
         WHERE id = ?1",
        params![topic.0, gone.items, int(gone.bytes)],
    )?;
    Ok(())
}

impl Answers<Items, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Items) -> Result<Option<Vec<Arc<Item>>>> {
        let items = match (&asked.ids[..], asked.max, &asked.from) {
            ([], 1, ItemsFrom::Newest) => newest(self.db, self.last, asked.topic)?.into_iter().collect(),
            ([], ..) => {
                let Some(stretch) = Stretch::of(self.db, asked.topic, &asked.from)? else { return Ok(None) };
                let mut query = self.db.prepare_cached(&format!("{ITEM} {}", stretch.clause()))?;
                let mut rows = query.query(params![asked.topic.0, stretch.bound, asked.max])?;
                let (mut items, mut bytes) = (Vec::new(), 0);
                while let Some(row) = rows.next()? {
                    // Looked at before it is copied.
                    bytes += blob(row, PAYLOAD)?.len();
                    if bytes > asked.bytes_max && !items.is_empty() {
                        break;
                    }
                    items.push(item(row)?);
                }
                stretch.newest_first(items)
            }
            (ids, ..) => named(self.db, asked.topic, ids, asked.bytes_max)?,
        };
        Ok(Some(items))
    }
}

impl Answers<ItemNames, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ItemNames) -> Result<Option<ItemNamesAnswer>> {
        let Some(stretch) = Stretch::of(self.db, asked.topic, &asked.from)? else { return Ok(None) };
        let ids = self
            .db
            .prepare_cached(&format!("SELECT i.id FROM item i {}", stretch.clause()))?
            .query_map(params![asked.topic.0, stretch.bound, asked.max], |row| text(row, 0))?
            .collect::<Result<Vec<_>>>()?;
        let count = self
            .db
            .prepare_cached("SELECT items FROM topic WHERE id = ?1")?
            .query_row([asked.topic.0], |row| row.get(0))
            .optional()?;
        Ok(Some(ItemNamesAnswer { ids: stretch.newest_first(ids), count: count.unwrap_or(0) }))
    }
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
    revision.map(|revision| item_row::shared(db, last, topic, revision)).transpose()
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
    fits.map(|(_, (revision, _))| item_row::read(db, topic, Revision(*revision as u64))).collect()
}
