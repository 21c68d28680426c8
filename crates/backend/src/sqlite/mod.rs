//! The store in one SQLite file.
//!
//! - [`SqliteStore`] is the face: it sorts questions into two bounded queues of `engine`, and starts its threads.
//! - `writer` carries out a group of writes in one transaction of the write-ahead log, with savepoints where one has failed.
//! - `reader` answers questions from one snapshot; `last` lets logins share the last items of topics.
//! - `run` keeps the index of ended notifications small where it is written to.
//! - `snapshot` is what a read works with, `transaction` what a write does; one file per noun implements for them
//!   [`Answers`](carillon_core::ports::store::Answers) to each of its questions, upon the small ones of `lookup`.
//! - [`backup`] and [`restore`] copy the file, which no store needs to have open.
//! - `checking` looks for what is wrong with what is stored.
//! - `moving` is the one end of a copy from or to PostgreSQL.
//! - `schema` and `migrations/` are the tables, `file` the settings of each connection, `column` what numbers mean.

mod account;
mod act;
mod activity;
mod archive;
mod archive_tail;
mod blocking;
mod broadcast;
mod cells;
mod checking;
mod column;
mod contact;
mod copy;
mod domain;
mod ending;
mod endpoint;
mod event;
mod file;
mod idempotency;
#[cfg(test)]
mod inbox_cost;
mod invitation;
mod item;
mod item_row;
mod keeping;
mod key;
mod lease;
mod links;
mod listing;
mod login;
mod lookup;
mod module;
#[cfg(feature = "postgres")]
pub(crate) mod moving;
mod node;
mod notification;
mod offline;
mod operation;
mod options;
mod parked;
mod private;
mod push;
mod reader;
mod removal;
mod reservation;
mod room;
mod roster;
mod run;
mod schema;
mod snapshot;
mod subscription;
mod sweep;
mod topic;
mod transaction;
mod upload;
mod vcard;
mod webhook;
#[cfg(test)]
mod write_cost;
mod writer;

pub use checking::check_store;
pub use copy::{Contents, CopyError, Restored, backup, restore};
pub use options::{OpenError, Options};
pub use schema::SCHEMA;

use crate::engine::asked::{Asked, Carries, Respond, Write};
use crate::engine::complaints::Complaints;
use crate::engine::counters::{Counters, Doing};
use crate::engine::queue::{Abandon, Queue};
use crate::engine::reading::Reader;
use crate::engine::writing::Writer;
use crate::rows::last::LastItems;
use archive_tail::Tail;
use carillon_core::ports::store::ReadAsk;
use carillon_core::ports::{Answer, Ask, PushHint, Reply, Store, StoreHealth, StoreStats};
use reader::Connected;
use snapshot::LastRevisions;
use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use writer::Database;

