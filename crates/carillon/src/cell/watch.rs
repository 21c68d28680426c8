//! The thread that watches the other nodes, and says where homes are.

use super::GoesOn;
use super::adoption::{self, Adoption, OpenedLog};
use super::operated::{self, Hands};
use super::told::{Told, node_of};
use crate::backends::nats::{self, BusOptions};
use crate::backends::redis::{self, LogOptions};
use crate::options;
use carillon_core::cell::{Death, Fence, Verdict, Watch};
use carillon_core::form;
use carillon_core::model::{Epoch, Mono, NodeId};
use carillon_core::ports::bus::Hears;
use carillon_core::ports::{Bus, Computed, Directory, Heard, Left, Members, Membership, Reply, Unavailable};
use carillon_server::{Cell, Node, Said, Server};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// A node on its way into its cell.
pub struct Joining {
    members: Arc<dyn Members>,
    own: NodeId,
    /// The other nodes that keep partitions, and those that leave.
    others: Vec<NodeId>,
    leaving: Vec<NodeId>,
    /// Whether this process goes on with a node that the others know, and whose homes they have meanwhile.
    goes_on: bool,
    membership: Membership,
    bus_options: BusOptions,
    runtime: Handle,
    bus: Arc<OnceLock<Arc<dyn Bus>>>,
    log: Option<LogOptions>,
    opened_log: OpenedLog,
    sender: SyncSender<Told>,
    told: Receiver<Told>,
}

/// A node in its cell, until it leaves.
pub struct Joined {
    sender: SyncSender<Told>,
    thread: Option<JoinHandle<()>>,
}

/// What waits for the thread: some beats of each of many nodes. What does not fit is not heard, as if it had been lost on its way.
const TOLD_MAX: usize = 4096;
/// How often it is looked whether somebody is late, and how often the store is read where somebody is.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// In so many looks there is one at which the store is read in any case.
const LOOKS_PER_TICK: u32 = 4;
/// How long a node that begins waits until the others know it.
const KNOWN_MAX: Duration = Duration::from_secs(5);
/// How long the first reading may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is said that this node has homes again, and that it knows one that joins: a record may be lost.
const TIMES: u8 = 5;

impl Joining {
    /// Begins, if the settings name a cell.
    ///
    /// # Errors
    /// When the settings are wrong, or the nodes cannot be read.
    pub(crate) fn begin(
        settings: &options::Cell,
        members: Option<Arc<dyn Members>>,
        runtime: &Handle,
        goes_on: Option<GoesOn>,
    ) -> Result<Option<Joining>, String> {
        if settings.nats.is_empty() {
            return Ok(None);
        }
        let members =
            members.ok_or("cell.nats: the nodes of a cell share a PostgreSQL database: set store.url")?;
        if settings.secret_file.is_none() {
            return Err("cell.nats: the nodes of a cell share a secret: set cell.secret_file".into());
        }
        let membership = read(&*members)?;
        form::speak(membership.form_version());
        let own = node_of(members.epoch())
            .ok_or("store.url: the database has given more epochs than a node can have")?;
        let is_new = goes_on.is_none();
        let (others, leaving, left) = match goes_on {
            Some(GoesOn { node, bus }) => {
                // Who came or went since then is found by the first reading.
                let nodes = |numbers: Vec<u32>| numbers.into_iter().map(NodeId).collect();
                (nodes(node.nodes), nodes(node.leaving), Some(bus))
            }
            None => (living(&membership).into_iter().filter(|node| *node != own).collect(), Vec::new(), None),
        };
        let (sender, told) = sync_channel(TOLD_MAX);
        let (bus, opened_log, runtime) = (Arc::default(), OpenedLog::default(), runtime.clone());
        let log = redis::log(settings)?;
        Ok(Some(Joining {
            members,
            own,
            others,
            leaving,
            goes_on: !is_new,
            membership,
            bus_options: nats::bus(settings, left),
            runtime,
            bus,
            log,
            opened_log,
            sender,
            told,
        }))
    }

    /// What the server is started with.
    pub fn cell(&self) -> Cell {
        let (options, epoch, runtime) =
            (self.bus_options.clone(), self.members.epoch(), self.runtime.clone());
        let (opened, sender) = (Arc::clone(&self.bus), self.sender.clone());
        let said = self.sender.clone();
        let log = self.log.clone().map(|log| {
            adoption::open(log, epoch, &self.runtime, self.sender.clone(), Arc::clone(&self.opened_log))
        });
        Cell {
            log,
            node: self.own,
            name: name_of(&self.membership, self.own).into(),
            others: self.others.clone(),
            leaving: self.leaving.clone(),
            yields: self.goes_on,
            told: Box::new(move |node, what| drop(said.try_send(Told::Said(node, what)))),
            bus: Box::new(move |hears| {
                let bus = options.open(epoch, heard(hears, sender), &runtime)?;
                // It is opened once.
                drop(opened.set(Arc::clone(&bus)));
                Ok(bus)
            }),
        }
    }

