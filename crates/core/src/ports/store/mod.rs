//! The durable store: accounts, topics, retained items, waiting notifications, keys.
//!
//! A file per noun lists its questions; each question is a type, and its answer has the type that it names
//! ([`Question::Answer`]). As [`Ask`] and [`Answer`] they are values that cross threads, so that the same machine that asks
//! them can be simulated, and so that a store can coalesce the questions of many sessions into one query and the writes of
//! many into one commit.

pub mod accounts;
pub mod activity;
pub mod acts;
mod answer;
pub mod archive;
pub mod blocking;
pub mod broadcasts;
pub mod cells;
pub mod domains;
pub mod endpoints;
pub mod idempotency;
pub mod inbox;
pub mod invitations;
pub mod items;
pub mod keys;
pub mod leases;
pub mod links;
pub mod modules;
pub mod nodes;
pub mod notifications;
pub mod offline;
mod page;
pub mod parked;
pub mod private;
pub mod push;
mod question;
pub mod rooms;
pub mod roster;
pub mod subscriptions;
pub mod topics;
pub mod uploads;
pub mod vcard;
pub mod webhooks;

pub use page::{Page, Part};
pub use question::{Answers, AnswersOnce, Kind, Load, Loads, Question};

use super::Reply;
use crate::model::{Durations, OperationId};
use std::sync::Arc;
use std::time::Duration;

/// Called when a push may be due ([`Store::hint_pushes`]).
pub type PushHint = Arc<dyn Fn() + Send + Sync>;