/// Migration `n` leads from version `n` to version `n + 1`.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_initial.sql"),
    include_str!("migrations/0002_revocations.sql"),
    include_str!("migrations/0003_listing.sql"),
    include_str!("migrations/0004_runs.sql"),
    include_str!("migrations/0005_responses.sql"),
    include_str!("migrations/0006_revisions.sql"),
    include_str!("migrations/0007_operations.sql"),
    include_str!("migrations/0008_events.sql"),
    include_str!("migrations/0009_lines.sql"),
    include_str!("migrations/0010_webhooks.sql"),
    include_str!("migrations/0011_durable.sql"),
    include_str!("migrations/0012_order.sql"),
    include_str!("migrations/0013_parked.sql"),
    include_str!("migrations/0014_resumption.sql"),
    include_str!("migrations/0015_rosters.sql"),
    include_str!("migrations/0016_block_lists.sql"),
    include_str!("migrations/0017_archives.sql"),
    include_str!("migrations/0018_inbox.sql"),
    include_str!("migrations/0019_private.sql"),
    include_str!("migrations/0020_nodes.sql"),
    include_str!("migrations/0021_vcards.sql"),
    include_str!("migrations/0022_removal.sql"),
    include_str!("migrations/0023_counted.sql"),
    include_str!("migrations/0024_rights.sql"),
    include_str!("migrations/0025_kept_bytes.sql"),
    include_str!("migrations/0026_requests.sql"),
    include_str!("migrations/0027_archive_lists.sql"),
    include_str!("migrations/0028_grants.sql"),
    include_str!("migrations/0029_links.sql"),
    include_str!("migrations/0030_leases.sql"),
    include_str!("migrations/0031_idempotency_bytes.sql"),
    include_str!("migrations/0032_last_available.sql"),
    include_str!("migrations/0033_rooms.sql"),
    include_str!("migrations/0034_invitations.sql"),
    include_str!("migrations/0035_uploads.sql"),
    include_str!("migrations/0036_expiring_messages.sql"),
    include_str!("migrations/0037_room_kinds.sql"),
    include_str!("migrations/0038_room_blocks.sql"),
    include_str!("migrations/0039_inbox_pages.sql"),
    include_str!("migrations/0040_broadcasts.sql"),
    include_str!("migrations/0041_modules.sql"),
    include_str!("migrations/0042_push.sql"),
    include_str!("migrations/0043_tenants.sql"),
    include_str!("migrations/0044_cells.sql"),
    include_str!("migrations/0045_room_policy.sql"),
    include_str!("migrations/0046_lease_state.sql"),
    include_str!("migrations/0047_privacy_lists.sql"),
    include_str!("migrations/0048_push_steps.sql"),
    include_str!("migrations/0049_quotas.sql"),
    include_str!("migrations/0050_endpoints.sql"),
    include_str!("migrations/0051_room_events.sql"),
    include_str!("migrations/0052_failed_pushes.sql"),
    include_str!("migrations/0053_removals.sql"),
    include_str!("migrations/0054_room_vcards.sql"),
    include_str!("migrations/0055_push.sql"),
    include_str!("migrations/0056_module_nodes.sql"),
];

/// The store in one SQLite file. Dropping it closes it.
pub struct SqliteStore {
    options: Options,
    reads: Arc<Queue<ReadAsk>>,
    writes: Arc<Queue<Write>>,
    counters: Arc<Counters>,
    open: Mutex<Open>,
}

/// What ends when the store is closed: its threads, then the claim on the file.
#[derive(Default)]
struct Open {
    threads: Vec<JoinHandle<()>>,
    lock: Option<File>,
}

impl SqliteStore {
    /// Opens the database, makes or upgrades it where needed, and starts the threads. Looks for damage for half a second at
    /// most; otherwise reads nothing but the schema, three rows and at most a run of traces, so the time does not grow further
    /// with what is stored.
    ///
    /// # Errors
    /// When the file is in use, belongs to another program or a newer server, is damaged, or cannot be used.
    pub fn open(options: Options) -> Result<SqliteStore, OpenError> {
        let lock = file::claim(&options.path)?;
        let store = SqliteStore {
            reads: Arc::new(Queue::new(options.queue_max, options.queue_bytes_max)),
            writes: Arc::new(Queue::new(options.queue_max, options.queue_bytes_max)),
            counters: Arc::default(),
            open: Mutex::new(Open { threads: Vec::new(), lock: Some(lock) }),
            options,
        };
        let options = &store.options;
        let sqlite = |source| OpenError::of(&options.path, source);
        let mut db = file::connect_writer(options).map_err(sqlite)?;
        if options.is_searched && !file::check(&db, &options.path, file::CHECK_MAX)? {
            let path = options.path.display();
            tracing::info!(%path, "only a part of the store was checked for damage; a backup checks all of it");
        }
        schema::migrate(&mut db, &options.path)?;
        webhook::end_claims(&db).map_err(sqlite)?;
        push::end_claims(&db).map_err(sqlite)?;

        let last = Arc::new(LastItems::new(options.items_bytes_max));
        let tail = Arc::new(Tail::default());
        let counters = &store.counters;
        let database = Database::new(db, last.clone(), tail.clone(), counters.clone()).map_err(sqlite)?;
        let newest = database.newest_message();
        let complaints = Complaints::new(Doing::Writes, counters.clone());
        let writer = Writer::new(database, store.writes.clone(), counters.clone(), complaints);
        let (db, made) = (file::connect_reader(options).map_err(sqlite)?, tail.clone());
        store.start("store-archive", store.reads.clone(), move || {
            made.make(&db, newest);
        })?;
        store.start(WRITER, store.writes.clone(), || writer.run())?;
        let readers = options.readers.clamp(1, 64);
        for _ in 0..readers {
            let reader = Reader {
                store: Connected {
                    db: file::connect_reader(options).map_err(sqlite)?,
                    last: last.clone(),
                    tail: tail.clone(),
                    revisions: LastRevisions::default(),
                },
                queue: store.reads.clone(),
                counters: counters.clone(),
                complaints: Complaints::new(Doing::Reads, counters.clone()),
                readers,
            };
            store.start("store-reader", store.reads.clone(), || reader.run())?;
        }
        Ok(store)
    }