    /// The server runs: the others are watched from now on.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub fn joined(self, server: &Server) -> Result<Joined, String> {
        let Joining {
            members, own, others, leaving, goes_on, membership, bus, opened_log, sender, told, ..
        } = self;
        let bus = bus.get().cloned().ok_or("cell.nats: the bus was not opened")?;
        let began = Instant::now();
        let mut watch = Watch::new(members.epoch(), Mono(0));
        watch.read(Mono(0), membership, Mono(0));
        let node = server.node();
        node.set_hands(Box::new(Hands(sender.clone())));
        let known: BTreeSet<NodeId> = others.into_iter().collect();
        let left: BTreeSet<NodeId> = leaving.into_iter().collect();
        let (settled, all_know) = sync_channel(1);
        server.set_accepting(false);
        let watcher = Watcher {
            watch,
            members,
            bus,
            node,
            own,
            // The others know one that goes on.
            strangers: if goes_on { BTreeSet::new() } else { known.clone() },
            settled: Some(settled),
            alive: known.union(&left).copied().collect(),
            known,
            left,
            yields: goes_on,
            returns: 0,
            greetings: BTreeMap::new(),
            adoption: Adoption::new(opened_log.get().cloned(), server.node().shards()),
            began,
            sender: sender.clone(),
        };
        let run = move || watcher.run(&told);
        let thread = std::thread::Builder::new().name("cell".into()).spawn(run).map_err(|e| e.to_string())?;
        // Others that say nothing are dead, or will be buried.
        if let Err(RecvTimeoutError::Timeout) = all_know.recv_timeout(KNOWN_MAX) {
            tracing::warn!("not every node of the cell has said that it knows this one");
        }
        if goes_on {
            // The process before gave the homes away for this. It is empty yet.
            drop(sender.send(Told::Yield(false)));
        }
        server.set_accepting(true);
        Ok(Joined { sender, thread: Some(thread) })
    }
}

impl Joined {
    /// The node ends: the others take its homes.
    pub fn leave(&mut self) {
        self.end(Told::Leave);
    }

    /// The node goes on in another process, which watches the others from now on.
    pub fn hand_over(&mut self) {
        self.end(Told::HandOver);
    }

    fn end(&mut self, told: Told) {
        let Some(thread) = self.thread.take() else { return };
        // It is full for a moment at most.
        drop(self.sender.send(told));
        drop(thread.join());
    }
}

/// Who gets what the bus hears: the watcher its beats, the server the rest.
fn heard(hears: Hears, sender: SyncSender<Told>) -> Hears {
    Arc::new(move |heard| match heard {
        Heard::Beat { from, count, store } => drop(sender.try_send(Told::Beat { from, count, store })),
        Heard::Away | Heard::Back => {
            drop(sender.try_send(Told::Bus(heard == Heard::Back)));
            hears(heard);
        }
        other => hears(other),
    })
}

fn read(members: &dyn Members) -> Result<Membership, String> {
    let (sender, answer) = sync_channel(1);
    members.list(Box::new(move |membership| drop(sender.send(membership))));
    let failed = "store.url: the nodes that share the database cannot be read";
    answer.recv_timeout(PATIENCE).map_err(|_| failed.to_owned())?.map_err(|_| failed.to_owned())
}

fn living(membership: &Membership) -> BTreeSet<NodeId> {
    membership.living().into_iter().filter_map(node_of).collect()
}

/// What the thread knows.
struct Watcher {
    watch: Watch,
    members: Arc<dyn Members>,
    bus: Arc<dyn Bus>,
    node: Node,
    own: NodeId,
    /// The other nodes that keep partitions.
    known: BTreeSet<NodeId>,
    /// Those that leave: they keep none, and have homes of accounts until they are buried or start again.
    left: BTreeSet<NodeId>,
    /// All others that may have homes.
    alive: BTreeSet<NodeId>,
    /// Whether an operator has this node drained: its homes are with the others.
    yields: bool,
    /// How often it is yet to be said that it has homes again.
    returns: u8,
    /// How often it is yet to be said to nodes that this one knows them.
    greetings: BTreeMap<NodeId, u8>,
    /// Those that have not said yet that they know this one, and whoever waits for that.
    strangers: BTreeSet<NodeId>,
    settled: Option<SyncSender<()>>,
    /// The log of sessions, and those of the dead.
    adoption: Adoption,
    began: Instant,
    sender: SyncSender<Told>,
}

