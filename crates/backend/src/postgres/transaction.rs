//! What a write works with: the open transaction of a group, and what it changes.

use super::column::Id;
use super::connection::{Connection, Params};
use super::error::Result;
use super::node::Node;
use crate::rows::last::LastItems;
use carillon_core::model::{Item, NotificationId, TopicId, UnixMs};
use carillon_core::ports::Missing;
use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;

/// The open transaction of a group of writes, which carries out the questions that change something: a file per noun says
/// how.
pub(super) struct Transaction<'a> {
    pub(super) db: &'a Connection,
    pub(super) node: &'a Node,
    last: &'a LastItems,
    events: Events,
    /// Topics that it changed: their last items may never come to be.
    changed: HashSet<TopicId>,
    published: Vec<Arc<Item>>,
    /// Whether it has made a push, or made one due.
    pub(super) makes_pushes: Cell<bool>,
}

/// Events of a transaction that are not written yet.
#[derive(Default)]
struct Events {
    notifications: Vec<Id>,
    ended: Vec<i64>,
    opened: Vec<bool>,
}

/// Numbers events behind those that are visible. From here to the commit the transaction holds the row that gives numbers.
const NUMBER_EVENTS: &str = "WITH given AS (
        UPDATE event_number SET newest = newest + cardinality($1::uuid[]) RETURNING newest - cardinality($1::uuid[]) AS first)
    INSERT INTO event (number, notification, ended, opened)
    SELECT given.first + e.place, e.notification, e.ended, e.opened
    FROM given, unnest($1::uuid[], $2::bigint[], $3::boolean[]) WITH ORDINALITY AS e (notification, ended, opened, place)";

impl<'a> Transaction<'a> {
    /// A transaction that has begun.
    pub(super) fn new(db: &'a Connection, node: &'a Node, last: &'a LastItems) -> Transaction<'a> {
        let (events, changed, published) = Default::default();
        Transaction { db, node, last, events, changed, published, makes_pushes: Cell::new(false) }
    }

    /// Runs a statement; how many rows it changed.
    pub(super) fn run(&self, sql: &str, params: Params<'_>) -> Result<u64> {
        self.db.run(sql, params)
    }

    /// Runs a statement about something; whether that is there.
    pub(super) fn change(&self, sql: &str, params: Params<'_>) -> Result<std::result::Result<(), Missing>> {
        Ok(if self.run(sql, params)? == 0 { Err(Missing) } else { Ok(()) })
    }

    /// Notes that a topic has changed. Every change of a topic calls it.
    pub(super) fn topic_changed(&mut self, topic: TopicId) {
        self.changed.insert(topic);
    }

    /// Notes an item to be kept in memory once it is committed.
    pub(super) fn note_published(&mut self, item: Arc<Item>) {
        self.published.push(item);
    }

    /// The last items that are in memory, unless this changed the topic.
    pub(super) fn shared(&self, topic: TopicId) -> Option<&'a LastItems> {
        (!self.changed.contains(&topic)).then_some(self.last)
    }

    /// Notes that a notification ended, or that its link was followed.
    pub(super) fn note_event(&mut self, id: NotificationId, at: UnixMs, opened: bool) {
        self.events.notifications.push(id.into());
        self.events.ended.push(super::column::int(at.0));
        self.events.opened.push(opened);
    }

    /// Gives the events so far their numbers, for whoever needs them before the commit.
    pub(super) fn number_events(&mut self) -> Result<()> {
        let Events { notifications, ended, opened } = std::mem::take(&mut self.events);
        if !notifications.is_empty() {
            self.run(NUMBER_EVENTS, &[&notifications, &ended, &opened])?;
        }
        Ok(())
    }

    /// Commits. The items that may then be shared, and whether it was said to be done.
    pub(super) fn commit(mut self) -> (Vec<Arc<Item>>, Result<()>) {
        let Events { notifications, ended, opened } = std::mem::take(&mut self.events);
        let done = match notifications.is_empty() {
            true => self.db.batch("COMMIT"),
            false => {
                let params: Params<'_> = &[&notifications, &ended, &opened];
                self.db.pipeline_between("", &[(NUMBER_EVENTS, params)], "COMMIT")
            }
        };
        (self.published, done)
    }
}
