//! The inbox of a shard: everything that reaches it from other threads. It is bounded, and the shard takes all of it once
//! per turn. The shard holds the lock twice per turn, to swap two pointers.

use crate::conn::Conn;
use crate::join::{AllDone, Countdown};
use crate::listener_tls::ListenerTls;
use crate::watch::Watcher;
use carillon_core::command::Outcome;
use carillon_core::command::ReplyTo;
use carillon_core::connection::Claimed;
use carillon_core::event::Kinds;
use carillon_core::message::ShardMessage;
use carillon_core::model::{Domains, Ticket};
use carillon_core::ports::{Answer, Derived};
use carillon_core::settings::Settings;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An item in a shard's inbox.
pub(crate) enum InboxItem {
    /// A message from another shard, or a command from outside.
    ShardMessage(ShardMessage),
    /// An answer from the store.
    Answer {
        /// The question's ticket.
        ticket: Ticket,
        /// The answer.
        answer: Answer,
    },
    /// The result of a key derivation.
    Derived {
        /// The derivation's ticket.
        ticket: Ticket,
        /// The keys, or why there are none.
        derived: Derived,
    },
    /// A connection moves to this shard.
    Arrival(Box<Arrival>),
    /// A control message from the node itself.
    Control(Control),
}

/// A connection that moves to another shard, with its socket, its keys, the input that is not handled yet and the output
/// that is not written yet.
pub(crate) struct Arrival {
    pub(crate) conn: Conn,
    pub(crate) moving: Box<Claimed>,
}

/// A control message from the node to its shards.
pub(crate) enum Control {
    /// Accept no more connections, and have the core close every stream.
    Drain,
    /// Close the remaining connections and end.
    Stop,
    /// Use these TLS settings for new connections.
    Tls(Arc<ListenerTls>),
    /// Change limits and timeouts.
    Settings(Arc<Settings>),
    /// Change the bound of the send queues, in bytes.
    OutQueue(usize),
    /// Replace the domains; the token is dropped when they are in force.
    Domains(Arc<Domains>, Arc<AllDone>),
    /// Add a watcher of events.
    Watch(Arc<Watcher>),
    /// Change the kinds of events that the event log keeps.
    Kinds(Kinds),
    /// Prove that the event loop runs.
    Pulse(Arc<Countdown>),
    /// Publish the figures now; the token is dropped when that is done.
    Publish(Arc<AllDone>),
}

/// A shard's inbox.
pub(crate) struct Inbox {
    state: Mutex<State>,
    waker: mio::Waker,
}

struct State {
    items: VecDeque<InboxItem>,
    /// The shard sleeps, or is about to: who adds an item wakes it.
    asleep: bool,
    /// The shard has ended.
    closed: bool,
}

impl Inbox {
    /// An empty inbox of a shard that `waker` wakes.
    pub(crate) fn new(waker: mio::Waker) -> Inbox {
        Inbox { state: Mutex::new(State { items: VecDeque::new(), asleep: false, closed: false }), waker }
    }

    /// Adds an item that must not be refused: an answer, of which there are as many as questions, or one of the node's
    /// few control messages. If the shard has ended, the item is dropped.
    pub(crate) fn push(&self, item: InboxItem) {
        let mut state = self.lock();
        if !state.closed {
            state.items.push_back(item);
            self.wake(state);
        }
    }

    /// Adds a command, or returns it if too many items wait or the shard has ended.
    // The error is the message itself: it is returned to the caller, large as it is.
    #[expect(clippy::result_large_err, reason = "the message comes back to whoever sent it")]
    pub(crate) fn offer(&self, message: ShardMessage) -> Result<(), ShardMessage> {
        let mut state = self.lock();
        if state.closed || state.items.len() >= COMMANDS_MAX {
            return Err(message);
        }
        state.items.push_back(InboxItem::ShardMessage(message));
        self.wake(state);
        Ok(())
    }

    /// Adds commands; returns those for which there is no room.
    pub(crate) fn offer_all(&self, messages: Vec<ShardMessage>) -> Vec<ShardMessage> {
        let mut messages = messages.into_iter();
        if messages.len() > 0 {
            let mut state = self.lock();
            let room = if state.closed { 0 } else { COMMANDS_MAX.saturating_sub(state.items.len()) };
            state.items.extend(messages.by_ref().take(room).map(InboxItem::ShardMessage));
            self.wake(state);
        }
        messages.collect()
    }

