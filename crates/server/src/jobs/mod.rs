//! Periodic jobs of a node: deliver scheduled notifications, end expired ones and expired messages, sweep archives, finish removals that were interrupted, sample the figures. One thread with a tick
//! of one second. At most one question of each kind is with the store, so that nothing piles up behind a slow store.

mod claim;
mod job;
mod removals;
mod stored;

use crate::clock::unix;
use crate::node::Node;
use carillon_core::message::ShardMessage;
use carillon_core::model::{AccountId, Broadcast, ExpiredMessage, Notification, RoomId, Trace, UnixMs};
use carillon_core::ports::store::archive::{SweepArchives, SweepArchivesAnswer};
use carillon_core::ports::store::broadcasts::ChangedBroadcasts;
use carillon_core::ports::store::notifications::{ClaimDue, Sweep};
use carillon_core::ports::store::offline::ExpiredOffline;
use carillon_core::ports::store::rooms::{SweepRoomArchives, SweepRoomArchivesAnswer};
use carillon_core::ports::{Fault, Page, Part};
use claim::{Claim, LEASE_MS};
use job::Job;
use removals::{Done, Finishing};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use stored::{Measuring, Told};

/// A message to the thread of the jobs.
pub(crate) enum JobMessage {
    /// The store's answer: the notifications that are due.
    Due(Result<Part<Notification>, Fault>),
    /// The homes have what was claimed.
    HandedOver,
    /// The store's answer: the notifications that expired.
    Swept(Result<Part<Trace>, Fault>),
    /// The store's answer: messages whose time is over.
    Overdue(Result<Part<ExpiredMessage>, Fault>),
    /// The store's answer: what was removed from archives.
    ArchivesSwept(Result<SweepArchivesAnswer, Fault>),
    /// The same of the archives of rooms.
    RoomsSwept(Result<SweepRoomArchivesAnswer, Fault>),
    /// The store's answer: the broadcasts that were changed.
    Broadcasts(Result<Part<Broadcast>, Fault>),
    /// What the store did to measure what is stored of domains.
    Stored(Told),
    /// A step of a removal that somebody had not finished.
    Removal(Done),
    /// Ask nothing more; the sender is dropped when no answer is awaited and nothing is claimed.
    Pause(SyncSender<()>),
    /// Go on after a pause.
    Resume,
    /// The node stops.
    Stop,
}

/// The jobs of a node.
pub(crate) struct Jobs {
    node: Node,
    messages: Receiver<JobMessage>,
    sender: SyncSender<JobMessage>,
    /// How long the trace of an ended notification is kept, in milliseconds.
    traces_kept_ms: u64,
}

/// What the jobs are doing.
#[derive(Default)]
struct UnderWay {
    due: Job<ClaimDue>,
    /// What is claimed and not yet with its homes; nothing is claimed beside it.
    claim: Option<Claim>,
    /// Whether the store has more that is due.
    more: bool,
    sweep: Job<Sweep>,
    overdue: Job<ExpiredOffline>,
    archives: Job<SweepArchives>,
    /// Up to which account archives were swept, in a round that goes on.
    swept_to: Option<AccountId>,
    rooms: Job<SweepRoomArchives>,
    /// Up to which room, likewise.
    rooms_swept_to: Option<RoomId>,
    broadcasts: Job<ChangedBroadcasts>,
    /// The revision of broadcasts up to which the shards know them.
    broadcast_revision: u64,
    /// Whether they know all that were open at the start.
    knows_broadcasts: bool,
    stored: Measuring,
    removals: Finishing,
    /// When the next round begins, in ticks.
    next_round: u32,
    /// Nothing is begun; whoever wants to know that nothing is under way any more.
    paused: Option<Option<SyncSender<()>>>,
}

impl UnderWay {
    /// Begins nothing more, and tells whoever waits when nothing is under way.
    fn pause(&mut self, waiter: SyncSender<()>) {
        self.stored.stop();
        self.removals.stop();
        self.paused = Some(Some(waiter));
    }

    /// Begins a round through the archives when it is time.
    fn begin_round(&mut self) {
        match self.next_round.checked_sub(1) {
            Some(left) => self.next_round = left,
            None if self.swept_to.is_none() => {
                self.next_round = ROUND_TICKS;
                self.swept_to = Some(AccountId(0));
                self.rooms_swept_to.get_or_insert(RoomId(0));
            }
            None => {}
        }
    }

    /// Tells whoever waits for it that nothing is under way.
    fn rest(&mut self) {
        if !self.due.is_under_way()
            && self.claim.is_none()
            && !self.sweep.is_under_way()
            && !self.overdue.is_under_way()
            && !self.archives.is_under_way()
            && !self.rooms.is_under_way()
            && !self.broadcasts.is_under_way()
            && !self.stored.is_under_way()
            && !self.removals.is_under_way()
            && let Some(waiter) = &mut self.paused
        {
            *waiter = None;
        }
    }
}

