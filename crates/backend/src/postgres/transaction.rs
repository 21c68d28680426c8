//! What a write works with: the open transaction of a group, and what it changes.

use super::column::Id;
use super::connection::{Connection, Params};
use super::error::{Error, Result};
use super::node::Node;
use crate::rows;
use crate::rows::last::LastItems;
use carillon_core::model::{Item, NotificationId, RoomFact, TopicId, UnixMs};
use carillon_core::ports::Missing;
use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;
use tokio_postgres::Row;

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
    /// About how many rows its statements have changed. What a statement changes besides the rows that it counts is noted where that may be much.
    pub(super) rows: Cell<u64>,
}

/// Events of a transaction that are not written yet.
#[derive(Default)]
struct Events {
    notifications: Vec<Id>,
    ended: Vec<i64>,
    opened: Vec<bool>,
    facts: Facts,
}

/// Those of rooms, in columns.
#[derive(Default)]
struct Facts {
    ended: Vec<i64>,
    domains: Vec<i64>,
    facts: Vec<Vec<u8>>,
    messages: Vec<Option<i64>>,
}

/// Numbers events behind those that are visible. From here to the commit the transaction holds the row that gives numbers.
const NUMBER_EVENTS: &str = "WITH given AS (
        UPDATE event_number SET newest = newest + cardinality($1::uuid[]) RETURNING newest - cardinality($1::uuid[]) AS first)
    INSERT INTO event (number, notification, ended, opened)
    SELECT given.first + e.place, e.notification, e.ended, e.opened
    FROM given, unnest($1::uuid[], $2::bigint[], $3::boolean[]) WITH ORDINALITY AS e (notification, ended, opened, place)";

/// The same of rooms.
const NUMBER_FACTS: &str = "WITH given AS (
        UPDATE event_number SET newest = newest + cardinality($1::bigint[]) RETURNING newest - cardinality($1::bigint[]) AS first)
    INSERT INTO event (number, notification, ended, opened, domain, fact, message)
    SELECT given.first + e.place, '00000000-0000-0000-0000-000000000000'::uuid, e.ended, false, e.domain, e.fact, e.message
    FROM given, unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bigint[]) WITH ORDINALITY
        AS e (ended, domain, fact, message, place)";

impl<'a> Transaction<'a> {
    /// A transaction that has begun.
    pub(super) fn new(db: &'a Connection, node: &'a Node, last: &'a LastItems) -> Transaction<'a> {
        let (events, changed, published) = Default::default();
        let (makes_pushes, rows) = (Cell::new(false), Cell::new(0));
        Transaction { db, node, last, events, changed, published, makes_pushes, rows }
    }

    /// Runs a statement; how many rows it changed.
    pub(super) fn run(&self, sql: &str, params: Params<'_>) -> Result<u64> {
        let changed = self.db.run(sql, params)?;
        self.rows.set(self.rows.get() + changed);
        Ok(changed)
    }

    /// Runs a statement that gives back the rows that it changes.
    pub(super) fn returning(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>> {
        let rows = self.db.query(sql, params)?;
        self.note_rows(rows.len());
        Ok(rows)
    }

    /// The same of one row or none.
    pub(super) fn returning_opt(&self, sql: &str, params: Params<'_>) -> Result<Option<Row>> {
        Ok(self.returning(sql, params)?.into_iter().next())
    }

    /// The same of one row.
    pub(super) fn returning_one(&self, sql: &str, params: Params<'_>) -> Result<Row> {
        self.returning_opt(sql, params)?.ok_or(Error::Corrupt("a row that was just written is missing"))
    }

    /// Notes rows that a statement changed besides those that it told of.
    pub(super) fn note_rows(&self, rows: usize) {
        self.rows.set(self.rows.get() + rows as u64);
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

    /// Notes what happened to a room.
    pub(super) fn note_fact(&mut self, fact: &RoomFact) {
        let Facts { ended, domains, facts, messages } = &mut self.events.facts;
        ended.push(super::column::int(fact.at.0));
        domains.push(fact.domain.0.into());
        facts.push(rows::event::fact_bytes(fact));
        messages.push(rows::event::message_of(fact).map(|id| super::column::int(id.0)));
    }

    /// Gives the events so far their numbers, for whoever needs them before the commit.
    pub(super) fn number_events(&mut self) -> Result<()> {
        let Events { notifications, ended, opened, facts } = std::mem::take(&mut self.events);
        if !notifications.is_empty() {
            self.run(NUMBER_EVENTS, &[&notifications, &ended, &opened])?;
        }
        if !facts.ended.is_empty() {
            let Facts { ended, domains, facts, messages } = &facts;
            self.run(NUMBER_FACTS, &[ended, domains, facts, messages])?;
        }
        Ok(())
    }

    /// Commits. The items that may then be shared, and whether it was said to be done.
    pub(super) fn commit(mut self) -> (Vec<Arc<Item>>, Result<()>) {
        let Events { notifications, ended, opened, facts } = std::mem::take(&mut self.events);
        let of_notifications: Params<'_> = &[&notifications, &ended, &opened];
        let of_rooms: Params<'_> = &[&facts.ended, &facts.domains, &facts.facts, &facts.messages];
        let (mut statements, has_facts) = (Vec::new(), !facts.ended.is_empty());
        statements.extend((!notifications.is_empty()).then_some((NUMBER_EVENTS, of_notifications)));
        statements.extend(has_facts.then_some((NUMBER_FACTS, of_rooms)));
        let done = match statements.is_empty() {
            true => self.db.batch("COMMIT"),
            false => self.db.pipeline_between("", &statements, "COMMIT"),
        };
        (self.published, done)
    }
}
