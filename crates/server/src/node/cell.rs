//! A node of a cell, for operators: what it knows of the others, what it asks of them, and what it answers.

use super::{DrainProgress, Node, lock};
use crate::cell::{CellHands, CellView, DrainReport, NodeReport, NodeRequest, Questions, Record, owners};
use carillon_core::machine::orphans_of;
use carillon_core::message::{AdoptionMessage, ShardMessage};
use carillon_core::model::{NodeId, OtherHost, Place};
use carillon_core::ports::bus::BusFigures;
use carillon_core::ports::{Bus, Directory, Left, Reply};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// What a node has of its cell besides its shards.
#[derive(Default)]
pub(super) struct OfCell {
    view: Mutex<Option<Arc<CellView>>>,
    hands: OnceLock<Box<dyn CellHands>>,
    questions: Questions,
    /// Partitions whose homes came here, and went from here.
    moved_in: AtomicU64,
    moved_out: AtomicU64,
}

/// Partitions of names that changed their node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HomeMoves {
    /// To this node.
    pub came: u64,
    /// From this node.
    pub went: u64,
}

impl Node {
    /// The node's own number: that of its epoch.
    pub fn own(&self) -> NodeId {
        self.inner.own
    }

    /// The cell as this node sees it, if it is in one.
    pub fn cell(&self) -> Option<Arc<CellView>> {
        lock(&self.inner.of_cell.view).clone()
    }

    /// From now on this is what is known of the cell.
    pub fn set_cell(&self, view: CellView) {
        *lock(&self.inner.of_cell.view) = Some(Arc::new(view));
    }

    /// From now on these do what is wanted done with the cell.
    pub fn set_hands(&self, hands: Box<dyn CellHands>) {
        // It joins one cell.
        drop(self.inner.of_cell.hands.set(hands));
    }

    /// Whether it is one of several.
    pub(crate) fn is_in_cell(&self) -> bool {
        self.inner.bus.is_some()
    }

    /// Whether there are other nodes that may have homes.
    fn has_others(&self) -> bool {
        !self.directory().other_nodes().is_empty()
    }

    /// The bus of its cell, if it is in one.
    pub(crate) fn bus_of_cell(&self) -> Option<Arc<dyn Bus>> {
        self.inner.bus.clone()
    }

    /// Gives the homes of this node to the others, and waits until its shards are told.
    pub fn lend_homes(&self) {
        self.yield_homes(true);
        self.await_heirs();
    }

    /// Waits until the homes of this node are with the others, [`LENDING`] at most. Without others they stay. For a thread that may block: not one of a shard.
    pub(super) fn await_heirs(&self) {
        let until = Instant::now() + LENDING;
        while self.has_others() && self.homes().contains_key(&self.inner.own) && Instant::now() < until {
            std::thread::sleep(MOMENT);
        }
    }

    /// Has homes here again.
    pub fn take_homes_back(&self) {
        self.yield_homes(false);
    }

    /// What its bus carried, if it has one.
    pub fn bus(&self) -> Option<BusFigures> {
        self.inner.bus.as_ref().map(|bus| bus.figures())
    }

    /// How many of the 256 partitions of names are at home on each node.
    pub fn homes(&self) -> BTreeMap<NodeId, u16> {
        let mut homes = BTreeMap::new();
        owners(&*self.directory()).into_iter().for_each(|node| *homes.entry(node).or_default() += 1);
        homes
    }

    /// How many partitions came here and went from here, since the node was started.
    pub fn home_moves(&self) -> HomeMoves {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        HomeMoves { came: of(&self.inner.of_cell.moved_in), went: of(&self.inner.of_cell.moved_out) }
    }

    /// Where the home of a name is: a bare JID, or the address of a topic or a room.
    pub fn home(&self, name: &str) -> Place {
        self.directory().home(name)
    }

    /// Asks a node, this one or another. `reply` is dropped without a call if that node does not answer within some seconds.
    pub fn ask_node(&self, node: NodeId, request: NodeRequest, reply: Reply<NodeReport>) {
        if node == self.inner.own {
            return reply(self.answer(request));
        }
        let number = self.inner.of_cell.questions.add(node, reply);
        self.post_far(node, &Record::Request { request, number });
    }