/// The durable store.
///
/// Guarantees, for every implementation, each with the cases of the conformance suite (`carillon_backend::conformance`) that fail without
/// it:
/// - **Durable before answered.** The answer to a write is given only after its commit reached the disk (`lasting::everything`,
///   `lasting::unanswered`; for SQLite also with a process that is killed, `backend/tests/failing.rs`).
/// - **Order.** Writes take effect, and are answered, in the order in which [`Store::ask`] was called by one thread; but those that change what
///   belongs to one account may be passed by writes of others where that account has asked for more than its share. Its own keep
///   their order. A read sees every write that was answered before the read was asked (`together::writes_are_in_order`,
///   `together::reads_see_answered_writes`).
/// - **All or nothing.** One question is one atomic step, also when many share a commit: one that fails changes nothing
///   and harms none of the others (`together::what_fails_changes_nothing`,
///   `together::together_is_as_one_after_the_other`).
/// - **A revision per topic.** Each change of a topic (an item published, kept or not; items retracted, purged or trimmed; its
///   configuration or affiliations) takes the topic's next [`Revision`](crate::model::Revision), in the commit that makes the
///   change, while no other commit can change the topic: a database takes it under the lock of the topic's row. So the changes of
///   a topic become visible in the order of their revisions, and whoever has read a topic up to a revision has missed nothing
///   below it. No revision is given twice, not after a restart either (`items::show_every_change_by_the_revision`,
///   `items::are_seen_in_the_order_of_their_revisions`, `lasting::revisions`).
/// - **A generation per account.** Likewise each change of an account's keys, state, revoked tokens or subscriptions takes the
///   account's next [`Generation`](crate::model::Generation), the removal of a topic that it follows included. What waits for the
///   account is no part of it, nor are items (`logins::have_a_higher_generation_after_each_change`,
///   `logins::have_a_generation_of_their_own`, `lasting::revisions`).
/// - **What failed changed nothing**, except for [`Fault::Unknown`], after which a write is either done as a whole or not at all,
///   and it cannot be said which: a later failure of the machine may still decide it. It is settled by asking the same write
///   again. A read never fails with it (`together::what_fails_changes_nothing`; how a commit is made to fail is each backend's own, for
///   SQLite `failing::what_cannot_be_written_fails_and_the_rest_is_there`).
/// - **Every write can be asked again.** Most are idempotent ([`WriteAsk::is_idempotent`]): they set, put or end something by its name or
///   number, and [`StoreNotification`](notifications::StoreNotification), whose id names it, says `Known` the second time. The
///   others are asked with the id of their operation ([`Ask::Once`]): one that changed something is remembered, in the same
///   commit, for [`OPERATION_KEPT_MS`], and asked again it changes nothing and is answered the same (what the answer tells of other
///   things, such as the last item of a topic that is subscribed to, is as it is then). One that changed nothing may be done when it
///   is asked again (the cases of `again`).
/// - **A generation per record.** Likewise each change of an account's record (its roster) takes the next generation of that record, and is told
///   with the one before it, so that whoever knows a record knows whether it has missed a change. A change of a subscription is one of
///   both accounts' records, in one commit (`rosters::change_both_sides_together`, `rosters::tell_the_generation_before_and_after`,
///   `lasting::rosters`).
/// - **Work is claimed by lease.** What [`ClaimDue`](notifications::ClaimDue) hands out to one is handed out to nobody else until the
///   time that was asked for has passed; if it was not handed over by then, it is handed out again
///   (`schedule::a_claim_is_one_nodes`, `schedule::what_was_not_handed_over_is_due_again`).
/// - **An event for each end**, made in the commit that ends a notification, and numbered in the order in which they become visible, so that
///   whoever has read up to a number has missed nothing below it: a database numbers them under a lock
///   (`events::tell_how_notifications_ended`, `events::are_numbered_in_the_order_of_commits`, `lasting::events`).
/// - **A webhook is one owner's.** What [`ClaimWebhooks`](webhooks::ClaimWebhooks) gives to one is given to nobody else until the claim
///   ends, and what was sent is committed by the owner alone, together with what could not be sent
///   (`webhooks::are_one_owners_until_the_claim_ends`, `webhooks::are_committed_by_their_owner`, `lasting::webhooks`).
/// - **A lease is one holder's.** What [`TakeLease`](leases::TakeLease) gives to one is given to nobody else until the time that was asked for
///   has passed, or its holder gives it up (`leases::are_one_holders_until_they_end`, `lasting::leases`).
/// - **What is to be pushed is kept with what it tells.** A [`Wake`](crate::model::Wake) of what is stored is committed with it, for each registration
///   of its account, and ends only when it was pushed, or when what it tells does not wait any more (`push::comes_of_what_is_stored`,
///   `push::is_of_what_waits`, `lasting::nouns`).
/// - **A device is in one cell.** Of all that are placed at once by [`Place`](cells::Place) the first is, and a step of a move is taken from one
///   placement only; what is held for a device is with it in the same commit (`cells::of_many_at_once_the_first_places`,
///   `cells::move_step_by_step_with_what_is_held`, `lasting::nouns`).
/// - **A module is as it was activated.** What [`ActivateModule`](modules::ActivateModule) names is kept, however many versions are pushed
///   after it (`modules::are_activated_and_kept`, `lasting::nouns`).
/// - **Parked sessions are forgotten for good.** What was read before [`ForgetParked`](parked::ForgetParked) was answered is not there
///   after it, whatever ends the process (`parked::groups_are_forgotten`, `lasting::parked`).
/// - **Shared is as alone.** Where several nodes open stores on one database, all of this holds for them together: what one store has answered, the others
///   know, and what is given once is given by one of them (the cases of `shared`, and all others with the questions by turns).
/// - **One answer.** `reply` is called exactly once, with [`Answer::Failed`] when the store could not do it
///   (`together::each_question_is_answered_once`, `together::closed_answers_closed`).
pub trait Store: Send + Sync + 'static {
    /// Asks a question, and returns at once. A store with too many waiting questions answers [`Fault::Busy`] at once.
    fn ask(&self, ask: Ask, reply: Reply<Answer>);

    /// Asks several questions in their order, for the cost of asking one. Empties `asks`.
    fn ask_all(&self, asks: &mut Vec<(Ask, Reply<Answer>)>) {
        asks.drain(..).for_each(|(ask, reply)| self.ask(ask, reply));
    }

    /// Figures for the operator.
    fn stats(&self) -> StoreStats;

    /// How it is now, as its reads and writes found it, without asking a disk or a server.
    fn health(&self) -> StoreHealth {
        StoreHealth::default()
    }

    /// Has `hint` called after each commit by which a push may be due sooner than [`NextPush`](push::NextPush) said, in place of the one before. It is called on a
    /// thread of the store, which it must not hold up. False where it will not be called. What others write to the same database is not told
    /// (`push::are_hinted_at_where_there_are_registrations`).
    fn hint_pushes(&self, _hint: PushHint) -> bool {
        false
    }

    /// The figures of each connection that writes, for a store on a server.
    fn lanes(&self) -> Vec<StoreLane> {
        Vec::new()
    }

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
    /// The same, and it is done once however often it is asked with this id.
    Once(OperationId, WriteAsk),
}

impl Ask {
    /// A question that may have to be asked again: with the id of its operation, unless asking it again does no harm anyway.
    pub fn once(self, operation: OperationId) -> Ask {
        match self {
            Ask::Write(ask) if !ask.is_idempotent() => Ask::Once(operation, ask),
            ask => ask,
        }
    }
}