impl Jobs {
    /// The jobs of a node, and where they are told to stop.
    pub(crate) fn new(node: Node, traces_kept_ms: u64) -> (Jobs, SyncSender<JobMessage>) {
        let (sender, messages) = sync_channel(MESSAGES_MAX);
        (Jobs { node, messages, sender: sender.clone(), traces_kept_ms }, sender)
    }

    /// Runs until the node stops.
    pub(crate) fn run(self) {
        let mut under_way = UnderWay { next_round: FIRST_ROUND_TICKS, ..UnderWay::default() };
        let mut tick = Instant::now();
        loop {
            match self.messages.recv_timeout(tick.saturating_duration_since(Instant::now())) {
                Ok(JobMessage::Due(answer)) => self.claimed(answer, &mut under_way),
                Ok(JobMessage::HandedOver) => {
                    under_way.claim = None;
                    if std::mem::take(&mut under_way.more) {
                        self.ask_due(&mut under_way);
                    }
                }
                Ok(JobMessage::Swept(answer)) => {
                    let (Part { entries, more }, _) = under_way.sweep.answered(answer);
                    entries.into_iter().for_each(|trace| self.tell(trace));
                    if more {
                        self.ask_sweep(&mut under_way);
                    }
                }
                Ok(JobMessage::Overdue(answer)) => {
                    let (Part { entries, .. }, _) = under_way.overdue.answered(answer);
                    entries.into_iter().for_each(|message| self.end_message(message));
                }
                Ok(JobMessage::ArchivesSwept(answer)) => {
                    let is_done = answer.is_ok();
                    let (swept, _) = under_way.archives.answered(answer);
                    // What the store could not do is asked again with the next tick.
                    if is_done {
                        under_way.swept_to = swept.next;
                        self.sweep_archives(&mut under_way);
                    }
                }
                Ok(JobMessage::RoomsSwept(answer)) => {
                    let is_done = answer.is_ok();
                    let (swept, _) = under_way.rooms.answered(answer);
                    if is_done {
                        under_way.rooms_swept_to = swept.next;
                        self.sweep_rooms(&mut under_way);
                    }
                }
                Ok(JobMessage::Broadcasts(answer)) => self.heard_of_broadcasts(answer, &mut under_way),
                Ok(JobMessage::Stored(told)) => under_way.stored.heard(told, &self.node, &self.sender),
                Ok(JobMessage::Removal(done)) => {
                    let is_paused = under_way.paused.is_some();
                    under_way.removals.heard(done, is_paused, &self.node, &self.sender);
                }
                Ok(JobMessage::Pause(waiter)) => under_way.pause(waiter),
                Ok(JobMessage::Resume) => under_way.paused = None,
                Ok(JobMessage::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    tick = Instant::now() + TICK;
                    self.node.sample();
                    match &mut under_way.claim {
                        Some(claim) => claim.hand_over(&self.node),
                        None => self.ask_due(&mut under_way),
                    }
                    self.ask_sweep(&mut under_way);
                    self.ask_overdue(&mut under_way);
                    self.ask_broadcasts(&mut under_way);
                    self.measure(&mut under_way);
                    self.finish_removals(&mut under_way);
                    under_way.begin_round();
                    self.sweep_archives(&mut under_way);
                    self.sweep_rooms(&mut under_way);
                }
            }
            under_way.rest();
        }
    }

    fn measure(&self, under_way: &mut UnderWay) {
        if under_way.paused.is_none() {
            under_way.stored.tick(&self.node, &self.sender);
        }
    }

    fn finish_removals(&self, under_way: &mut UnderWay) {
        if under_way.paused.is_none() {
            under_way.removals.tick(&self.node, &self.sender);
        }
    }

    fn ask_due(&self, under_way: &mut UnderWay) {
        if under_way.paused.is_some() {
            return;
        }
        let sender = self.sender.clone();
        let question = || {
            let now = unix();
            ClaimDue { now, until: now.plus(LEASE_MS), page: DUE }
        };
        // The thread may have ended by the time of the answer; nobody else needs it.
        under_way.due.ask(&self.node, question, move |answer| drop(sender.send(JobMessage::Due(answer))));
    }

    fn ask_sweep(&self, under_way: &mut UnderWay) {
        if under_way.paused.is_some() {
            return;
        }
        let sender = self.sender.clone();
        let question = || {
            let now = unix();
            Sweep { now, forget: UnixMs(now.0.saturating_sub(self.traces_kept_ms)), max: SWEEP_MAX }
        };
        under_way.sweep.ask(&self.node, question, move |answer| drop(sender.send(JobMessage::Swept(answer))));
    }

