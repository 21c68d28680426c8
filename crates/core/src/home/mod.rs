//! The engine of homes. Everything about an account, a topic or a room is decided at one place, its home, by what the store knows of it
//! (its record) and in the order in which it comes (its tasks). This is what they do alike: the record is read when the first task
//! needs it, tasks wait for it and for each other, what waits is bounded in bytes, and what nobody uses is forgotten.
//!
//! ```text
//!  Unknown ─► Loading ─► Open ◄─► Held ─► Absent        Held: one task has the place for itself
//!     ▲          └─► Failed: it is read again after a while
//!     └─ the record is dropped when records take too much memory
//! ```
//!
//! A kind of home is a type that implements [`HomeKind`] and says what its record, its tasks and its steps are; the places of that kind at
//! home on a shard are its [`Places`]. The engine decides nothing itself and asks nothing: it says which task is next, and its kind
//! does it. A kind without a store begins with a record ([`Places::make`]) and asks for none.

mod place;
mod places;
#[cfg(test)]
mod tests;

pub(crate) use place::{Place, Stage};
pub(crate) use places::{Places, Pushed};

use crate::model::{RoomKey, TopicKey};
use carillon_wire::jid::BareJid;
use std::fmt::Debug;
use std::hash::Hash;

/// What names a place of any kind: who goes on with an answer of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HomeKey {
    /// The home of an account.
    Account(BareJid),
    /// The home of a topic.
    Topic(TopicKey),
    /// The home of a room.
    Room(RoomKey),
}

/// A kind of home.
pub(crate) trait HomeKind: Debug + Sized {
    /// What names a place of this kind.
    type Key: Clone + Debug + Eq + Hash;
    /// What is known of it by the store.
    type Record: Debug;
    /// What is known of it beside that.
    type State: Debug;
    /// What is to be done there.
    type Task: Debug;
    /// What the store was asked for, and what is to be done with the answer.
    type Step: Debug;

    /// Bytes of tasks that may wait at one place.
    const WAITING_BYTES_MAX: usize;
    /// Bytes of tasks that may wait at all places of the shard.
    const ALL_WAITING_BYTES_MAX: usize;

    /// Bytes that a task takes in memory, as far as somebody chose them.
    fn task_bytes(task: &Self::Task) -> usize;

    /// Bytes that a record takes in memory beside its own size.
    fn record_bytes(record: &Self::Record) -> usize;

    /// Whether the record of a place in this state may be dropped, to be read again when it is needed, and the place forgotten when it is not.
    fn may_drop(_: &Self::State) -> bool {
        true
    }

    /// Whether the answer to a step ends something that others may have to be told, also where the home is elsewhere by then.
    fn ends_something(_: &Self::Step) -> bool {
        false
    }

    /// Whether a task that asks the store nothing waits for the answer to a step all the same: both are of one sender, and others see what comes of them.
    fn follows(_: &Self::Task, _: &Self::Step) -> bool {
        false
    }

    /// How a task gets along with others at a place in this state.
    fn concurrency(task: &Self::Task, record: &Self::Record, state: &Self::State) -> Concurrency;
}

/// Which tasks of a place may overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Concurrency {
    /// It asks the store nothing: it overlaps with any that it does not follow ([`HomeKind::follows`]).
    Silent,
    /// It may begin while other writes are under way.
    Write,
    /// It begins when the writes before it are answered; others need not wait for it.
    Read,
    /// It needs the place exclusively, because it changes what others are checked against, or asks more than one question.
    Alone,
}