    /// Starts a thread that serves a queue. If it panics, what waits for it is not left unanswered.
    fn start<A: Carries + Send + 'static>(
        &self,
        name: &str,
        queue: Arc<Queue<A>>,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<(), OpenError> {
        let run = move || {
            let _abandoned = Abandon(&queue);
            run();
        };
        let thread =
            std::thread::Builder::new().name(name.to_owned()).spawn(run).map_err(OpenError::Thread)?;
        self.open.lock().unwrap_or_else(PoisonError::into_inner).threads.push(thread);
        Ok(())
    }
}

impl Store for SqliteStore {
    fn ask(&self, ask: Ask, reply: Reply<Answer>) {
        match ask {
            Ask::Read(ask) => self.reads.push(Asked::new(ask, Respond::to_read(reply))),
            Ask::Write(ask) => self.writes.push(Asked::new(ask.into(), Respond::to_write(reply))),
            Ask::Once(operation, ask) => {
                let ask = Write { operation: Some(operation), ask };
                self.writes.push(Asked::new(ask, Respond::to_write(reply)));
            }
        }
    }

    fn ask_all(&self, asks: &mut Vec<(Ask, Reply<Answer>)>) {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for (ask, reply) in asks.drain(..) {
            match ask {
                Ask::Read(ask) => reads.push(Asked::new(ask, Respond::to_read(reply))),
                Ask::Write(ask) => writes.push(Asked::new(ask.into(), Respond::to_write(reply))),
                Ask::Once(operation, ask) => {
                    let ask = Write { operation: Some(operation), ask };
                    writes.push(Asked::new(ask, Respond::to_write(reply)));
                }
            }
        }
        self.reads.push_all(reads);
        self.writes.push_all(writes);
    }

    fn stats(&self) -> StoreStats {
        let (answered, commits, writes) = self.counters.read();
        let waiting = (self.reads.len() + self.writes.len()) as u64;
        StoreStats {
            waiting,
            answered,
            commits,
            writes,
            write_cost: self.counters.write_cost(),
            commit: self.counters.commit(),
            bytes: file::size_bytes(&self.options.path),
        }
    }

    fn health(&self) -> StoreHealth {
        self.counters.health()
    }

    fn hint_pushes(&self, hint: PushHint) -> bool {
        self.counters.pushes.set(hint);
        true
    }

    fn close(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Open { threads, lock } = std::mem::take(&mut *open);
        let (writers, readers): (Vec<_>, Vec<_>) =
            threads.into_iter().partition(|thread| thread.thread().name() == Some(WRITER));
        // The writer ends last and alone: the last connection takes the write-ahead log into the database, and of two that end at the same
        // moment each leaves that to the other.
        self.reads.close();
        join(readers);
        self.writes.close();
        join(writers);
        // Last, so that whoever opens the file next finds it checkpointed and at rest.
        drop(lock);
    }
}

/// Waits until threads have ended.
fn join(threads: Vec<JoinHandle<()>>) {
    let here = std::thread::current().id();
    for thread in threads {
        // Closed from within an answer: that thread ends by itself once the answer is given.
        if thread.thread().id() != here && thread.join().is_err() {
            tracing::error!("a thread of the store had panicked");
        }
    }
}

/// The name of the thread that writes.
const WRITER: &str = "store-writer";

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.close();
    }
}
