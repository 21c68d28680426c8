//! The inbox of a shard: everything that reaches it from other threads. It is bounded, and the shard takes all of it once
//! per turn. The shard holds the lock twice per turn, to swap two pointers.

use super::hops::HopSink;
use super::join::{AllDone, Countdown};
use super::replies::Replies;
use super::taps::TapSink;
use super::watch::Watcher;
use crate::cell::{Edge, EdgeInput, EdgeOutput};
use crate::conn::Conn;
use crate::handover::{HandedSink, ShardHandover};
use crate::listener_tls::ListenerTls;
use crate::options::OutQueues;
use crate::quic::QuicItem;
use carillon_core::command::Outcome;
use carillon_core::connection::{CarriedClaim, Claimed, Joining};
use carillon_core::event::Kinds;
use carillon_core::machine::HeavyAccount;
use carillon_core::message::ShardMessage;
use carillon_core::model::{ConnId, Domains, DrainSlice, NodeId, Ticket};
use carillon_core::ports::modules::ActiveModule;
use carillon_core::ports::store::parked::ParkedGroup;
use carillon_core::ports::{Answer, Derived, Directory};
use carillon_core::settings::Settings;
use carillon_core::tap::Order;
use std::collections::VecDeque;
use std::sync::mpsc::SyncSender;
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
    /// A client of another node claims an account of this shard.
    Claim {
        /// Its connection.
        edge: Edge,
        /// The claim.
        claim: Box<CarriedClaim>,
    },
    /// Something from a connection of another node whose session is here.
    FromClient {
        /// The connection.
        edge: Edge,
        /// What happened.
        input: EdgeInput,
    },
    /// Something from a session on another node for its connection here.
    ToClient {
        /// The connection.
        conn: ConnId,
        /// What is to be done.
        output: EdgeOutput,
    },
    /// Something that a node sent here was lost, or the node is gone.
    Lost { node: NodeId, is_gone: bool },
    /// Something of QUIC.
    Quic(Box<QuicItem>),
    /// Something about the log of sessions.
    Log(LogNews),
    /// A control message from the node itself.
    Control(Control),
}

/// What a shard hears of the log of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogNews {
    /// The log has what the shard wrote up to this number.
    Written(u64),
    /// Nobody keeps what is written.
    Away,
    /// Somebody does again, and has nothing of this node.
    Back,
}

/// A connection that moves to another shard, with its socket, its keys, the input that is not handled yet and the output
/// that is not written yet.
pub(crate) struct Arrival {
    pub(crate) conn: Conn,
    pub(crate) moving: Moving,
}

/// Who moves with a connection.
pub(crate) enum Moving {
    /// A client that claims an account.
    Client(Box<Claimed>),
    /// A player.
    Player(Box<Joining>),
}