impl Watcher {
    fn run(mut self, told: &Receiver<Told>) {
        let (mut look_at, mut looks) = (Instant::now(), 0);
        // Of two that begin at once each knows the other already.
        self.greetings = self.known.iter().map(|node| (*node, TIMES)).collect();
        self.greet();
        self.settle();
        self.publish();
        loop {
            match told.recv_timeout(look_at.saturating_duration_since(Instant::now())) {
                Ok(Told::Beat { from, count, store }) => {
                    let now = self.at(Instant::now());
                    self.watch.beat(from, count, store, now);
                }
                Ok(Told::Bus(is_reached)) => {
                    self.watch.note_bus(is_reached);
                    // Whether the store works decides what follows.
                    self.ask();
                }
                Ok(Told::Said(node, Said::Leaves)) => self.said_whether_it_leaves(node, true),
                Ok(Told::Said(node, Said::Returns)) => self.said_whether_it_leaves(node, false),
                Ok(Told::Said(node, Said::Logs(are_kept))) => self.adoption.said(node, are_kept),
                Ok(Told::Log(heard)) => {
                    if let Some(are_kept) = self.adoption.heard(heard) {
                        if are_kept {
                            tracing::info!("all sessions are written down");
                        }
                        self.node.announce_log(self.alive.iter().copied(), are_kept);
                    }
                }
                Ok(Told::Left(node, left)) => self.adopt(node, left),
                Ok(Told::Said(node, Said::Knows)) => {
                    self.strangers.remove(&node);
                    self.settle();
                }
                Ok(Told::Read(began, membership)) => self.was_read(began, membership),
                Ok(Told::Yield(gives)) => self.yield_homes(gives),
                Ok(Told::Bury { node, reason, reply }) => self.bury_as_told(node, &reason, reply),
                Ok(Told::Leave) => return self.leave(),
                Ok(Told::HandOver) => return,
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    look_at = Instant::now() + LOOK_EVERY;
                    let is_tick = looks % LOOKS_PER_TICK == 0;
                    looks += 1;
                    self.look();
                    if is_tick || self.watch.is_urgent(self.at(Instant::now())) {
                        self.ask();
                    }
                    if is_tick {
                        self.repeat();
                        self.publish();
                    }
                }
            }
        }
    }

    /// All others that live know this node: it may be used.
    fn settle(&mut self) {
        self.strangers.retain(|node| self.known.contains(node));
        if self.strangers.is_empty() {
            // Whoever waits hears that nobody can send any more.
            self.settled = None;
        }
    }

    fn at(&self, instant: Instant) -> Mono {
        Mono(instant.saturating_duration_since(self.began).as_millis() as u64)
    }

    fn ask(&self) {
        let (sender, began) = (self.sender.clone(), Instant::now());
        let read = move |membership| drop(sender.try_send(Told::Read(began, membership)));
        self.members.list(Box::new(read));
    }

    fn was_read(&mut self, began: Instant, membership: Result<Membership, Unavailable>) {
        self.bus.tell_store(membership.is_ok());
        match membership {
            Ok(membership) => {
                form::speak(membership.form_version());
                let (began, now) = (self.at(began), self.at(Instant::now()));
                self.watch.read(began, membership, now);
                self.view();
            }
            Err(Unavailable) => self.watch.note_failed_read(),
        }
    }

    /// Homes are with those who live, as far as this node knows.
    fn view(&mut self) {
        let lives = living(self.watch.membership());
        self.left.retain(|node| lives.contains(node));
        let alive: BTreeSet<NodeId> = lives.into_iter().filter(|node| *node != self.own).collect();
        let known: BTreeSet<NodeId> = alive.difference(&self.left).copied().collect();
        if known == self.known && alive == self.alive {
            return;
        }
        let gone: Vec<NodeId> = self.alive.difference(&alive).copied().collect();
        for node in &gone {
            tracing::info!(node = node.0, name = self.name_of(*node), "a node of the cell is gone");
            self.node.lose(*node);
        }
        for node in alive.difference(&self.alive) {
            tracing::info!(node = node.0, name = self.name_of(*node), "a node has joined the cell");
            self.greetings.insert(*node, TIMES);
        }
        self.greetings.retain(|node, _| alive.contains(node));
        self.greet();
        (self.known, self.alive) = (known, alive);
        self.move_homes(self.own_if_home());
        for node in gone {
            let heirs = self.known.iter().copied().chain(self.own_if_home());
            // One that ended in order has left nothing; one that was killed while it was drained has what was still there.
            if self.adoption.loses(node, heirs, self.own) {
                self.take_left(node);
            }
        }
        self.settle();
        self.publish();
    }

    /// Reads what a dead node left.
    fn take_left(&self, node: NodeId) {
        let sender = self.sender.clone();
        // It is as if it could not be read if the thread is that far behind.
        self.adoption.take(node, Box::new(move |left| drop(sender.try_send(Told::Left(node, left)))));
    }

    fn adopt(&self, node: NodeId, left: Result<Vec<Left>, Unavailable>) {
        match left {
            Ok(left) => self.node.adopt(node, left),
            Err(Unavailable) => {
                tracing::warn!(
                    node = node.0,
                    "what a dead node left cannot be read: its clients log in anew"
                );
            }
        }
    }

    /// This node, where it has homes: while it is drained there have to be others.
    fn own_if_home(&self) -> Option<NodeId> {
        (!self.yields || self.known.is_empty()).then_some(self.own)
    }

    fn said_whether_it_leaves(&mut self, node: NodeId, leaves: bool) {
        let is_new = if leaves { self.left.insert(node) } else { self.left.remove(&node) };
        if is_new {
            self.view();
            self.publish();
        }
    }

    fn yield_homes(&mut self, gives: bool) {
        if self.yields == gives {
            return;
        }
        (self.yields, self.returns) = (gives, if gives { 0 } else { TIMES });
        self.repeat();
        self.move_homes(self.own_if_home());
        self.publish();
    }

    /// Tells nodes that this one knows them, some times each.
    fn greet(&mut self) {
        self.greetings.keys().for_each(|node| self.node.greet(*node));
        self.greetings.values_mut().for_each(|left| *left -= 1);
        self.greetings.retain(|_, left| *left > 0);
    }

    /// Says again what others may not have heard.
    fn repeat(&mut self) {
        self.greet();
        if self.yields {
            self.node.announce_leaving();
        }
        if !self.adoption.is_kept() {
            self.node.announce_log(self.alive.iter().copied(), false);
        }
        if !self.yields && self.returns > 0 {
            self.returns -= 1;
            self.node.announce_return(self.known.iter().copied());
        }
    }

    /// What operators see from now on.
    fn publish(&self) {
        let mut left = self.left.clone();
        left.extend(self.yields.then_some(self.own));
        self.node.set_cell(operated::view(&self.watch, self.own, &left, self.began));
    }

    fn move_homes(&self, own: Option<NodeId>) {
        let nodes: Vec<NodeId> = self.known.iter().copied().chain(own).collect();
        let leaving: Vec<NodeId> = self.alive.difference(&self.known).copied().collect();
        let directory: Arc<dyn Directory> =
            Arc::new(Computed::with_leaving(&nodes, &leaving, self.own, self.node.shards()));
        self.node.move_homes(&directory);
    }

    fn look(&mut self) {
        let now = self.at(Instant::now());
        for verdict in self.watch.look(now) {
            match verdict {
                Verdict::Bury(epoch, death) => self.bury(epoch, death),
                Verdict::Fence(Fence::Buried) => {
                    tracing::error!("this node was buried by the others: it ends, to be started again");
                    self.node.end_as_dead();
                }
                Verdict::Fence(fence) => {
                    tracing::error!(?fence, "others may have buried this node: it rests until it knows");
                    self.node.fence(true);
                }
                Verdict::Unfence => {
                    tracing::info!("this node is not buried: it goes on");
                    self.node.fence(false);
                }
            }
        }
    }

    fn bury(&self, epoch: Epoch, death: Death) {
        let name = node_of(epoch).map_or("", |node| self.name_of(node));
        let why = match death {
            Death::Gone => "its process is gone",
            Death::Silent => "it is silent",
        };
        tracing::warn!(node = epoch.0, name, why, "a node of the cell is to be buried");
        let told = move |buried: Result<bool, Unavailable>| {
            tracing::warn!(node = epoch.0, ?buried, "burial");
        };
        self.members.bury(epoch, Box::new(told));
        // Its homes are with the others once that is read.
        self.ask();
    }

    /// Buries a node because an operator wants it. The next reading, which is asked for behind it, shows that it is dead.
    fn bury_as_told(&self, node: NodeId, reason: &str, reply: Reply<bool>) {
        let name = self.name_of(node);
        tracing::warn!(node = node.0, name, reason, "an operator has a node of the cell buried");
        let told = move |buried: Result<bool, Unavailable>| {
            tracing::warn!(node = node.0, ?buried, "burial");
            if let Ok(buried) = buried {
                reply(buried);
            }
        };
        self.members.bury(Epoch(node.0.into()), Box::new(told));
        self.ask();
    }

    fn name_of(&self, node: NodeId) -> &str {
        name_of(self.watch.membership(), node)
    }

    /// The others take the homes of this node, which has none from now on.
    fn leave(mut self) {
        self.node.announce_leaving();
        self.known.retain(|node| !self.left.contains(node));
        if !self.known.is_empty() {
            self.move_homes(None);
        }
    }
}

/// The name of a node; empty if that is not known.
fn name_of(membership: &Membership, node: NodeId) -> &str {
    let named = membership.members.iter().find(|member| node_of(member.epoch) == Some(node));
    named.map_or("", |member| &member.name)
}
