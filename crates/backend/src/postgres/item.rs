//! The items of topics.

use super::column::{int, number, text, uint};
use super::connection::{Connection, Params};
use super::error::{Error, Result};
use super::item_row::{ITEM, item};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use carillon_core::model::*;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::items::{ItemNames, ItemNamesAnswer, Items, Publish, Purge, Retract};
use carillon_wire::jid::BareJid;
use std::sync::Arc;
use tokio_postgres::Row;

impl Answers<Publish, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &Publish) -> Result<Option<Arc<Item>>> {
        let Publish { item, keep, bytes_max } = asked;
        let Some(standing) = Standing::of(self.db, item.topic)? else { return Ok(None) };
        let item = Arc::new(Item { revision: Revision(standing.revision.0 + 1), ..item.clone() });
        match keep {
            0 => {
                self.run(
                    "UPDATE topic SET revision = $2 WHERE id = $1",
                    &[&i64::from(item.topic.0), &int(item.revision.0)],
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
        let row = db.opt("SELECT revision, items, bytes FROM topic WHERE id = $1", &[&i64::from(topic.0)])?;
        let standing = |row: Row| {
            Ok(Standing {
                revision: Revision(uint(&row, 0)?),
                items: number(&row, 1)?,
                bytes: uint(&row, 2)?,
            })
        };
        row.map(standing).transpose()
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
    "DELETE FROM item WHERE topic = $1 AND hashtextextended(id, 0) = hashtextextended($2, 0) AND id = $2
     RETURNING octet_length(id) + length(payload)::bigint";
/// Deletes the oldest items.
const OLDEST: &str = "DELETE FROM item WHERE topic = $1
         AND revision IN (SELECT revision FROM item WHERE topic = $1 ORDER BY revision LIMIT $2)
     RETURNING octet_length(id) + length(payload)::bigint";

/// Deletes items by one of these.
fn delete(write: &Transaction<'_>, which: &str, params: Params<'_>) -> Result<Removed> {
    let mut removed = Removed::default();
    for row in write.returning(which, params)? {
        removed.items += 1;
        removed.bytes += uint(&row, 0)?;
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
    let topic = i64::from(item.topic.0);
    let replaced = delete(write, ONE, &[&topic, &item.id])?;
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
        "WITH kept AS (
             INSERT INTO item (topic, revision, id, publisher, published, payload) VALUES ($1, $2, $3, $4, $5, $6))
         UPDATE topic SET revision = $2, items = $7, bytes = $8, last = $2 WHERE id = $1",
        &[
            &topic,
            &int(item.revision.0),
            &item.id,
            &item.publisher.as_ref().map(BareJid::as_str),
            &int(item.published.0),
            &&item.payload[..],
            &i64::from(items),
            &int(bytes),
        ],
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
    delete(write, OLDEST, &[&i64::from(topic.0), &i64::from(count)])
}

impl Answers<Retract, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &Retract) -> Result<std::result::Result<(), Missing>> {
        let gone = delete(self, ONE, &[&i64::from(asked.topic.0), &asked.item])?;
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
        "UPDATE topic SET revision = revision + 1, items = items - $2, bytes = bytes - $3,
             last = (SELECT max(revision) FROM item WHERE topic = $1)
         WHERE id = $1",
        &[&i64::from(topic.0), &i64::from(gone.items), &int(gone.bytes)],
    )?;
    Ok(())
}

impl Answers<Items, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Items) -> Result<Option<Vec<Arc<Item>>>> {
        let topic = i64::from(asked.topic.0);
        if !asked.ids.is_empty() {
            let rows = self.db.query(
                "SELECT revision, length(payload)::bigint FROM item
                 WHERE topic = $1 AND id = ANY ($2::text[])
                     AND hashtextextended(id, 0) = ANY (ARRAY (SELECT hashtextextended(wanted, 0) FROM unnest($2::text[]) AS wanted))
                 ORDER BY revision DESC",
                &[&topic, &asked.ids],
            )?;
            return self.sized(asked, &rows).map(Some);
        }
        let Some(stretch) = Stretch::of(self.db, asked.topic, &asked.from)? else { return Ok(None) };
        // First their sizes: a payload that has no room in the answer is not fetched.
        let columns = "SELECT i.revision, length(i.payload)::bigint FROM item i";
        let sql = format!("{columns} {}", stretch.clause());
        let rows = self.db.query(&sql, &[&topic, &stretch.bound, &i64::from(asked.max)])?;
        Ok(Some(stretch.newest_first(self.sized(asked, &rows)?)))
    }
}

impl Snapshot<'_> {
    /// The items of revisions and their sizes, in their order, as many as have room.
    fn sized(&self, asked: &Items, rows: &[Row]) -> Result<Vec<Arc<Item>>> {
        let (mut revisions, mut bytes): (Vec<i64>, _) = (Vec::new(), 0);
        for row in rows {
            bytes += uint(row, 1)? as usize;
            if bytes > asked.bytes_max && !revisions.is_empty() {
                break;
            }
            revisions.push(row.try_get(0)?);
        }
        if let [revision] = revisions[..]
            && let Some(item) = self.last.find(asked.topic, Revision(revision.unsigned_abs()))
        {
            return Ok(vec![item]);
        }
        let sql = format!(
            "{ITEM} WHERE i.topic = $1 AND i.revision = ANY ($2::bigint[]) ORDER BY array_position($2::bigint[], i.revision)"
        );
        self.db.query(&sql, &[&i64::from(asked.topic.0), &revisions])?.iter().map(item).collect()
    }
}

impl Answers<ItemNames, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ItemNames) -> Result<Option<ItemNamesAnswer>> {
        let Some(stretch) = Stretch::of(self.db, asked.topic, &asked.from)? else { return Ok(None) };
        let topic = i64::from(asked.topic.0);
        let sql = format!("SELECT i.id FROM item i {}", stretch.clause());
        let rows = self.db.query(&sql, &[&topic, &stretch.bound, &i64::from(asked.max)])?;
        let ids = rows.iter().map(|row| text(row, 0)).collect::<Result<Vec<_>>>()?;
        let count = self.db.opt("SELECT items FROM topic WHERE id = $1", &[&topic])?;
        let count = count.map(|row| number(&row, 0)).transpose()?.unwrap_or(0);
        Ok(Some(ItemNamesAnswer { ids: stretch.newest_first(ids), count }))
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
        let found =
            db.opt("SELECT revision FROM item WHERE topic = $1 AND hashtextextended(id, 0) = hashtextextended($2, 0) AND id = $2", &[&i64::from(topic.0), id])?;
        found.map(|row| Ok(Stretch { bound: row.try_get(0)?, is_backward })).transpose()
    }

    fn clause(&self) -> &'static str {
        match self.is_backward {
            true => "WHERE i.topic = $1 AND i.revision < $2 ORDER BY i.revision DESC LIMIT $3",
            false => "WHERE i.topic = $1 AND i.revision > $2 ORDER BY i.revision LIMIT $3",
        }
    }

    fn newest_first<T>(&self, mut read: Vec<T>) -> Vec<T> {
        if !self.is_backward {
            read.reverse();
        }
        read
    }
}