/// A control message from the node to its shards.
pub(crate) enum Control {
    /// Accept no more connections, and have the core close every stream.
    Drain,
    /// Accept no more connections.
    StopListening,
    /// Have the core end a slice of the sessions, and take no new ones.
    DrainSlice(DrainSlice),
    /// Have the core take sessions again.
    StopDraining,
    /// Say how many answers of the store the core awaits.
    Awaited(SyncSender<usize>),
    /// Take all parked sessions out of the core, as bytes.
    WriteParked(SyncSender<ParkedGroup>),
    /// Have the core park the sessions of these groups.
    Restore(Vec<ParkedGroup>),
    /// Accept connections, or leave them in the kernel's queues.
    Accept(bool),
    /// Say how many connections have no session yet.
    Unbound(SyncSender<usize>),
    /// Read no connection and run no timer; or do so again.
    Freeze(bool),
    /// Have the store keep what others wait for.
    PrepareHandOver,
    /// Take all sessions out of the core, with their connections.
    HandOver(HandedSink),
    /// Take sessions back, with their connections.
    TakeBack(Vec<ShardHandover>),
    /// End the event log of this shard; the token is dropped when that is done.
    EndEvents(Arc<AllDone>),
    /// Close the remaining connections and end.
    Stop,
    /// Use these TLS settings for new connections.
    Tls(Arc<ListenerTls>),
    /// Change limits and timeouts.
    Settings(Arc<Settings>),
    /// Replace the modules; the token is dropped when they are in force.
    Modules(Vec<ActiveModule>, Arc<AllDone>),
    /// Change the bound of the send queues, in bytes.
    OutQueues(OutQueues),
    /// Homes are where this says.
    Directory(Arc<dyn Directory>),
    /// Replace the domains; the token is dropped when they are in force.
    Domains(Arc<Domains>, Arc<AllDone>),
    /// Add a watcher of events.
    Watch(Arc<Watcher>),
    /// Change the kinds of events that the event log keeps.
    Kinds(Kinds),
    /// Follow an account.
    Tap(Box<(Order, TapSink)>),
    /// Tell this one of the steps of followed notifications.
    FollowHops(HopSink),
    /// End a tap.
    Untap(u64),
    /// Give the accounts that cost most; the token is dropped when that is done.
    Top(TopSink, Arc<AllDone>),
    /// Prove that the event loop runs.
    Pulse(Arc<Countdown>),
    /// Publish the figures now; the token is dropped when that is done.
    Publish(Arc<AllDone>),
}

/// Takes the accounts of a shard that cost most.
pub(crate) type TopSink = Arc<dyn Fn(Vec<HeavyAccount>) + Send + Sync>;

/// A shard's inbox.
pub(crate) struct Inbox {
    state: Mutex<InboxState>,
    waker: mio::Waker,
}

struct InboxState {
    items: VecDeque<InboxItem>,
    /// Their bytes ([`InboxItem::memory_bytes`]).
    bytes: usize,
    /// The shard itself waits for others with more than it may hold for them: it takes no commands.
    is_congested: bool,
    /// The sessions are about to go to another process, which is to have the commands, too.
    is_frozen: bool,
    /// The shard sleeps, or is about to: who adds an item wakes it.
    asleep: bool,
    /// The shard has ended.
    closed: bool,
}

impl Inbox {
    /// An empty inbox of a shard that `waker` wakes.
    pub(crate) fn new(waker: mio::Waker) -> Inbox {
        Inbox {
            state: Mutex::new(InboxState {
                items: VecDeque::new(),
                bytes: 0,
                is_congested: false,
                is_frozen: false,
                asleep: false,
                closed: false,
            }),
            waker,
        }
    }

    /// Adds an item that must not be refused: an answer, of which there are as many as questions, or one of the node's
    /// few control messages. If the shard has ended, the item is dropped.
    pub(crate) fn push(&self, item: InboxItem) {
        let bytes = item.memory_bytes();
        let mut state = self.lock();
        if !state.closed {
            state.bytes += bytes;
            state.items.push_back(item);
            self.wake(state);
        }
    }

    /// Adds a command, or returns it if too many items wait or the shard has ended.
    // The error is the message itself: it is returned to the caller, large as it is.
    #[expect(clippy::result_large_err, reason = "the message comes back to whoever sent it")]
    pub(crate) fn offer(&self, message: ShardMessage) -> Result<(), ShardMessage> {
        let mut state = self.lock();
        if !state.takes_commands() {
            return Err(message);
        }
        state.bytes += message.memory_bytes();
        state.items.push_back(InboxItem::ShardMessage(message));
        self.wake(state);
        Ok(())
    }

    /// Adds commands; returns those for which there is no room.
    pub(crate) fn offer_all(&self, messages: Vec<ShardMessage>) -> Vec<ShardMessage> {
        let mut messages = messages.into_iter();
        if messages.len() > 0 {
            let mut state = self.lock();
            while state.takes_commands()
                && let Some(message) = messages.next()
            {
                state.bytes += message.memory_bytes();
                state.items.push_back(InboxItem::ShardMessage(message));
            }
            self.wake(state);
        }
        messages.collect()
    }