    /// Takes the whole batch of another shard, or none of it while too many items wait. Whether it was taken.
    pub(crate) fn append(&self, batch: &mut VecDeque<InboxItem>) -> bool {
        let mut state = self.lock();
        if state.closed {
            drop(state);
            batch.clear();
            return true;
        }
        if state.items.len() >= ITEMS_MAX {
            return false;
        }
        state.items.append(batch);
        self.wake(state);
        true
    }

    /// Moves all items to the shard. `items` is empty before; its memory is reused.
    pub(crate) fn take(&self, items: &mut VecDeque<InboxItem>) {
        let mut state = self.lock();
        state.asleep = false;
        std::mem::swap(&mut state.items, items);
        // Memory that a burst left behind.
        if state.items.capacity() > ITEMS_MAX {
            state.items.shrink_to(COMMANDS_MAX);
        }
    }

    /// Marks the shard as asleep, unless items wait. Whether it may sleep.
    pub(crate) fn sleep(&self) -> bool {
        let mut state = self.lock();
        state.asleep = state.items.is_empty();
        state.asleep
    }

    /// Closes the inbox; returns what is in it.
    pub(crate) fn close(&self) -> VecDeque<InboxItem> {
        let mut state = self.lock();
        state.closed = true;
        std::mem::take(&mut state.items)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic is done under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, mut state: MutexGuard<'_, State>) {
        let asleep = std::mem::replace(&mut state.asleep, false);
        drop(state);
        if asleep && let Err(error) = self.waker.wake() {
            tracing::error!(%error, "cannot wake a shard");
        }
    }
}

/// Answers the commands among items that no shard will handle.
pub(crate) fn turn_away(items: impl IntoIterator<Item = InboxItem>) {
    for item in items {
        if let InboxItem::ShardMessage(ShardMessage::Command { reply: ReplyTo(reply), .. }) = item {
            reply(Outcome::Unavailable);
        }
    }
}

/// Commands from outside are refused while this many items wait.
const COMMANDS_MAX: usize = 8 * 1024;
/// Other shards hold their messages back, and stop reading their clients, while this many items wait.
pub(crate) const ITEMS_MAX: usize = 32 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_core::command::Command;
    use carillon_core::model::NotificationId;
    use mio::{Events, Poll, Token, Waker};
    use std::time::Duration;

    fn inbox() -> (Poll, Inbox) {
        let poll = Poll::new().unwrap();
        let waker = Waker::new(poll.registry(), Token(0)).unwrap();
        (poll, Inbox::new(waker))
    }

    fn message() -> ShardMessage {
        let command = Command::Trace { id: NotificationId(1) };
        ShardMessage::Command { command, reply: ReplyTo(Box::new(|_: Outcome| ())) }
    }

    fn wakes(poll: &mut Poll) -> usize {
        let mut events = Events::with_capacity(8);
        poll.poll(&mut events, Some(Duration::ZERO)).unwrap();
        events.iter().count()
    }

    #[test]
    fn only_a_sleeper_is_woken_and_only_once() {
        let (mut poll, inbox) = inbox();
        assert!(inbox.offer(message()).is_ok());
        assert_eq!(wakes(&mut poll), 0);
        assert!(!inbox.sleep(), "there is mail");
        let mut items = VecDeque::new();
        inbox.take(&mut items);
        assert_eq!(items.len(), 1);
        assert!(inbox.sleep());
        inbox.push(InboxItem::Control(Control::Drain));
        inbox.push(InboxItem::Control(Control::Drain));
        assert_eq!(wakes(&mut poll), 1);
    }

    #[test]
    fn it_is_bounded_for_commands_then_for_shards() {
        let (_poll, inbox) = inbox();
        let taken = std::iter::repeat_with(|| inbox.offer(message()).is_ok()).take_while(|ok| *ok).count();
        assert_eq!(taken, COMMANDS_MAX);
        assert_eq!(inbox.offer_all(vec![message(), message()]).len(), 2);
        let batch = || VecDeque::from_iter((0..COMMANDS_MAX).map(|_| InboxItem::ShardMessage(message())));
        assert_eq!((0..8).filter(|_| inbox.append(&mut batch())).count(), 3);
        inbox.push(InboxItem::Control(Control::Stop));
        assert_eq!(inbox.close().len(), ITEMS_MAX + 1);
        assert!(inbox.offer(message()).is_err());
    }
}
