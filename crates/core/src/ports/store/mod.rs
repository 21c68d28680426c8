//! The durable store: accounts, topics, retained items, waiting notifications, keys.
//!
//! A file per noun lists its questions; each question is a type, and its answer has the type that it names
//! ([`Question::Answer`]). As [`Ask`] and [`Answer`] they are values that cross threads, so that the same machine that asks
//! them can be simulated, and so that a store can coalesce the questions of many sessions into one query and the writes of
//! many into one commit.

pub mod accounts;
pub mod domains;
pub mod idempotency;
pub mod items;
pub mod keys;
pub mod notifications;
pub mod offline;
mod page;
mod question;
pub mod subscriptions;
pub mod topics;

pub use page::{Page, Part};
pub use question::{Answers, Kind, Question};

use super::Reply;
use crate::model::Durations;

/// The durable store.
///
/// Guarantees, for every implementation:
/// - **Durable before answered.** The answer to a write is given only after its commit reached the disk.
/// - **Order.** Writes take effect, and are answered, in the order in which [`Store::ask`] was called by one thread.
///   A read sees every write that was answered before the read was asked.
/// - **All or nothing.** One question is one atomic step, also when many share a commit: one that fails changes nothing
///   and harms none of the others.
/// - **A revision per topic.** Each change of a topic (an item published, kept or not; items retracted, purged or trimmed; its
///   configuration or affiliations) takes the topic's next [`Revision`](crate::model::Revision), in the commit that makes the
///   change, while no other commit can change the topic: a database takes it under the lock of the topic's row. So the changes of
///   a topic become visible in the order of their revisions, and whoever has read a topic up to a revision has missed nothing
///   below it. No revision is given twice, not after a restart either.
/// - **A generation per account.** Likewise each change of an account's keys, state, revoked tokens or subscriptions takes the
///   account's next [`Generation`](crate::model::Generation), the removal of a topic that it follows included. What waits for the
///   account is no part of it, nor are items.
/// - **What failed changed nothing**, except for [`Fault::Unknown`], after which a write is either done as a whole or not at all,
///   and it cannot be said which: a later failure of the machine may still decide it. It is settled by asking the same write
///   again. A read never fails with it.
/// - **One answer.** `reply` is called exactly once, with [`Answer::Failed`] when the store could not do it.
pub trait Store: Send + Sync + 'static {
    /// Asks a question, and returns at once. A store with too many waiting questions answers [`Fault::Busy`] at once.
    fn ask(&self, ask: Ask, reply: Reply<Answer>);

    /// Asks several questions in their order, for the cost of asking one. Empties `asks`.
    fn ask_all(&self, asks: &mut Vec<(Ask, Reply<Answer>)>) {
        asks.drain(..).for_each(|(ask, reply)| self.ask(ask, reply));
    }

    /// Figures for the operator.
    fn stats(&self) -> StoreStats;

    /// Commits the writes that wait, and stops. Questions asked later are answered [`Fault::Closed`].
    fn close(&self);
}

/// A question of any type, as it crosses threads.
#[derive(Clone, Debug)]
pub enum Ask {
    /// It changes nothing: it is answered from a snapshot.
    Read(ReadAsk),
    /// It changes something: it is answered once that is committed.
    Write(WriteAsk),
}

/// Joins the questions of all nouns into one type.
macro_rules! nouns {
    ($($noun:ident in $module:ident,)*) => {
        /// A question that changes nothing.
        #[derive(Clone, Debug)]
        pub enum ReadAsk { $(#[doc = concat!("About ", stringify!($module), ".")] $noun($module::ReadAsk),)* }

        /// A question that changes something.
        #[derive(Clone, Debug)]
        pub enum WriteAsk { $(#[doc = concat!("About ", stringify!($module), ".")] $noun($module::WriteAsk),)* }

        /// An answer of any type, as it crosses threads: [`Question::answer`] restores its type.
        #[derive(Clone, Debug)]
        pub enum Answer {
            /// The store could not do it.
            Failed(Fault),
            $(#[doc = concat!("About ", stringify!($module), ".")] $noun($module::Answer),)*
        }

        impl ReadAsk {
            /// Has it answered by a backend that was taught all of them.
            ///
            /// # Errors
            /// What the backend says.
            pub fn answer_by<B: Reads<E>, E>(&self, backend: &mut B) -> Result<Answer, E> {
                match self { $(ReadAsk::$noun(ask) => ask.answer_by(backend),)* }
            }
        }

        impl WriteAsk {
            /// Has it answered by a backend that was taught all of them.
            ///
            /// # Errors
            /// What the backend says.
            pub fn answer_by<B: Writes<E>, E>(&self, backend: &mut B) -> Result<Answer, E> {
                match self { $(WriteAsk::$noun(ask) => ask.answer_by(backend),)* }
            }
        }

        /// A backend that answers every question that changes nothing.
        pub trait Reads<E>: $($module::Reads<E> +)* {}
        impl<E, B: $($module::Reads<E> +)*> Reads<E> for B {}

        /// A backend that answers every question that changes something.
        pub trait Writes<E>: $($module::Writes<E> +)* {}
        impl<E, B: $($module::Writes<E> +)*> Writes<E> for B {}
    };
}

nouns! {
    Domains in domains,
    Accounts in accounts,
    Topics in topics,
    Subscriptions in subscriptions,
    Items in items,
    Notifications in notifications,
    Offline in offline,
    Keys in keys,
    Idempotency in idempotency,
}

impl Kind for ReadAsk {
    fn among(ask: &Ask) -> Option<&ReadAsk> {
        if let Ask::Read(read) = ask { Some(read) } else { None }
    }
}

impl Kind for WriteAsk {
    fn among(ask: &Ask) -> Option<&WriteAsk> {
        if let Ask::Write(write) = ask { Some(write) } else { None }
    }
}

/// The subject of a write does not exist; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing;

/// Why the store could not do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Too many questions wait; ask again later.
    #[error("the store has too many questions waiting")]
    Busy,
    /// The store is being closed.
    #[error("the store is closed")]
    Closed,
    /// The disk or the database failed; the store's log says more.
    #[error("the store failed")]
    Broken,
    /// It is unknown whether the write was committed: the disk or the connection to the database failed during the commit, or the
    /// process that did it ended. Asking it again settles it.
    #[error("it is unknown whether the store did it")]
    Unknown,
}

/// Figures of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Questions waiting.
    pub waiting: u64,
    /// Questions answered since the start.
    pub answered: u64,
    /// Commits since the start.
    pub commits: u64,
    /// Writes that shared those commits.
    pub writes: u64,
    /// How long each commit took to be on disk.
    pub commit: Durations,
    /// Size of the database in bytes.
    pub bytes: u64,
}
