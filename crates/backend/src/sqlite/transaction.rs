//! What a write works with: the open transaction of a group, and what it changes.

use super::archive_tail::{Fold, Newest, Tail, TailEntry};
use super::item_row;
use super::reservation::ReservationNumber;
use super::run::Run;
use crate::rows::last::LastItems;
use carillon_core::model::{Item, Revision, TopicId};
use carillon_core::ports::Missing;
use rusqlite::{Connection, OptionalExtension, Params};
use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;

/// A result of SQLite.
type Sqlite<T> = rusqlite::Result<T>;

/// What the writer goes on from.
#[derive(Clone, Copy)]
pub(super) struct Reached {
    /// Commits that have changed topics.
    pub(super) topic_changes: u64,
    /// The newest run of ended notifications.
    pub(super) run: Run,
    /// The last reservation of an idempotency key when the store was opened.
    pub(super) last_found: ReservationNumber,
    /// The newest message of all archives.
    pub(super) newest_message: Newest,
    /// How far archived messages are in their tables.
    pub(super) fold: Fold,
}

/// The open transaction of a group of writes, which carries out the questions that change something: a file per noun says
/// how.
pub(super) struct Transaction<'a> {
    pub(super) db: &'a Connection,
    last: &'a LastItems,
    /// The newest messages of all archives, as far as they are committed.
    pub(super) tail: &'a Tail,
    pub(super) run: Run,
    pub(super) last_found: ReservationNumber,
    pub(super) newest_message: Newest,
    pub(super) fold: Fold,
    /// Messages that enter archives, by account, in their order.
    pub(super) archived: Vec<(i64, TailEntry)>,
    /// How many entries of the tail it writes as a list.
    pub(super) listed: usize,
    /// Whether there are archived messages that are not in their tables.
    pub(super) has_tail: bool,
    /// Whether they are to enter them although there are few.
    pub(super) wants_fold: bool,
    topic_changes: u64,
    changed: HashSet<TopicId>,
    published: Vec<Arc<Item>>,
    /// Whether it has made a push, or made one due.
    pub(super) makes_pushes: Cell<bool>,
}

impl<'a> Transaction<'a> {
    /// A transaction on top of what was committed.
    pub(super) fn new(
        db: &'a Connection,
        last: &'a LastItems,
        tail: &'a Tail,
        committed: Reached,
    ) -> Transaction<'a> {
        let Reached { topic_changes, run, last_found, newest_message, fold } = committed;
        let (archived, changed, published) = (Vec::new(), HashSet::new(), Vec::new());
        Transaction {
            db,
            last,
            tail,
            run,
            last_found,
            newest_message,
            fold,
            archived,
            listed: 0,
            has_tail: false,
            wants_fold: false,
            topic_changes,
            changed,
            published,
            makes_pushes: Cell::new(false),
        }
    }

    /// Notes that a topic has changed. Every change of a topic calls it.
    pub(super) fn topic_changed(&mut self, topic: TopicId) {
        self.changed.insert(topic);
    }

    /// Runs a statement; how many rows it changed.
    pub(super) fn run(&self, sql: &str, params: impl Params) -> Sqlite<usize> {
        self.db.prepare_cached(sql)?.execute(params)
    }

    /// Runs a statement about something; whether that is there.
    pub(super) fn change(&self, sql: &str, params: impl Params) -> Sqlite<Result<(), Missing>> {
        Ok(if self.run(sql, params)? == 0 { Err(Missing) } else { Ok(()) })
    }

    /// Does something by which what is deleted is overwritten, also pages that are given up as a whole.
    pub(super) fn overwriting<T>(&mut self, work: impl FnOnce(&mut Self) -> Sqlite<T>) -> Sqlite<T> {
        let mode: i64 = self.db.pragma_query_value(None, "secure_delete", |row| row.get(0))?;
        // SQLite carries this out when it prepares the statement, so it is prepared each time.
        let set =
            |db: &Connection, mode: &str| db.pragma_update_and_check(None, "secure_delete", mode, |_| Ok(()));
        set(self.db, "ON")?;
        let done = work(self);
        set(
            self.db,
            match mode {
                0 => "OFF",
                1 => "ON",
                _ => "FAST",
            },
        )?;
        done
    }

    /// A topic's last item, of which `revision` is known.
    pub(super) fn last_item(&self, topic: TopicId, revision: Revision) -> Sqlite<Arc<Item>> {
        if let Some(item) = self.last.find(topic, revision) {
            return Ok(item);
        }
        let item = item_row::read(self.db, topic, revision)?;
        // One of this transaction may never come to be, and its revision then be another's.
        Ok(if self.changed.contains(&topic) { item } else { self.last.keep(item) })
    }

    /// A topic's last item, where there is one.
    pub(super) fn newest(&self, topic: TopicId) -> Sqlite<Option<Arc<Item>>> {
        let last: Option<Option<i64>> = self
            .db
            .prepare_cached("SELECT last FROM topic WHERE id = ?1")?
            .query_row([topic.0], |row| row.get(0))
            .optional()?;
        last.flatten().map(|last| self.last_item(topic, Revision(last as u64))).transpose()
    }

    /// Notes an item to be kept in memory once it is committed.
    pub(super) fn note_published(&mut self, item: Arc<Item>) {
        self.published.push(item);
    }

    /// Tells the readers if topics have changed, and begins the next run when one is full. To be called before the commit.
    pub(super) fn seal(&mut self) -> Sqlite<()> {
        self.run = self.run.next(self.db)?;
        if !self.changed.is_empty() {
            self.topic_changes += 1;
            self.run("UPDATE node SET topic_changes = ?1", [super::column::int(self.topic_changes)])?;
        }
        Ok(())
    }

    /// The transaction is on disk: what it published may be shared, and what it archived be found. Gives what it reached.
    pub(super) fn committed(self) -> Reached {
        for item in self.published {
            self.last.keep(item);
        }
        self.tail.listed(self.listed);
        self.tail.add(self.archived);
        let Transaction { topic_changes, run, last_found, newest_message, fold, .. } = self;
        Reached { topic_changes, run, last_found, newest_message, fold }
    }
}