/// For how long a store remembers an operation, from the time in its id on. Whoever asks a write again does so within it; later it is
/// done as if it were new. Long enough for a database to change over to its replica and for whoever asks to notice.
pub const OPERATION_KEPT_MS: u64 = 10 * 60 * 1000;

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

            /// The same for a write that is done once however often it is asked with this id.
            ///
            /// # Errors
            /// What the backend says.
            pub fn answer_once_by<B: Writes<E>, E>(
                &self,
                operation: OperationId,
                backend: &mut B,
            ) -> Result<Answer, E> {
                match self { $(WriteAsk::$noun(ask) => ask.answer_once_by(operation, backend),)* }
            }

            /// The names of all of them.
            pub fn names() -> impl Iterator<Item = &'static str> {
                [$($module::WriteAsk::NAMES),*].into_iter().flatten().copied()
            }

            /// What it puts on a store ([`Loads`]).
            pub fn load(&self) -> Load<'_> {
                match self { $(WriteAsk::$noun(_) => $module::load(self),)* }
            }

            /// Its name among [`WriteAsk::names`].
            pub fn name(&self) -> &'static str {
                match self { $(WriteAsk::$noun(ask) => ask.name(),)* }
            }

            /// Whether it may be asked again as it is: the answer and what is then in the store are the same. Any other needs the id
            /// of its operation for that.
            pub fn is_idempotent(&self) -> bool {
                match self { $(WriteAsk::$noun(ask) => ask.is_idempotent(),)* }
            }
        }

        /// A backend that answers every question that changes nothing. One that does not implement each of them does not compile:
        ///
        /// ```compile_fail,E0277
        /// use carillon_core::model::DomainId;
        /// use carillon_core::ports::store::activity::{LastAvailable, ReadAsk};
        ///
        /// struct Backend;
        ///
        /// let asked = LastAvailable { domain: DomainId(1), local: "alice".into() };
        /// let answer: Result<_, ()> = ReadAsk::LastAvailable(asked).answer_by(&mut Backend);
        /// ```
        ///
        /// ```
        /// use carillon_core::model::{DomainId, UnixMs};
        /// use carillon_core::ports::store::Answers;
        /// use carillon_core::ports::store::activity::{LastAvailable, ReadAsk};
        ///
        /// struct Backend;
        ///
        /// impl Answers<LastAvailable, ()> for Backend {
        ///     fn answer(&mut self, _: &LastAvailable) -> Result<Option<UnixMs>, ()> {
        ///         Ok(None)
        ///     }
        /// }
        ///
        /// let asked = LastAvailable { domain: DomainId(1), local: "alice".into() };
        /// let answer: Result<_, ()> = ReadAsk::LastAvailable(asked).answer_by(&mut Backend);
        /// assert!(answer.is_ok());
        /// ```
        pub trait Reads<E>: $($module::Reads<E> +)* {}
        impl<E, B: $($module::Reads<E> +)*> Reads<E> for B {}

        /// A backend that answers every question that changes something. For a write that is not idempotent it implements both how it
        /// is done and how it is done once:
        ///
        /// ```compile_fail,E0277
        /// use carillon_core::model::{ApiKey, KeyId, OperationId};
        /// use carillon_core::ports::Missing;
        /// use carillon_core::ports::store::keys::{CreateKey, CreateKeyAnswer, DeleteKey, ExpireKey, NoteKeyUse, WriteAsk};
        /// use carillon_core::ports::store::{Answers, AnswersOnce};
        ///
        /// struct Backend;
        ///
        /// impl Answers<ExpireKey, ()> for Backend {
        ///     fn answer(&mut self, _: &ExpireKey) -> Result<Result<ApiKey, Missing>, ()> { Err(()) }
        /// }
        ///
        /// impl Answers<NoteKeyUse, ()> for Backend {
        ///     fn answer(&mut self, _: &NoteKeyUse) -> Result<(), ()> { Err(()) }
        /// }
        ///
        /// impl Answers<CreateKey, ()> for Backend {
        ///     fn answer(&mut self, _: &CreateKey) -> Result<CreateKeyAnswer, ()> { Err(()) }
        /// }
        ///
        /// impl AnswersOnce<CreateKey, ()> for Backend {
        ///     fn answer_once(&mut self, _: OperationId, _: &CreateKey) -> Result<CreateKeyAnswer, ()> { Err(()) }
        /// }
        ///
        /// impl Answers<DeleteKey, ()> for Backend {
        ///     fn answer(&mut self, _: &DeleteKey) -> Result<Result<(), Missing>, ()> { Err(()) }
        /// }
        ///
        /// let answer: Result<_, ()> = WriteAsk::DeleteKey(DeleteKey { id: KeyId(1) }).answer_by(&mut Backend);
        /// ```
        ///
        /// ```
        /// use carillon_core::model::{ApiKey, KeyId, OperationId};
        /// use carillon_core::ports::Missing;
        /// use carillon_core::ports::store::keys::{CreateKey, CreateKeyAnswer, DeleteKey, ExpireKey, NoteKeyUse, WriteAsk};
        /// use carillon_core::ports::store::{Answers, AnswersOnce};
        ///
        /// struct Backend;
        ///
        /// impl Answers<ExpireKey, ()> for Backend {
        ///     fn answer(&mut self, _: &ExpireKey) -> Result<Result<ApiKey, Missing>, ()> { Err(()) }
        /// }
        ///
        /// impl Answers<NoteKeyUse, ()> for Backend {
        ///     fn answer(&mut self, _: &NoteKeyUse) -> Result<(), ()> { Err(()) }
        /// }
        ///
        /// impl Answers<CreateKey, ()> for Backend {
        ///     fn answer(&mut self, _: &CreateKey) -> Result<CreateKeyAnswer, ()> { Err(()) }
        /// }
        ///
        /// impl AnswersOnce<CreateKey, ()> for Backend {
        ///     fn answer_once(&mut self, _: OperationId, _: &CreateKey) -> Result<CreateKeyAnswer, ()> { Err(()) }
        /// }
        ///
        /// impl Answers<DeleteKey, ()> for Backend {
        ///     fn answer(&mut self, _: &DeleteKey) -> Result<Result<(), Missing>, ()> { Err(()) }
        /// }
        ///
        /// impl AnswersOnce<DeleteKey, ()> for Backend {
        ///     fn answer_once(&mut self, _: OperationId, _: &DeleteKey) -> Result<Result<(), Missing>, ()> { Err(()) }
        /// }
        ///
        /// let answer: Result<_, ()> = WriteAsk::DeleteKey(DeleteKey { id: KeyId(1) }).answer_by(&mut Backend);
        /// assert!(answer.is_err());
        /// ```
        pub trait Writes<E>: $($module::Writes<E> +)* {}
        impl<E, B: $($module::Writes<E> +)*> Writes<E> for B {}
    };
}

