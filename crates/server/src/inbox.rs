//! How anything from outside reaches a shard: a bounded box that is emptied whole once a turn. Its lock is the only
//! one a shard takes, twice a turn and for a swap of pointers.

use crate::conn::Conn;
use crate::join::{AllDone, Countdown};
use crate::listener_tls::ListenerTls;
use crate::watch::Watcher;
use carillon_core::command::Outcome;
use carillon_core::command::ReplyTo;
use carillon_core::event::Kinds;
use carillon_core::message::ShardMessage;
use carillon_core::model::{Domains, Ticket};
use carillon_core::ports::{Answer, Derived};
use carillon_core::session::Claimed;
use carillon_core::settings::Settings;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Something for a shard.
pub(crate) enum InboxItem {
    /// From another shard, or a command from outside.
    ShardMessage(ShardMessage),
    /// From the store.
    Answer {
        /// To which question.
        ticket: Ticket,
        /// What it says.
        answer: Answer,
    },
    /// Keys that were derived.
    Derived {
        /// For which derivation.
        ticket: Ticket,
        /// What became of it.
        derived: Derived,
    },
    /// A connection moves in.
    Arrival(Box<Arrival>),
    /// From the node itself.
    Control(Control),
}

/// A connection on its way to another shard: its socket, its keys, what it has read and what waits to be written.
pub(crate) struct Arrival {
    pub(crate) conn: Conn,
    pub(crate) moving: Box<Claimed>,
}

/// What a node has its shards do.
pub(crate) enum Control {
    /// Accept nothing more, and have the core say goodbye to everyone.
    Drain,
    /// Close what is left and end.
    Stop,
    /// Offer this to new TLS connections.
    Tls(Arc<ListenerTls>),
    /// Other limits and timeouts.
    Settings(Arc<Settings>),
    /// Another bound on what waits for a slow reader, in bytes.
    OutQueue(usize),
    /// Other domains; the token is dropped when they are in force.
    Domains(Arc<Domains>, Arc<AllDone>),
    /// Tell this one of events.
    Watch(Arc<Watcher>),
    /// The event log keeps these kinds from now on.
    Kinds(Kinds),
    /// Say that the shard turns.
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
    /// The shard sleeps, or is about to: whoever brings mail wakes it.
    asleep: bool,
    /// The shard has ended.
    closed: bool,
}

impl Inbox {
    /// An empty one, of a shard that `waker` wakes.
    pub(crate) fn new(waker: mio::Waker) -> Inbox {
        Inbox { state: Mutex::new(State { items: VecDeque::new(), asleep: false, closed: false }), waker }
    }

    /// Puts something in that must not be refused: answers, of which there are as many as questions, and the node's few
    /// orders. Dropped when the shard has ended.
    pub(crate) fn push(&self, item: InboxItem) {
        let mut state = self.lock();
        if !state.closed {
            state.items.push_back(item);
            self.wake(state);
        }
    }

    /// Puts a command in, or gives it back when too many wait or the shard has ended.
    // The error is the letter itself, as large as it is: it is handed back, not copied around.
    #[expect(clippy::result_large_err, reason = "the letter comes back to whoever sent it")]
    pub(crate) fn offer(&self, letter: ShardMessage) -> Result<(), ShardMessage> {
        let mut state = self.lock();
        if state.closed || state.items.len() >= COMMANDS_MAX {
            return Err(letter);
        }
        state.items.push_back(InboxItem::ShardMessage(letter));
        self.wake(state);
        Ok(())
    }

    /// Puts commands in; gives back those that are too many.
    pub(crate) fn offer_all(&self, letters: Vec<ShardMessage>) -> Vec<ShardMessage> {
        let mut letters = letters.into_iter();
        if letters.len() > 0 {
            let mut state = self.lock();
            let room = if state.closed { 0 } else { COMMANDS_MAX.saturating_sub(state.items.len()) };
            state.items.extend(letters.by_ref().take(room).map(InboxItem::ShardMessage));
            self.wake(state);
        }
        letters.collect()
    }

    /// Takes a batch of another shard whole, or not at all while too much waits. Whether it was taken.
    pub(crate) fn append(&self, batch: &mut VecDeque<InboxItem>) -> bool {
        let mut state = self.lock();
        if state.closed {
            drop(state);
            batch.clear();
            return true;
        }
        if state.items.len() >= LETTERS_MAX {
            return false;
        }
        state.items.append(batch);
        self.wake(state);
        true
    }

    /// Gives everything to the shard. `mail` is empty, its memory is used again.
    pub(crate) fn take(&self, items: &mut VecDeque<InboxItem>) {
        let mut state = self.lock();
        state.asleep = false;
        std::mem::swap(&mut state.items, items);
        // What a burst left behind.
        if state.items.capacity() > LETTERS_MAX {
            state.items.shrink_to(COMMANDS_MAX);
        }
    }

    /// Says that the shard goes to sleep, unless there is mail. Whether it may.
    pub(crate) fn sleep(&self) -> bool {
        let mut state = self.lock();
        state.asleep = state.items.is_empty();
        state.asleep
    }

    /// Takes nothing more; gives what is in there.
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

/// Answers the commands among the mail that a shard does not take.
pub(crate) fn turn_away(items: impl IntoIterator<Item = InboxItem>) {
    for item in items {
        if let InboxItem::ShardMessage(ShardMessage::Command { reply: ReplyTo(reply), .. }) = item {
            reply(Outcome::Unavailable);
        }
    }
}

/// Commands from outside are refused when so much waits.
const COMMANDS_MAX: usize = 8 * 1024;
/// Other shards hold their letters back, and stop reading their clients, when so much waits.
pub(crate) const LETTERS_MAX: usize = 32 * 1024;

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

    fn letter() -> ShardMessage {
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
        assert!(inbox.offer(letter()).is_ok());
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
        let taken = std::iter::repeat_with(|| inbox.offer(letter()).is_ok()).take_while(|ok| *ok).count();
        assert_eq!(taken, COMMANDS_MAX);
        assert_eq!(inbox.offer_all(vec![letter(), letter()]).len(), 2);
        let batch = || VecDeque::from_iter((0..COMMANDS_MAX).map(|_| InboxItem::ShardMessage(letter())));
        assert_eq!((0..8).filter(|_| inbox.append(&mut batch())).count(), 3);
        inbox.push(InboxItem::Control(Control::Stop));
        assert_eq!(inbox.close().len(), LETTERS_MAX + 1);
        assert!(inbox.offer(letter()).is_err());
    }
}
