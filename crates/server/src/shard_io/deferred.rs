//! What a shard hands to others: questions for the store, replies, state changes. They are gathered during a part of a turn and
//! handed over together at its end, so that whoever waits for them is woken once and finds all of them: the store commits
//! them as one group, a stream of results writes them in one piece.

use crate::channels::replies::Replies;
use crate::channels::watch::Watchers;
use carillon_core::command::{Outcome, ReplyTo, StateChange};
use carillon_core::ports::{Answer, Ask, Reply, Store};

/// What was gathered and not handed over yet.
#[derive(Default)]
pub(crate) struct Deferred {
    asks: Vec<(Ask, Reply<Answer>)>,
    replies: Vec<(ReplyTo, Outcome)>,
    changes: Vec<StateChange>,
    /// Whether there is an event in the store of which no change tells.
    has_event: bool,
}

impl Deferred {
    /// Adds a question to the store.
    pub(super) fn ask(&mut self, ask: Ask, reply: Reply<Answer>) {
        self.asks.push((ask, reply));
    }

    /// Adds an outcome for whoever gave a command.
    pub(crate) fn reply(&mut self, to: ReplyTo, outcome: Outcome) {
        self.replies.push((to, outcome));
    }

    /// Adds a state change for the watchers.
    pub(crate) fn notify(&mut self, change: StateChange) {
        self.changes.push(change);
    }

    /// Notes that there is an event in the store of which no state change tells.
    pub(crate) fn note_event(&mut self) {
        self.has_event = true;
    }

    /// Hands over everything that was gathered.
    pub(super) fn flush(&mut self, store: &dyn Store, replies: &Replies, watchers: &mut Watchers) {
        if !self.asks.is_empty() {
            store.ask_all(&mut self.asks);
        }
        self.replies.drain(..).for_each(|(to, outcome)| replies.give(to, outcome));
        self.changes.drain(..).for_each(|change| watchers.notify(&change));
        if std::mem::take(&mut self.has_event) {
            watchers.hint();
        }
        self.tidy();
    }

    /// Frees memory that a burst made it allocate.
    fn tidy(&mut self) {
        self.asks.shrink_to(CAPACITY);
        self.replies.shrink_to(CAPACITY);
        self.changes.shrink_to(CAPACITY);
    }
}

/// Capacity that is kept for each kind, in items.
const CAPACITY: usize = 1024;
