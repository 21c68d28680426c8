//! Periodic jobs of a node: deliver scheduled notifications, end expired ones, sample the figures. One thread with a tick
//! of one second. At most one question of each kind is with the store, so that nothing piles up behind a slow store.

mod due;

use crate::clock::unix;
use crate::inbox::InboxItem;
use crate::node::Node;
use carillon_core::message::ShardMessage;
use carillon_core::model::{Notification, ShardId, Trace, UnixMs};
use carillon_core::ports::store::notifications::{Sweep, TakeDue};
use carillon_core::ports::{Fault, Part};
use due::Due;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

/// A message to the thread of the jobs.
pub(crate) enum JobMessage {
    /// The store's answer: the notifications that are due.
    Due(Result<Part<Notification>, Fault>),
    /// The store's answer: the notifications that expired.
    Swept(Result<Part<Trace>, Fault>),
    /// The node stops.
    Stop,
}

/// The jobs of a node.
pub(crate) struct Jobs {
    pub(crate) node: Node,
    pub(crate) messages: Receiver<JobMessage>,
    pub(crate) sender: SyncSender<JobMessage>,
    /// How long the trace of an ended notification is kept, in milliseconds.
    pub(crate) traces_kept_ms: u64,
}

/// Which questions are with the store.
#[derive(Default)]
struct Asked {
    due: bool,
    sweep: bool,
}

impl Jobs {
    /// Runs until the node stops.
    pub(crate) fn run(self) {
        let mut due = Due::default();
        let mut asked = Asked::default();
        let mut tick = Instant::now();
        loop {
            match self.messages.recv_timeout(tick.saturating_duration_since(Instant::now())) {
                Ok(JobMessage::Due(answer)) => {
                    asked.due = false;
                    let more = self.take_due(answer, &mut due);
                    due.hand_over(&self.node);
                    if more && due.is_empty() {
                        self.ask_due(&mut asked);
                    }
                }
                Ok(JobMessage::Swept(answer)) => {
                    asked.sweep = false;
                    if self.swept(answer) {
                        self.ask_sweep(&mut asked);
                    }
                }
                Ok(JobMessage::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    tick = Instant::now() + TICK;
                    self.node.sample();
                    due.hand_over(&self.node);
                    if due.is_empty() {
                        self.ask_due(&mut asked);
                    }
                    self.ask_sweep(&mut asked);
                }
            }
        }
    }

    fn ask_due(&self, asked: &mut Asked) {
        if !std::mem::replace(&mut asked.due, true) {
            let sender = self.sender.clone();
            // The thread may have ended by then; nobody else needs the answer.
            let reply = move |answer| drop(sender.send(JobMessage::Due(answer)));
            self.node.ask(TakeDue { now: unix(), max: DUE_MAX }, reply);
        }
    }

    fn ask_sweep(&self, asked: &mut Asked) {
        if !std::mem::replace(&mut asked.sweep, true) {
            let sender = self.sender.clone();
            let now = unix();
            let forget = UnixMs(now.0.saturating_sub(self.traces_kept_ms));
            let reply = move |answer| drop(sender.send(JobMessage::Swept(answer)));
            self.node.ask(Sweep { now, forget, max: SWEEP_MAX }, reply);
        }
    }

    /// Hands over what is due; whether there is more.
    fn take_due(&self, answer: Result<Part<Notification>, Fault>, due: &mut Due) -> bool {
        let Part { entries, more } = logged(answer, "scheduled notifications");
        due.add(entries);
        more
    }

    /// Tells the watchers what expired; whether there is more.
    fn swept(&self, answer: Result<Part<Trace>, Fault>) -> bool {
        let Part { entries, more } = logged(answer, "expired notifications");
        entries.into_iter().for_each(|trace| self.tell(trace));
        more
    }

    fn tell(&self, trace: Trace) {
        // Any shard will do: each of them knows all watchers.
        self.node.inbox(ShardId(0)).push(InboxItem::ShardMessage(ShardMessage::Expired(Box::new(trace))));
    }
}

/// What came; nothing when the store could not do it, which is logged.
fn logged<T>(answer: Result<Part<T>, Fault>, what: &str) -> Part<T> {
    answer.unwrap_or_else(|fault| {
        tracing::warn!(%fault, what, "the store did not hand them out");
        Part::default()
    })
}

/// Messages that wait at most: one answer of each kind, and the end, which may be told twice.
pub(crate) const MESSAGES_MAX: usize = 4;
const TICK: Duration = Duration::from_secs(1);
/// Scheduled notifications taken at once.
const DUE_MAX: u16 = 500;
/// Notifications ended, and traces forgotten, at once.
const SWEEP_MAX: u32 = 1000;
