//! What a shard hands to others: questions for the store, replies, events. They are gathered during a part of a turn and
//! handed over together at its end, so that whoever waits for them is woken once and finds all of them: the store commits
//! them as one group, a stream of results writes them in one piece.

use super::ShardIo;
use crate::inbox::InboxItem;
use carillon_core::command::ReplyTo;
use carillon_core::command::{Event, Outcome};
use carillon_core::model::Ticket;
use carillon_core::ports::{Answer, Ask, Reply};
use std::sync::Arc;

/// What was gathered and not handed over yet.
#[derive(Default)]
pub(crate) struct Deferred {
    asks: Vec<(Ask, Reply<Answer>)>,
    replies: Vec<(ReplyTo, Outcome)>,
    events: Vec<Event>,
}

impl Deferred {
    /// Adds an outcome for whoever gave a command.
    pub(crate) fn reply(&mut self, to: ReplyTo, outcome: Outcome) {
        self.replies.push((to, outcome));
    }

    /// Adds an event for the watchers.
    pub(crate) fn notify(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Frees memory that a burst made it allocate.
    fn tidy(&mut self) {
        self.asks.shrink_to(CAPACITY);
        self.replies.shrink_to(CAPACITY);
        self.events.shrink_to(CAPACITY);
    }
}

impl ShardIo {
    /// Adds a question to the store. Its answer comes by the inbox.
    pub(crate) fn ask(&mut self, ticket: Ticket, ask: Ask) {
        let inbox = Arc::clone(&self.outboxes.inboxes[usize::from(self.id.0)]);
        let reply = Box::new(move |answer| inbox.push(InboxItem::Answer { ticket, answer }));
        self.deferred.asks.push((ask, reply));
    }

    /// Hands over everything that was gathered.
    pub(crate) fn flush_deferred(&mut self) {
        let deferred = &mut self.deferred;
        if !deferred.asks.is_empty() {
            self.store.ask_all(&mut deferred.asks);
        }
        deferred.replies.drain(..).for_each(|(ReplyTo(reply), outcome)| reply(outcome));
        for event in deferred.events.drain(..) {
            self.watchers.notify(&event);
        }
        deferred.tidy();
    }
}

/// Capacity that is kept for each kind, in items.
const CAPACITY: usize = 1024;
