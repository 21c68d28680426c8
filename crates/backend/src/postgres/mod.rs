//! The store on a PostgreSQL server.
//!
//! - [`PostgresStore`] is the face: it sorts questions into the queues of `engine`, and starts its threads, each with a connection of its own.
//! - `lane` commits groups of writes, each with the next number of the lane, and finds out what became of a commit without an answer.
//! - `keys` says what a group locks, `writes` carries it out, `transaction` is what a write works with.
//! - `reader` answers questions from one snapshot, which is what a read works with.
//! - `node`: of two processes of one node the newer one writes; `members` lists the nodes and buries one, whose writes are refused from then on.
//! - One file per noun implements [`Answers`](carillon_core::ports::store::Answers) to each of its questions; `removal` is about what removing
//!   accounts and domains takes along.
//! - `connection` is one connection, `address` and `tls` say where to and how it is secured, `column` what values mean, `schema` and `migrations/` are the tables.
//! - `checking` looks for what is wrong with what is stored.
//! - `moving` is the one end of a copy from or to SQLite.
//! - `inspect` looks at a server before a node uses it.

mod account;
mod act;
mod activity;
mod address;
mod archive;
mod blocking;
mod broadcast;
mod cells;
mod checking;
mod column;
mod connection;
mod contact;
mod domain;
mod ending;
mod endpoint;
mod error;
mod event;
mod figures;
mod idempotency;
mod inspect;
mod invitation;
mod item;
mod item_row;
mod joining;
mod keeping;
mod key;
mod keys;
mod lane;
mod lease;
mod links;
mod listing;
mod login;
mod lookup;
mod members;
mod module;
pub(crate) mod moving;
mod node;
mod node_edit;
mod node_items;
mod notification;
mod offline;
mod open_error;
mod operation;
mod options;
mod parked;
mod private;
mod push;
mod reader;
mod removal;
mod room;
mod roster;
mod schema;
mod snapshot;
mod subscription;
mod sweep;
mod tls;
mod topic;
mod transaction;
mod upload;
mod vcard;
mod webhook;
mod writes;

pub use checking::check;
pub use inspect::{Finding, inspect};
pub use open_error::OpenError;
pub use options::{Joins, Options};
pub use tls::{Mode, Tls};

use crate::engine::asked::{Asked, Carries, Respond, Write};
use crate::engine::complaints::Complaints;
use crate::engine::counters::{Counters, Doing};
use crate::engine::queue::{Abandon, Queue};
use crate::engine::reading::Reader;
use crate::engine::writing::Writer;
use crate::rows::last::LastItems;
use carillon_core::ports::store::ReadAsk;
use carillon_core::ports::{
    Answer, Ask, Members, PushHint, Reply, Store, StoreHealth, StoreLane, StoreStats,
};
use connection::Connection;
use figures::Figures;
use lane::Lane;
use node::Node;
use reader::Connected;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long reading or burying nodes may take. A reading that takes longer counts as failed.
const MEMBERS_ANSWER_MAX: Duration = Duration::from_secs(3);

/// Opens the store of a node.
///
/// # Errors
/// When the server cannot be reached, or the database cannot be used.
pub fn open(options: Options) -> Result<Arc<dyn Store>, OpenError> {
    Ok(Arc::new(PostgresStore::open(options)?))
}

/// A connection of a node that says that its process is not gone. A process that is about to go on with the node has one while nobody has the store.
pub struct Presence {
    _connection: Connection,
}

/// Shows that the node `goes_on`. It is looked whether this process fits to the others of the cell.
///
/// # Errors
/// When the server cannot be reached, or this process does not fit.
pub fn show(options: Options) -> Result<Presence, OpenError> {
    let epoch = options.goes_on.unwrap_or_default().0;
    let name = format!("carillon {} {epoch} takes over", options.node);
    let options = Arc::new(options);
    let mut connection = Connection::new(options.clone(), name, Arc::default()).map_err(OpenError::Thread)?;
    connection.connect(None)?;
    joining::check(&connection, &options)?;
    Ok(Presence { _connection: connection })
}

