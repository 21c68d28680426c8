//! Which node is the home of an account, kept by an engine. No node asks it: nodes keep claims themselves ([`Claims`](crate::shard::Claims), ADR 44).

use super::Reply;
use crate::model::Epoch;
use std::fmt::Debug;
use std::sync::Arc;

/// How many sessions the domain of an account allows, as far as its home is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// One: the node of the newest login is the home, whoever was before.
    Single,
    /// Many: the node of the first login stays the home while it lives.
    Multi,
}

/// An answer to [`Claims::claim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Claimed {
    /// This node is the home now, and no living node was before.
    Fresh,
    /// This node was the home already.
    Mine,
    /// This node is the home now, and that one was ([`Policy::Single`]). It may be told again at the next claim, in case that the first answer was lost.
    Replaced(Epoch),
    /// That node is the home and stays it ([`Policy::Multi`]): the session is a seat.
    Seat(Epoch),
}

/// The engine did not answer in time, or too much waits for it. What was asked may have been done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("there is no answer in time")]
pub struct Unavailable;

/// How long an account may be as a name, in bytes: `LOCAL@DOMAIN`. A longer one is [`Unavailable`].
pub const ACCOUNT_BYTES_MAX: usize = 3071;

/// For how long a claim is kept from the last login on. A home that has sessions of an account for longer claims it again before that.
pub const KEPT_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// Says which node is the home of an account: the one that claimed it last, as long as it lives.
///
/// Guarantees, for every implementation, each with the case of the conformance suite (`carillon_backend::conformance::claims`) that fails
/// without it:
/// - **One at a time.** Claims of one account are decided one after the other: of two at once exactly one is the first
///   (`claims::of_many_at_once_one_is_first`).
/// - **Only the living count.** Claims of other epochs that are not above `newest` and not among `living`, as [`Claims::view`] said last, count
///   for nothing (`claims::of_the_dead_count_for_nothing`).
/// - **An answer in time.** Every question is answered once, within some seconds, with [`Unavailable`] where the engine is away
///   (`claims::are_answered_while_the_engine_is_away`).
/// - **Bounded.** What waits is bounded in bytes; past that the answer is [`Unavailable`] at once (`claims::that_wait_are_bounded`).
///
/// It **may forget**: any claim, at any time, for instance when the engine fails over. Where that is noticed it is told
/// ([`Reached::Back`]), and every node claims the accounts that are at home there again.
pub trait Claims: Debug + Send + Sync {
    /// Claims an account for this node.
    fn claim(&self, account: Box<str>, policy: Policy, reply: Reply<Result<Claimed, Unavailable>>);

    /// The home of an account, if a living node has claimed it.
    fn locate(&self, account: Box<str>, reply: Reply<Result<Option<Epoch>, Unavailable>>);

    /// Removes the claim if it is still this epoch's. It is not repeated where the engine is away: a claim that stays costs one question too many.
    fn forget(&self, account: Box<str>, of: Epoch);

    /// Who lives: claims of other epochs that are not above `newest` count for nothing.
    fn view(&self, living: Arc<[Epoch]>, newest: Epoch);

    /// Stops. What waits is answered [`Unavailable`], and so is what is asked later.
    fn close(&self);
}

/// What a node is told of the engine that keeps claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reached {
    /// It cannot be reached.
    Away,
    /// It can be reached: the first time, or again.
    Back {
        /// Whether claims that were made before may be lost.
        lost: bool,
    },
}

/// Where [`Reached`] goes. It must not block.
pub type Reaches = Arc<dyn Fn(Reached) + Send + Sync>;