    /// Buries a node, and says why in the log. Nobody is told if this one is in no cell, or the store cannot be reached; else whether it was
    /// done now.
    pub fn bury(&self, node: NodeId, reason: &str, reply: Reply<bool>) {
        if let Some(hands) = self.inner.of_cell.hands.get() {
            hands.bury(node, reason, reply);
        }
    }

    /// Does what an operator asks of this node. It does not block: the bus waits for it.
    pub(crate) fn answer(&self, request: NodeRequest) -> NodeReport {
        match request {
            NodeRequest::Report => {}
            NodeRequest::Drain { over_ms, to } => {
                // The node that asks has looked at it.
                let to = to.and_then(|to| to.parse::<OtherHost>().ok());
                self.start_drain(Duration::from_millis(over_ms), to);
            }
            NodeRequest::CancelDrain => {
                self.cancel_drain();
            }
        }
        self.report()
    }

    /// Another node has answered.
    pub(crate) fn answered(&self, from: NodeId, number: u64, report: NodeReport) {
        self.inner.of_cell.questions.give(from, number, report);
    }

    /// Tells the other nodes whether the sessions of this one are written down.
    pub fn announce_log(&self, to: impl IntoIterator<Item = NodeId>, are_kept: bool) {
        to.into_iter().for_each(|node| self.post_far(node, &Record::Logs(are_kept)));
    }

    /// Sessions of a node that is dead go on, each where its account is at home now.
    pub fn adopt(&self, of: NodeId, left: Vec<Left>) {
        let began = Instant::now();
        let sessions = left.len();
        let (orphans, unreadable) = orphans_of(of, left, self.inner.clock.now());
        let accounts = orphans.len();
        for orphans in orphans {
            let account = orphans.account.clone();
            self.tell_home(
                account.as_str(),
                ShardMessage::Adoption(Box::new(AdoptionMessage::Left(orphans))),
            );
        }
        let took_ms = began.elapsed().as_millis() as u64;
        tracing::info!(node = of.0, sessions, accounts, unreadable, took_ms, "sessions of a dead node go on");
    }

    /// Tells the other nodes that homes are here again.
    pub fn announce_return(&self, to: impl IntoIterator<Item = NodeId>) {
        to.into_iter().for_each(|node| self.post_far(node, &Record::Returning));
    }

    /// Counts the partitions that change their node.
    pub(super) fn count_moves(&self, before: &dyn Directory, after: &dyn Directory) {
        let own = self.inner.own;
        for (was, is) in owners(before).into_iter().zip(owners(after)).filter(|(was, is)| was != is) {
            let OfCell { moved_in, moved_out, .. } = &self.inner.of_cell;
            moved_in.fetch_add(u64::from(is == own), Ordering::Relaxed);
            moved_out.fetch_add(u64::from(was == own), Ordering::Relaxed);
        }
    }

    /// Another node is gone: it answers nothing.
    pub(super) fn lose_answers(&self, node: NodeId) {
        self.inner.of_cell.questions.lose(node);
    }

    /// In a cell, homes go to the other nodes, or come back.
    pub(super) fn yield_homes(&self, gives: bool) {
        if let Some(hands) = self.inner.of_cell.hands.get() {
            hands.yield_homes(gives);
        }
    }

    fn report(&self) -> NodeReport {
        let figures = crate::metrics::Snapshot::sum(&self.inner.figures);
        let drain = self.drain_progress().map(Into::into);
        NodeReport {
            version: env!("CARGO_PKG_VERSION").into(),
            ready: self.is_ready(),
            uptime_ms: self.mono().0,
            shards: self.shards(),
            connections: self.connections(),
            relayed: figures.io.relayed,
            sessions: figures.core.sessions + figures.core.light,
            carried: figures.io.carried,
            drain,
        }
    }
}

/// How long the thread that watches the cell may take to give the homes of the node away.
const LENDING: Duration = Duration::from_secs(2);
/// The time between two looks at whether it has.
const MOMENT: Duration = Duration::from_millis(2);

impl From<DrainProgress> for DrainReport {
    fn from(progress: DrainProgress) -> DrainReport {
        let DrainProgress { total, left, ends_in, slices_done, slices, to } = progress;
        let (ends_in_ms, to) = (ends_in.as_millis() as u64, to.map(|to| to.as_str().into()));
        DrainReport { total, left, ends_in_ms, slices_done, slices, to }
    }
}