    fn ask_overdue(&self, under_way: &mut UnderWay) {
        if under_way.paused.is_some() {
            return;
        }
        let sender = self.sender.clone();
        let question = || ExpiredOffline { now: unix(), page: OVERDUE };
        let told = move |answer| drop(sender.send(JobMessage::Overdue(answer)));
        under_way.overdue.ask(&self.node, question, told);
    }

    fn ask_broadcasts(&self, under_way: &mut UnderWay) {
        if under_way.paused.is_some() {
            return;
        }
        let (sender, after) = (self.sender.clone(), under_way.broadcast_revision);
        let told = move |answer| drop(sender.send(JobMessage::Broadcasts(answer)));
        let only_open = !under_way.knows_broadcasts;
        let question = || ChangedBroadcasts { after, only_open, page: CHANGED_BROADCASTS };
        under_way.broadcasts.ask(&self.node, question, told);
    }

    /// Tells the shards which broadcasts are open, and then what changes. What another node changed they have heard by then, unless it was lost.
    fn heard_of_broadcasts(&self, answer: Result<Part<Broadcast>, Fault>, under_way: &mut UnderWay) {
        let is_read = answer.is_ok();
        let (Part { entries: changed, more }, _) = under_way.broadcasts.answered(answer);
        let is_all = !under_way.knows_broadcasts && !more;
        if !is_read || (changed.is_empty() && !is_all) {
            return;
        }
        under_way.knows_broadcasts |= is_all;
        if let Some(newest) = changed.last() {
            under_way.broadcast_revision = newest.revision;
        }
        let changed: Vec<_> = changed.into_iter().map(Arc::new).collect();
        self.node.tell_own_broadcasts(&changed, is_all);
        if more {
            self.ask_broadcasts(under_way);
        }
    }

    /// Goes on with a round through the archives, if there is one.
    fn sweep_archives(&self, under_way: &mut UnderWay) {
        let Some(after) = under_way.swept_to.filter(|_| under_way.paused.is_none()) else { return };
        let sender = self.sender.clone();
        let question = || SweepArchives { now: unix(), after, max: ARCHIVES_SWEPT_MAX };
        let told = move |answer| drop(sender.send(JobMessage::ArchivesSwept(answer)));
        under_way.archives.ask(&self.node, question, told);
    }

    /// The same through the archives of rooms.
    fn sweep_rooms(&self, under_way: &mut UnderWay) {
        let Some(after) = under_way.rooms_swept_to.filter(|_| under_way.paused.is_none()) else { return };
        let sender = self.sender.clone();
        let question = || SweepRoomArchives { now: unix(), after, max: ARCHIVES_SWEPT_MAX };
        let told = move |answer| drop(sender.send(JobMessage::RoomsSwept(answer)));
        under_way.rooms.ask(&self.node, question, told);
    }

    /// Hands over what is due.
    fn claimed(&self, answer: Result<Part<Notification>, Fault>, under_way: &mut UnderWay) {
        let (Part { entries, more }, asked) = under_way.due.answered(answer);
        under_way.more = more;
        if !entries.is_empty() {
            under_way.claim.insert(Claim::new(entries, asked, &self.sender)).hand_over(&self.node);
        }
    }

    /// Tells the home of its account that the time of a message is over.
    fn end_message(&self, expired: ExpiredMessage) {
        let home = expired.to.clone();
        self.node.tell_home(home.as_str(), ShardMessage::MessageExpired(Box::new(expired)));
    }

    /// Tells the home of its account that a notification expired.
    fn tell(&self, trace: Trace) {
        let home = trace.to.clone();
        self.node.tell_home(home.as_str(), ShardMessage::Expired(Box::new(trace)));
    }
}

/// Expired messages told at once. What their homes have not had deleted by the next tick is told again.
const OVERDUE: Page = Page { entries: 5000, bytes: 4 << 20 };
/// Messages that wait at most: one of each kind, and the end, which may be told twice.
const MESSAGES_MAX: usize = 14;
/// Broadcasts that the shards are told of at once.
const CHANGED_BROADCASTS: Page = Page { entries: 100, bytes: 4 << 20 };
const TICK: Duration = Duration::from_secs(1);
/// Scheduled notifications claimed at once.
const DUE: Page = Page { entries: 500, bytes: 4 << 20 };
/// Notifications ended, and traces forgotten, at once.
const SWEEP_MAX: u32 = 1000;
/// A round through the archives begins every ten minutes, the first a minute after the start.
const FIRST_ROUND_TICKS: u32 = 60;
const ROUND_TICKS: u32 = 600;
/// Messages removed from archives at once.
const ARCHIVES_SWEPT_MAX: u32 = 500;