    /// Takes an item from another node, unless too much waits. Whether it was taken: the node cannot be held up, so what is not taken is lost.
    pub(crate) fn take_in(&self, item: InboxItem) -> bool {
        let bytes = item.memory_bytes();
        let mut state = self.lock();
        if state.closed || state.items.len() >= FAR_ITEMS_MAX || state.bytes >= FAR_BYTES_MAX {
            return false;
        }
        state.bytes += bytes;
        state.items.push_back(item);
        self.wake(state);
        true
    }

    /// Whether the shard takes no commands, because what it holds for other shards has reached its bound.
    pub(crate) fn set_congested(&self, is_congested: bool) {
        self.lock().is_congested = is_congested;
    }

    /// Whether the shard takes no commands, because its sessions go to another process.
    pub(crate) fn set_frozen(&self, is_frozen: bool) {
        self.lock().is_frozen = is_frozen;
    }

    /// Takes the whole batch of another shard, which has this many bytes, or none of it while too much waits. Whether it was taken.
    pub(crate) fn append(&self, batch: &mut VecDeque<InboxItem>, bytes: usize) -> bool {
        let mut state = self.lock();
        if state.closed {
            drop(state);
            batch.clear();
            return true;
        }
        if state.items.len() >= ITEMS_MAX || state.bytes >= BYTES_MAX {
            return false;
        }
        state.bytes += bytes;
        state.items.append(batch);
        self.wake(state);
        true
    }

    /// Moves all items to the shard. `items` is empty before; its memory is reused.
    pub(crate) fn take(&self, items: &mut VecDeque<InboxItem>) {
        let mut state = self.lock();
        (state.asleep, state.bytes) = (false, 0);
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

    fn lock(&self) -> MutexGuard<'_, InboxState> {
        // Nothing that can panic is done under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, mut state: MutexGuard<'_, InboxState>) {
        let asleep = std::mem::replace(&mut state.asleep, false);
        drop(state);
        if asleep && let Err(error) = self.waker.wake() {
            tracing::error!(%error, "cannot wake a shard");
        }
    }
}

impl InboxState {
    fn takes_commands(&self) -> bool {
        let is_full = self.items.len() >= COMMANDS_MAX || self.bytes >= BYTES_MAX;
        !(self.closed || self.is_congested || self.is_frozen || is_full)
    }
}

impl InboxItem {
    /// Bytes that it takes in memory, as far as a client or a sender chose them.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            InboxItem::ShardMessage(message) => message.memory_bytes(),
            // It is not refused; but what others have for the shard waits for it.
            InboxItem::Answer { answer, .. } => answer.memory_bytes(),
            InboxItem::FromClient { input: EdgeInput::Bytes(bytes), .. }
            | InboxItem::ToClient { output: EdgeOutput::Send { bytes, .. }, .. } => {
                size_of::<InboxItem>() + bytes.len()
            }
            InboxItem::Quic(item) => size_of::<InboxItem>() + item.memory_bytes(),
            // There are as many as connections and control messages, which have bounds of their own.
            InboxItem::Derived { .. }
            | InboxItem::Arrival(_)
            | InboxItem::Claim { .. }
            | InboxItem::FromClient { .. }
            | InboxItem::ToClient { .. }
            | InboxItem::Lost { .. }
            | InboxItem::Log(_)
            | InboxItem::Control(_) => size_of::<InboxItem>(),
        }
    }
}

/// Answers the commands among items that no shard will handle.
pub(crate) fn turn_away(items: impl IntoIterator<Item = InboxItem>, replies: &Replies) {
    for item in items {
        if let InboxItem::ShardMessage(ShardMessage::Command { reply, .. }) = item {
            replies.give(reply, Outcome::Unavailable);
        }
    }
}

