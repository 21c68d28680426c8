//! What a write works with: the open transaction of a group, and the revision it makes.

use super::item_row;
use super::last::LastItems;
use super::run::Run;
use carillon_core::model::{Item, Revision, TopicId};
use carillon_core::ports::Missing;
use rusqlite::{Connection, Params};
use std::sync::Arc;

/// What SQLite says.
type Sqlite<T> = rusqlite::Result<T>;

/// What the writer goes on from.
#[derive(Clone, Copy)]
pub(super) struct Reached {
    pub(super) revision: Revision,
    /// The newest run of ended notifications.
    pub(super) run: Run,
}

/// The open transaction of a group of writes, which carries out the questions that change something: a file per noun says
/// how.
pub(super) struct Transaction<'a> {
    pub(super) db: &'a Connection,
    last: &'a LastItems,
    pub(super) run: Run,
    committed: Revision,
    revision: Revision,
    published: Vec<Arc<Item>>,
}

impl<'a> Transaction<'a> {
    /// A transaction on top of what was committed.
    pub(super) fn new(db: &'a Connection, last: &'a LastItems, committed: Reached) -> Transaction<'a> {
        let Reached { revision, run } = committed;
        Transaction { db, last, run, committed: revision, revision, published: Vec::new() }
    }

    /// Moves on to the revision that this change makes. Every change of topics or accounts calls it.
    pub(super) fn advance(&mut self) -> Revision {
        self.revision.0 += 1;
        self.revision
    }

    /// Runs a statement; how many rows it changed.
    pub(super) fn run(&self, sql: &str, params: impl Params) -> Sqlite<usize> {
        self.db.prepare_cached(sql)?.execute(params)
    }

    /// A new revision, when the statement changed something.
    pub(super) fn change(&mut self, sql: &str, params: impl Params) -> Sqlite<Result<(), Missing>> {
        if self.run(sql, params)? == 0 {
            return Ok(Err(Missing));
        }
        self.advance();
        Ok(Ok(()))
    }

    /// A topic's last item, of which `revision` is known.
    pub(super) fn last_item(&self, topic: TopicId, revision: Revision) -> Sqlite<Arc<Item>> {
        if let Some(item) = self.last.find(topic, revision) {
            return Ok(item);
        }
        let item = item_row::read(self.db, revision)?;
        // One of this transaction may never come to be.
        Ok(if revision <= self.committed { self.last.keep(item) } else { item })
    }

    /// Notes an item to be kept in memory once it is committed.
    pub(super) fn note_published(&mut self, item: Arc<Item>) {
        self.published.push(item);
    }

    /// Stores the revision, where it moved, and begins the next run when one is full. To be called before the commit.
    pub(super) fn seal(&mut self) -> Sqlite<()> {
        self.run = self.run.next(self.db)?;
        if self.revision != self.committed {
            self.run("UPDATE node SET revision = ?1", [super::column::int(self.revision.0)])?;
        }
        Ok(())
    }

    /// The transaction is on disk: what it published may be shared. Gives what it reached.
    pub(super) fn committed(self) -> Reached {
        for item in self.published {
            self.last.keep(item);
        }
        Reached { revision: self.revision, run: self.run }
    }
}