/// The store on a PostgreSQL server. Dropping it closes it.
pub struct PostgresStore {
    reads: Arc<Queue<ReadAsk>>,
    /// A queue for each lane. What one thread asks goes to one of them, and so keeps its order.
    writes: Vec<Arc<Queue<Write>>>,
    /// What the lane of each counts.
    figures: Vec<Arc<Figures>>,
    nodes: Arc<members::Nodes>,
    counters: Arc<Counters>,
    size: Arc<AtomicU64>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl PostgresStore {
    /// Connects, makes or upgrades the tables where needed, registers this process, and starts the threads.
    ///
    /// # Errors
    /// When the server cannot be reached, or the database cannot be used.
    pub fn open(options: Options) -> Result<PostgresStore, OpenError> {
        let options = Arc::new(options);
        let lanes = options.lanes.clamp(1, 64);
        let counted =
            |name, figures| Connection::new(options.clone(), name, figures).map_err(OpenError::Thread);
        let connection = |name| counted(name, Arc::default());
        let mut db = connection(format!("carillon {} opens", options.node))?;
        db.connect(None)?;
        schema::migrate(&db)?;
        let node = match options.goes_on {
            Some(epoch) => Node::go_on(&db, &options, lanes, epoch)?,
            None => Node::register(&db, &options, lanes)?,
        };
        drop(db);
        // What is asked about nodes does not wait for a database that is away.
        let patient =
            Options { patience: Duration::ZERO, answer_max: MEMBERS_ANSWER_MAX, ..(*options).clone() };
        let name = format!("carillon {} {} members", node.name, node.epoch);
        let db = Connection::new(Arc::new(patient), name, Arc::default()).map_err(OpenError::Thread)?;
        let (nodes, registry) = members::open(db, node.clone());
        let queue = || Arc::new(Queue::new(options.queue_max, options.queue_bytes_max));
        let store = PostgresStore {
            reads: Arc::new(Queue::new(options.queue_max, options.queue_bytes_max)),
            writes: (0..lanes).map(|_| queue()).collect(),
            figures: (0..lanes).map(|_| Arc::default()).collect(),
            nodes: Arc::new(nodes),
            counters: Arc::default(),
            size: Arc::default(),
            threads: Mutex::default(),
        };
        store.spawn("store-members", move || registry.run())?;
        let (counters, last) = (&store.counters, Arc::new(LastItems::new(options.items_bytes_max)));
        for ((queue, figures), number) in store.writes.iter().zip(&store.figures).zip(0..) {
            let name = format!("carillon {} {} lane {number}", node.name, node.epoch);
            let db = counted(name, figures.clone())?;
            let lane = Lane::new(db, node.clone(), number, last.clone(), counters.clone());
            let complaints = Complaints::new(Doing::Writes, counters.clone());
            let writer = Writer::new(lane, queue.clone(), counters.clone(), complaints);
            store.start("store-lane", queue.clone(), || writer.run())?;
        }
        let readers = options.readers.clamp(1, 64);
        for number in 0..readers {
            let db = connection(format!("carillon {} {} reader {number}", node.name, node.epoch))?;
            let reader = Reader {
                store: Connected::new(db, node.clone(), last.clone(), store.size.clone()),
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
        self.spawn(name, move || {
            let _abandoned = Abandon(&queue);
            run();
        })
    }

    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), OpenError> {
        let thread =
            std::thread::Builder::new().name(name.to_owned()).spawn(run).map_err(OpenError::Thread)?;
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Ok(())
    }

    /// The nodes that share the database.
    pub fn members(&self) -> Arc<dyn Members> {
        self.nodes.clone()
    }

    /// The queue for what this thread writes.
    fn lane(&self) -> &Queue<Write> {
        let mut hasher = DefaultHasher::new();
        std::thread::current().id().hash(&mut hasher);
        &self.writes[(hasher.finish() % self.writes.len() as u64) as usize]
    }
}

impl Store for PostgresStore {
    fn ask(&self, ask: Ask, reply: Reply<Answer>) {
        self.ask_all(&mut vec![(ask, reply)]);
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
        self.lane().push_all(writes);
    }

    fn stats(&self) -> StoreStats {
        let (answered, commits, writes) = self.counters.read();
        let waiting = self.writes.iter().map(|queue| queue.len()).sum::<usize>() + self.reads.len();
        StoreStats {
            waiting: waiting as u64,
            answered,
            commits,
            writes,
            write_cost: self.counters.write_cost(),
            commit: self.counters.commit(),
            bytes: self.size.load(Ordering::Relaxed),
        }
    }

    fn health(&self) -> StoreHealth {
        self.counters.health()
    }

    fn hint_pushes(&self, hint: PushHint) -> bool {
        self.counters.pushes.set(hint);
        true
    }

    fn lanes(&self) -> Vec<StoreLane> {
        let load = |(queue, figures): (&Arc<Queue<Write>>, &Arc<Figures>)| {
            let (waiting, bytes) = queue.load();
            figures.read(waiting, bytes)
        };
        self.writes.iter().zip(&self.figures).map(load).collect()
    }

    fn close(&self) {
        self.nodes.close();
        self.reads.close();
        self.writes.iter().for_each(|queue| queue.close());
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let here = std::thread::current().id();
        for thread in threads {
            // Closed from within an answer: that thread ends by itself once the answer is given.
            if thread.thread().id() != here && thread.join().is_err() {
                tracing::error!("a thread of the store had panicked");
            }
        }
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.close();
    }
}
