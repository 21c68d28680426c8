//! Durable queues that messages are taken from.

use crate::model::UnixMs;
use bytes::Bytes;
use std::fmt::{self, Debug};
use std::pin::Pin;
use std::time::Duration;

/// What a queue is asked answers later. Dropped before that, what was asked may or may not be done.
pub type Pending<T> = Pin<Box<dyn Future<Output = Result<T, QueueFault>> + Send>>;

/// A delivery of a message, as its queue knows it: a number that is given once per process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Receipt(pub u64);

/// A message that a queue gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulled {
    /// This delivery of it.
    pub receipt: Receipt,
    /// Names the message among all of its queue, the same at each delivery, and after a dead letter was sent again.
    pub id: Box<str>,
    /// When the queue accepted it. The same at each delivery.
    pub sent: UnixMs,
    /// How often it was delivered, this time included, as far as the queue knows.
    pub attempt: u64,
    /// Messages of one group are to be dealt with one after the other; without one a message is by itself.
    pub group: Option<Box<str>>,
    /// Headers or attributes, by lower-case names.
    pub headers: Vec<(Box<str>, Box<str>)>,
    /// Its body.
    pub body: Bytes,
}

impl Pulled {
    /// The first header of this lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| **key == *name).map(|(_, value)| &**value)
    }

    /// The bytes of its body and its headers.
    pub fn bytes(&self) -> usize {
        self.body.len() + self.headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
    }
}

/// What becomes of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The message is done: the queue forgets it.
    Done,
    /// It is delivered again, after this time at the earliest.
    Later(Duration),
    /// It will never be done: it becomes a dead letter with this reason.
    Dead(Reason),
}

/// Why a message became a dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// A word: a code of the API, or one of the intake's own.
    pub code: Box<str>,
    /// A sentence.
    pub detail: Box<str>,
}

/// Messages of a queue, as the queue counts them now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Messages that nobody was given yet.
    pub waiting: u64,
    /// Messages that were given to somebody, on this node or another, and are not settled.
    pub unsettled: u64,
    /// Since when the oldest of both waits, if the queue can tell.
    pub oldest: Option<UnixMs>,
    /// Dead letters.
    pub dead: u64,
}

/// A message that became a dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadMessage {
    /// The queue's name of the dead letter.
    pub letter: Box<str>,
    /// The message's own name, as [`Pulled::id`].
    pub id: Box<str>,
    /// When the queue accepted the message, if that is known.
    pub sent: Option<UnixMs>,
    /// When it became a dead letter.
    pub died: UnixMs,
    /// Why, if that was noted.
    pub reason: Option<Reason>,
    /// Its body.
    pub body: Bytes,
}

/// Why a queue did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueFault {
    /// It cannot be reached, or did not answer in time.
    Away(Box<str>),
    /// It is not as the settings say, or does not allow what was asked: somebody has to change that.
    Wrong(Box<str>),
}

impl fmt::Display for QueueFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueFault::Away(why) => write!(f, "the queue cannot be reached: {why}"),
            QueueFault::Wrong(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for QueueFault {}

/// A durable queue, as one of its consumers sees it.
///
/// Guarantees, for every implementation, each with the case of the conformance suite (`carillon_backend::conformance::queue`) that fails
/// without it:
/// - **At least once.** A message is delivered again until a delivery of it was settled by [`Verdict::Done`] or [`Verdict::Dead`]: after
///   [`Verdict::Later`] (`queue::what_is_put_back_comes_after_its_time`), and when its time for being settled has passed (`queue::what_is_not_settled_comes_again`). It has the same
///   [`Pulled::id`] and [`Pulled::sent`] each time.
/// - **Settled for good.** What was settled is not delivered again, unless the queue loses that (`queue::what_is_done_does_not_come_again`).
/// - **A dead letter is kept before the message is forgotten**, with its reason, and can be sent again under the name that the message had
///   (`queue::a_dead_letter_is_kept_and_sent_again`).
/// - **Bounded.** No more messages are given than were asked for, and of bytes no more but for a message that is larger by itself
///   (`queue::no_more_come_than_were_asked_for`).
pub trait Queue: Debug + Send + Sync {
    /// Up to `max` messages, of about `bytes_max` bytes. Waits a few seconds for the first, and for no more.
    fn pull(&self, max: usize, bytes_max: usize) -> Pending<Vec<Pulled>>;

    /// Says what became of a delivery. It is answered when the queue was told.
    fn settle(&self, receipt: Receipt, verdict: Verdict) -> Pending<()>;

    /// Work on these deliveries goes on: their time begins anew.
    fn extend(&self, receipts: Vec<Receipt>) -> Pending<()>;

    /// How long a delivery has until the message is delivered again.
    fn settle_within(&self) -> Duration;

    /// Counts its messages.
    fn depth(&self) -> Pending<Depth>;

    /// The oldest dead letters, at most `max`.
    fn dead(&self, max: usize) -> Pending<Vec<DeadMessage>>;

    /// Has up to `max` of the oldest dead letters delivered as messages again. How many they were.
    fn redrive(&self, max: usize) -> Pending<usize>;

    /// Has what was settled sent to the queue, where that waits.
    fn flush(&self) -> Pending<()>;
}