/// Commands from outside are refused while this many items wait.
const COMMANDS_MAX: usize = 8 * 1024;
/// Other shards hold their messages back, and stop reading their clients, while this many items wait.
pub(crate) const ITEMS_MAX: usize = 32 * 1024;
/// The same, and no commands are taken, while the items have this many bytes.
pub(crate) const BYTES_MAX: usize = 64 << 20;
/// What other nodes send is lost while this many items wait, or
const FAR_ITEMS_MAX: usize = 4 * ITEMS_MAX;
/// so many bytes.
const FAR_BYTES_MAX: usize = 2 * BYTES_MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_core::command::{Actor, Command, ReplyTo, TopicOp};
    use carillon_core::model::{DomainId, NodeId, NotificationId, Payload};
    use carillon_wire::stanza::{MessageType, Stanza};
    use mio::{Events, Poll, Token, Waker};
    use std::time::Duration;

    fn inbox() -> (Poll, Inbox) {
        let poll = Poll::new().unwrap();
        let waker = Waker::new(poll.registry(), Token(0)).unwrap();
        (poll, Inbox::new(waker))
    }

    fn message() -> ShardMessage {
        let command = Command::Trace { id: NotificationId(1) };
        ShardMessage::Command { command, reply: ReplyTo { node: NodeId(0), number: 0 } }
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
        assert_eq!((0..8).filter(|_| inbox.append(&mut batch(), 0)).count(), 3);
        inbox.push(InboxItem::Control(Control::Stop));
        assert_eq!(inbox.close().len(), ITEMS_MAX + 1);
        assert!(inbox.offer(message()).is_err());
    }

    #[test]
    fn answers_count_as_many_bytes_as_they_have() {
        use carillon_core::model::Item;
        use carillon_core::ports::Question;
        use carillon_core::ports::store::nodes::NodeItems;
        let (_poll, inbox) = inbox();
        let item = Item {
            topic: Default::default(),
            domain: DomainId(1),
            name: "n".into(),
            id: "i".into(),
            publisher: None,
            published: Default::default(),
            payload: vec![b'x'; 1 << 20].into(),
            revision: Default::default(),
        };
        let answer = NodeItems::wrap(Some(vec![Arc::new(item)]));
        for n in 1..=BYTES_MAX / (1 << 20) {
            assert!(inbox.offer(message()).is_ok(), "{n} MiB are too few");
            inbox.push(InboxItem::Answer { ticket: Ticket(0), answer: answer.clone() });
        }
        assert!(inbox.offer(message()).is_err());
        let mut batch = VecDeque::from([InboxItem::ShardMessage(message())]);
        assert!(!inbox.append(&mut batch, 0), "other shards keep what they have");
        inbox.push(InboxItem::Answer { ticket: Ticket(0), answer });
        let mut items = VecDeque::new();
        inbox.take(&mut items);
        assert!(inbox.append(&mut batch, 0));
    }

    #[test]
    fn it_is_bounded_in_bytes() {
        let (_poll, inbox) = inbox();
        let mib = Stanza::message(MessageType::Chat).with_id("x".repeat(1 << 20));
        let large = || ShardMessage::Stanza { stanza: mib.clone(), settlement: None };
        let append = |count: usize| {
            let mut batch = VecDeque::from_iter((0..count).map(|_| InboxItem::ShardMessage(large())));
            let bytes = batch.iter().map(InboxItem::memory_bytes).sum();
            inbox.append(&mut batch, bytes)
        };
        assert!(append(40) && append(30), "the batch that passes the bound is the last");
        assert!(!append(1));
        assert!(inbox.offer(message()).is_err());
        let mut items = VecDeque::new();
        inbox.take(&mut items);
        assert_eq!(items.len(), 70);
        let publish = TopicOp::Publish {
            id: None,
            payload: Payload::Json("x".repeat(1 << 20).into()),
            operation: None,
        };
        let command = || {
            let (domain, name, actor) = (DomainId(1), "t".into(), Actor::Provider);
            let command = Command::Topic { domain, name, actor, op: publish.clone() };
            ShardMessage::Command { command, reply: ReplyTo { node: NodeId(0), number: 0 } }
        };
        assert_eq!(inbox.offer_all((0..100).map(|_| command()).collect()).len(), 100 - BYTES_MAX / (1 << 20));
        assert!(inbox.offer(command()).is_err());
    }
}