nouns! {
    Domains in domains,
    Accounts in accounts,
    Activity in activity,
    Acts in acts,
    Rooms in rooms,
    Topics in topics,
    Uploads in uploads,
    Subscriptions in subscriptions,
    Items in items,
    Notifications in notifications,
    Broadcasts in broadcasts,
    Offline in offline,
    Keys in keys,
    Idempotency in idempotency,
    Webhooks in webhooks,
    Parked in parked,
    Roster in roster,
    Blocking in blocking,
    Archive in archive,
    Inbox in inbox,
    Invitations in invitations,
    Private in private,
    Nodes in nodes,
    Vcard in vcard,
    Links in links,
    Leases in leases,
    Modules in modules,
    Cells in cells,
    Push in push,
    Endpoints in endpoints,
}

impl Kind for ReadAsk {
    fn among(ask: &Ask) -> Option<&ReadAsk> {
        if let Ask::Read(read) = ask { Some(read) } else { None }
    }
}

impl Kind for WriteAsk {
    fn among(ask: &Ask) -> Option<&WriteAsk> {
        match ask {
            Ask::Write(write) | Ask::Once(_, write) => Some(write),
            Ask::Read(_) => None,
        }
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

crate::form! { enum Fault { 0 = Busy, 1 = Closed, 2 = Broken, 3 = Unknown } }

/// How a store is at the moment. The default is a store that nothing is wrong with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreHealth {
    /// The last read or the last write failed.
    pub fails: bool,
    /// Damage was met since the store was opened, or a disk that could not be read.
    pub may_be_damaged: bool,
    /// For how long the commit that is under way has been, if one is.
    pub committing: Option<Duration>,
}

/// Figures of a connection over which a store writes, since the start where they grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreLane {
    /// Writes that wait for it.
    pub waiting: u64,
    /// Bytes that these carry.
    pub waiting_bytes: u64,
    /// Commits.
    pub commits: u64,
    /// Times that it waited for an answer of the server.
    pub round_trips: u64,
    /// Times that it was connected.
    pub connects: u64,
    /// Groups of writes that were done again, because a connection was lost or another group was met.
    pub repeats: u64,
    /// Commits without an answer, of which it was found out whether they had been done.
    pub settled: u64,
    /// Commits without an answer, of which it could not be found out in time.
    pub unknown: u64,
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
    /// What those writes cost, as accounts are charged for theirs: rows that they changed, or what they carried.
    pub write_cost: u64,
    /// How long each commit took to be on disk.
    pub commit: Durations,
    /// Size of the database in bytes.
    pub bytes: u64,
}
