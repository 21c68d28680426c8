//! The handle to a running node, for HTTP, the command line and the demo.

mod cell;
mod drain;
pub mod history;
mod modules;
pub(crate) mod parked;
mod rates;
mod taps;
mod top;

pub use cell::HomeMoves;
pub use drain::DrainProgress;
pub use modules::{ModulesError, Pushed};
pub use taps::TapRequest;

use crate::cell::{Record, post};
use crate::channels::inbox::{Control, Inbox, InboxItem, turn_away};
use crate::channels::join::{AllDone, Countdown, Join};
use crate::channels::replies::Replies;
use crate::channels::watch::Watcher;
use crate::clock::{Clock, unix};
use crate::events;
use crate::listen::Admission;
use crate::metrics::{ShardFigures, Snapshot, Status, resident_bytes};
use carillon_core::command::{Command, Outcome, ReplyTo, StateChange};
use carillon_core::message::{BroadcastNews, ShardMessage};
use carillon_core::model::{
    Broadcast, Domain, DomainId, Domains, Mono, NodeId, OperationId, Place, ShardId, States, UnixMs,
};
use carillon_core::ports::modules::Runtime;
use carillon_core::ports::store::domains;
use carillon_core::ports::store::notifications::Whose;
use carillon_core::ports::{Bus, Directory, Fault, PushHint, Question, Reply, Store, StoreHealth, StoreLane};
use drain::Drain;
use history::{History, Sample};
use modules::Modules;
use rates::Rates;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A running node. Cheap to clone; every clone is the same node.
#[derive(Clone)]
pub struct Node {
    inner: Arc<Inner>,
}

struct Inner {
    inboxes: Arc<[Arc<Inbox>]>,
    own: NodeId,
    directory: Mutex<Arc<dyn Directory>>,
    bus: Option<Arc<dyn Bus>>,
    replies: Arc<Replies>,
    figures: Vec<Arc<ShardFigures>>,
    store: Arc<dyn Store>,
    admission: Arc<Admission>,
    clock: Clock,
    events: Option<Arc<events::LogFigures>>,
    ready: AtomicBool,
    /// A shard has died of a fault.
    has_died: AtomicBool,
    drain: Drain,
    domains: Mutex<CachedDomains>,
    /// The number of the last question for domains.
    domains_asked: AtomicU64,
    domain_sinks: Mutex<Vec<DomainSink>>,
    modules: Option<Modules>,
    rates: Mutex<Rates>,
    history: Mutex<History>,
    /// When the TLS certificate in use expires, in milliseconds since the Unix epoch.
    certificate_expires: AtomicU64,
    of_cell: cell::OfCell,
}

/// Is called with a domain that is gone ([`Node::watch_removed_domains`]).
pub type DomainSink = Box<dyn Fn(&Domain) -> bool + Send + Sync>;

/// The domains, and the number of the question that they answer.
struct CachedDomains {
    domains: Arc<Domains>,
    asked: u64,
}

/// The parts of a node.
pub(crate) struct NodeParts {
    pub(crate) inboxes: Arc<[Arc<Inbox>]>,
    pub(crate) own: NodeId,
    /// Its name in its cell, if it is in one.
    pub(crate) name: Option<Box<str>>,
    pub(crate) directory: Arc<dyn Directory>,
    /// To the other nodes of its cell, if it is in one.
    pub(crate) bus: Option<Arc<dyn Bus>>,
    pub(crate) replies: Arc<Replies>,
    pub(crate) figures: Vec<Arc<ShardFigures>>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) clock: Clock,
    pub(crate) domains: Arc<Domains>,
    pub(crate) events: Option<Arc<events::LogFigures>>,
    /// What compiles modules, where that is built.
    pub(crate) modules: Option<Arc<dyn Runtime>>,
}

impl Node {
    /// Creates the handle to a node with these parts.
    pub(crate) fn new(parts: NodeParts) -> Node {
        let NodeParts {
            inboxes,
            own,
            name,
            directory,
            bus,
            replies,
            figures,
            store,
            admission,
            clock,
            domains,
            events,
            modules,
        } = parts;
        let inner = Inner {
            inboxes,
            own,
            directory: Mutex::new(directory),
            bus,
            replies,
            figures,
            store,
            admission,
            clock,
            events,
            ready: AtomicBool::new(false),
            has_died: AtomicBool::new(false),
            drain: Drain::default(),
            domains: Mutex::new(CachedDomains { domains, asked: 0 }),
            domains_asked: AtomicU64::new(0),
            domain_sinks: Mutex::default(),
            modules: modules.map(|runtime| Modules::new(runtime, name)),
            rates: Mutex::default(),
            history: Mutex::default(),
            certificate_expires: AtomicU64::new(0),
            of_cell: cell::OfCell::default(),
        };
        Node { inner: Arc::new(inner) }
    }

    /// Has a command carried out by the home shard of its subject. Commands about more than one account or topic
    /// (sessions, presence, figures of topics, lists of notifications, domain-wide kicks) are carried out by every shard
    /// of every node, and the outcomes are joined. `reply` is called once: by a shard's thread, or at once by this one if the shard is
    /// too busy ([`Outcome::Unavailable`]). It must not block.
    pub fn command(&self, command: Command, reply: Reply<Outcome>) {
        match Target::of(&command, self) {
            Target::Shard(place) => self.offer(place, command, reply),
            Target::AllShards => {
                let others = self.directory().other_nodes().to_vec();
                let join = Join::new(self.inner.inboxes.len() + others.len(), limit_of(&command), reply);
                for to in others {
                    let reply = self.await_reply(Place { node: to, shard: ShardId(0) }, join.part());
                    self.post_far(to, &Record::CommandToAll { command: command.clone(), reply });
                }
                self.offer_here(&command, &join);
            }
            Target::Nothing => reply(Outcome::Missing),
        }
    }

    /// Has every shard of this node carry out a command that another node gave, which is told the outcome.
    pub(crate) fn command_here(&self, command: &Command, reply: ReplyTo) {
        let node = self.clone();
        let told = move |outcome| node.post_far(reply.node, &Record::Outcome { to: reply, outcome });
        let join = Join::new(self.inner.inboxes.len(), limit_of(command), Box::new(told));
        self.offer_here(command, &join);
    }

    fn offer_here(&self, command: &Command, join: &Arc<Join>) {
        for shard in self.shard_ids() {
            self.offer(Place { node: self.inner.own, shard }, command.clone(), join.part());
        }
    }

    /// Has many commands carried out, in their order at each shard. Like [`Node::command`] for each of them, but each
    /// shard is woken once.
    pub fn command_all(&self, commands: Vec<(Command, Reply<Outcome>)>) {
        let now = self.mono();
        let mut messages: Vec<Vec<ShardMessage>> = self.shard_ids().map(|_| Vec::new()).collect();
        for (command, reply) in commands {
            match Target::of(&command, self) {
                Target::Shard(Place { node, shard }) if node == self.inner.own => {
                    let reply = self.inner.replies.add(shard, reply, now);
                    messages[usize::from(shard.0)].push(ShardMessage::Command { command, reply });
                }
                Target::Shard(_) | Target::AllShards | Target::Nothing => self.command(command, reply),
            }
        }
        for (shard, messages) in self.shard_ids().zip(messages) {
            let refused = self.inbox(shard).offer_all(messages);
            turn_away(refused.into_iter().map(InboxItem::ShardMessage), self.replies());
        }
    }

    /// Asks the store directly: for what needs no decision of the core, such as listing accounts. `reply` must not block.
    pub fn ask<Q: Question>(
        &self,
        question: Q,
        reply: impl FnOnce(Result<Q::Answer, Fault>) + Send + 'static,
    ) {
        self.inner.store.ask(question.into(), Q::reply(reply));
    }

    /// The same for a question that may have to be asked again: with the same id it is done once.
    pub fn ask_as<Q: Question>(
        &self,
        operation: OperationId,
        question: Q,
        reply: impl FnOnce(Result<Q::Answer, Fault>) + Send + 'static,
    ) {
        self.inner.store.ask(question.into().once(operation), Q::reply(reply));
    }

    /// The current domains of the node.
    pub fn domains(&self) -> Arc<Domains> {
        Arc::clone(&lock(&self.inner.domains).domains)
    }

    /// How the store is now.
    pub fn store_health(&self) -> StoreHealth {
        self.inner.store.health()
    }

    /// The figures of each connection over which the store writes.
    pub fn store_lanes(&self) -> Vec<StoreLane> {
        self.inner.store.lanes()
    }

    /// Reads the domains from the store and gives them to every shard. `reply` is called when all shards of this node have them; other
    /// nodes of the cell do the same as soon as they hear of it. Sessions of a domain that is gone are closed with `<host-gone/>`.
    pub fn reload_domains(&self, reply: Reply<()>) {
        for to in self.directory().other_nodes() {
            self.post_far(*to, &Record::DomainsChanged);
        }
        self.reload_own_domains(reply);
    }

    /// The same on this node.
    pub(crate) fn reload_own_domains(&self, reply: Reply<()>) {
        let asked = self.inner.domains_asked.fetch_add(1, Ordering::Relaxed) + 1;
        let node = self.clone();
        let answered = move |answer| match answer {
            Ok(domains) => node.take_domains(asked, Domains::new(domains), reply),
            // The node ends: nobody needs them any more.
            Err(Fault::Closed) => reply(()),
            Err(fault) => {
                tracing::error!(%fault, "the store did not say which domains there are");
                reply(());
            }
        };
        self.ask(domains::Domains, answered);
    }

    /// The node's figures. A shard's are at most 100 ms old.
    pub fn status(&self) -> Status {
        let mut status = Snapshot::sum(&self.inner.figures).status(&self.domains());
        status.uptime_ms = self.mono().0;
        status.connections = self.inner.admission.open();
        status.handshakes_in_flight = self.inner.admission.opening();
        status.resident_bytes = resident_bytes();
        status.store = self.inner.store.stats();
        status.events = self.inner.events.as_ref().map(|figures| figures.status());
        status.certificate_expires = Some(UnixMs(self.inner.certificate_expires.load(Ordering::Relaxed)));
        status.shards = self.inner.inboxes.len() as u16;
        lock(&self.inner.rates).fill(&mut status);
        status
    }

    /// Has `hint` called when a push may be due; whether it will be ([`Store::hint_pushes`]).
    pub fn hint_pushes(&self, hint: PushHint) -> bool {
        self.inner.store.hint_pushes(hint)
    }

    /// The figures of the last ten minutes, oldest first: those after the sample taken at `after`, or all.
    pub fn history(&self, after: Option<UnixMs>) -> Vec<Sample> {
        lock(&self.inner.history).after(after)
    }

    /// Has every shard publish its figures, and calls `reply` with them when all have. `reply` must not block.
    pub fn fresh_status(&self, reply: Reply<Status>) {
        let node = self.clone();
        let done = AllDone::new(Box::new(move |()| reply(node.status())));
        self.control(|| Control::Publish(Arc::clone(&done)));
    }

    /// Calls `reply` once every shard has handled its inbox; idle shards are woken for it. If a shard has died or hangs,
    /// `reply` is never called, and is dropped with the last shard's inbox. It must not block.
    pub fn pulse(&self, reply: Reply<()>) {
        let countdown = Countdown::new(self.inner.inboxes.len(), reply);
        self.control(|| Control::Pulse(Arc::clone(&countdown)));
    }

    /// Calls `sink` for each notification of `domain` (or of all domains) that reaches one of `states`, until it returns false.
    /// `sink` must not block. At most 4096 sinks are kept; one more replaces the oldest.
    pub fn watch(
        &self,
        domain: Option<DomainId>,
        states: States,
        sink: Box<dyn Fn(&StateChange) -> bool + Send + Sync>,
    ) {
        let watcher = Watcher::new(domain, states, sink);
        self.control(|| Control::Watch(Arc::clone(&watcher)));
    }

    /// Calls `sink` with each domain that is gone, whoever removed it and on whichever node, until it returns false. It must not block.
    pub fn watch_removed_domains(&self, sink: DomainSink) {
        lock(&self.inner.domain_sinks).push(sink);
    }

    /// Calls `hint` when this node has stored an event of which no state change tells, until it returns false. As [`Node::watch`].
    pub fn watch_events(&self, hint: Box<dyn Fn() -> bool + Send + Sync>) {
        let watcher = Watcher::of_events(hint);
        self.control(|| Control::Watch(Arc::clone(&watcher)));
    }

    /// Whether the node accepts sessions: false before it is ready and while it drains.
    pub fn is_ready(&self) -> bool {
        self.inner.ready.load(Ordering::Acquire)
    }

    /// Whether a shard has died of a fault: its accounts have no service until the process is started again.
    pub fn has_died(&self) -> bool {
        self.inner.has_died.load(Ordering::Acquire)
    }

    /// Notes that a shard has died.
    pub(crate) fn died(&self) {
        self.set_ready(false);
        self.inner.has_died.store(true, Ordering::Release);
    }

    /// Sets when the certificate in use expires.
    pub(crate) fn set_certificate_expiry(&self, not_after: SystemTime) {
        let expires = not_after.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        self.inner.certificate_expires.store(expires, Ordering::Relaxed);
    }

    /// Reports from now on that the node is not ready, while it still accepts sessions: so a load balancer stops sending
    /// them before they are refused.
    pub fn retire(&self) {
        self.set_ready(false);
    }

    /// Others may have buried this node: it is not ready, reads no client, runs no timer and takes no commands, until it is known that
    /// it lives.
    pub fn fence(&self, is_fenced: bool) {
        self.set_ready(!is_fenced);
        self.refuse_commands(is_fenced);
        self.control(|| Control::Freeze(is_fenced));
    }

    /// Nothing that this node does is of use any more: the process is to end, and to be started again.
    pub fn end_as_dead(&self) {
        self.died();
    }

    pub(crate) fn set_ready(&self, ready: bool) {
        self.inner.ready.store(ready, Ordering::Release);
    }

    /// The drain of the node.
    pub(crate) fn drain_state(&self) -> &Drain {
        &self.inner.drain
    }

    /// Open connections.
    pub(crate) fn connections(&self) -> u64 {
        self.inner.admission.open()
    }

    /// Parked sessions, as the shards published them.
    pub(crate) fn parked(&self) -> u64 {
        Snapshot::sum(&self.inner.figures).parked()
    }

    /// Sends every shard a control message.
    pub(crate) fn control(&self, control: impl Fn() -> Control) {
        for inbox in self.inner.inboxes.iter() {
            inbox.push(InboxItem::Control(control()));
        }
    }

    /// Refuses commands for now, as when the shards are too busy; or takes them again.
    pub(crate) fn refuse_commands(&self, refuses: bool) {
        self.inner.inboxes.iter().for_each(|inbox| inbox.set_frozen(refuses));
    }

    /// Asks every shard for a number, and adds up what they answer within `timeout`; a shard that has ended has none.
    pub(crate) fn sum(&self, control: impl Fn(SyncSender<usize>) -> Control, timeout: Duration) -> usize {
        let (sender, numbers) = sync_channel(self.inner.inboxes.len());
        self.control(|| control(sender.clone()));
        drop(sender);
        let mut sum = 0;
        // It ends when all shards have answered, or have ended.
        loop {
            match numbers.recv_timeout(timeout) {
                Ok(number) => sum += number,
                Err(RecvTimeoutError::Disconnected) => return sum,
                // A shard that does not answer does not rest.
                Err(RecvTimeoutError::Timeout) => return usize::MAX,
            }
        }
    }

    /// Sends one shard a control message.
    pub(crate) fn control_of(&self, shard: ShardId, control: Control) {
        self.inbox(shard).push(InboxItem::Control(control));
    }

    pub(crate) fn inbox(&self, shard: ShardId) -> &Inbox {
        &self.inner.inboxes[usize::from(shard.0)]
    }

    /// Samples the figures of all shards.
    pub(crate) fn sample(&self) {
        let figures = Snapshot::sum(&self.inner.figures);
        let now = self.mono();
        self.inner.replies.expire(now);
        lock(&self.inner.rates).sample(now, &figures);
        lock(&self.inner.history).observe(now, unix(), self.inner.admission.open(), &figures);
    }

    pub(crate) fn mono(&self) -> Mono {
        self.inner.clock.mono()
    }

    /// Whether a shard is one of this node.
    pub(crate) fn is_own(&self, place: Place) -> bool {
        place.node == self.inner.own
    }

    /// Where homes are now.
    pub(crate) fn directory(&self) -> Arc<dyn Directory> {
        Arc::clone(&lock(&self.inner.directory))
    }

    /// Homes are where this says from now on, for every shard and for commands.
    pub fn move_homes(&self, directory: &Arc<dyn Directory>) {
        let before = std::mem::replace(&mut *lock(&self.inner.directory), Arc::clone(directory));
        self.count_moves(&*before, &**directory);
        self.control(|| Control::Directory(Arc::clone(directory)));
    }

    /// How many shards it has.
    pub fn shards(&self) -> u16 {
        self.inner.inboxes.len() as u16
    }

    /// Tells the other nodes that homes are no longer here.
    pub fn announce_leaving(&self) {
        for to in self.directory().other_nodes() {
            self.post_far(*to, &Record::Leaving);
        }
    }

    /// Tells another node that it is known here to have homes.
    pub fn greet(&self, node: NodeId) {
        self.post_far(node, &Record::Known);
    }

    /// Another node is gone: what it had is not waited for.
    pub fn lose(&self, node: NodeId) {
        self.inner.replies.lose(node, true);
        self.lose_answers(node);
        self.inner.inboxes.iter().for_each(|inbox| inbox.push(InboxItem::Lost { node, is_gone: true }));
    }

    /// Tells the home of an account something that must not be refused.
    pub(crate) fn tell_home(&self, account: &str, message: ShardMessage) {
        let Place { node, shard } = self.directory().account(account);
        match node == self.inner.own {
            true => self.inbox(shard).push(InboxItem::ShardMessage(message)),
            false => self.post_far(node, &Record::Message { shard, message }),
        }
    }

    /// Tells all shards of all nodes of broadcasts that were created or changed. Other nodes that do not hear of it find it in the store.
    pub fn tell_broadcasts(&self, changed: Vec<Arc<Broadcast>>) {
        let news = BroadcastNews { changed, is_all: false, tell: true };
        let message = ShardMessage::Broadcasts(Box::new(news));
        self.inbox(ShardId(0)).push(InboxItem::ShardMessage(message));
    }

    /// Tells the shards of this node what the store has of broadcasts.
    pub(crate) fn tell_own_broadcasts(&self, changed: &[Arc<Broadcast>], is_all: bool) {
        for shard in self.shard_ids() {
            let news = BroadcastNews { changed: changed.to_vec(), is_all, tell: false };
            let message = ShardMessage::Broadcasts(Box::new(news));
            self.inbox(shard).push(InboxItem::ShardMessage(message));
        }
    }

    /// Sends a record to another node.
    pub(crate) fn post_far(&self, to: NodeId, record: &Record) {
        if let Some(bus) = &self.inner.bus {
            post(&**bus, to, record, self.mono());
        }
    }

    /// Somebody waits for what a shard does, of this node or of another.
    fn await_reply(&self, of: Place, reply: Reply<Outcome>) -> ReplyTo {
        let part = ShardId(of.shard.0 % self.inner.inboxes.len().max(1) as u16);
        self.inner.replies.add_at(of.node, part, reply, self.mono())
    }

    /// Who waits for the outcomes of commands.
    pub(crate) fn replies(&self) -> &Replies {
        &self.inner.replies
    }

    fn shard_ids(&self) -> impl Iterator<Item = ShardId> {
        (0..self.inner.inboxes.len() as u16).map(ShardId)
    }

    fn offer(&self, to: Place, command: Command, reply: Reply<Outcome>) {
        let Place { node, shard } = to;
        let reply = self.await_reply(to, reply);
        if node != self.inner.own {
            let message = ShardMessage::Command { command, reply };
            return self.post_far(node, &Record::Message { shard, message });
        }
        if self.inbox(shard).offer(ShardMessage::Command { command, reply }).is_err() {
            self.inner.replies.give(reply, Outcome::Unavailable);
        }
    }

    /// Takes the domains of an answer, unless those of a later question are known already.
    fn take_domains(&self, asked: u64, domains: Domains, reply: Reply<()>) {
        let done = AllDone::new(reply);
        // Held while the shards are told, so that all of them hear of the tables in the same order.
        let mut known = lock(&self.inner.domains);
        if known.asked < asked {
            let before = std::mem::replace(&mut *known, CachedDomains { domains: Arc::new(domains), asked });
            let gone = |domain: &&Arc<Domain>| known.domains.numbered(domain.id).is_none();
            let gone: Vec<_> = before.domains.iter().filter(gone).collect();
            lock(&self.inner.domain_sinks).retain(|sink| gone.iter().all(|domain| sink(domain)));
        }
        let domains = Arc::clone(&known.domains);
        self.control(|| Control::Domains(Arc::clone(&domains), Arc::clone(&done)));
    }
}

/// How many sessions the outcome of a command lists at most.
fn limit_of(command: &Command) -> usize {
    match command {
        Command::Sessions { limit, .. } => *limit,
        _ => usize::MAX,
    }
}

/// The shard that carries a command out; none if all of them do, or none.
pub(crate) fn home_of(command: &Command, node: &Node) -> Option<Place> {
    match Target::of(command, node) {
        Target::Shard(place) => Some(place),
        Target::AllShards | Target::Nothing => None,
    }
}

/// Where a command is carried out.
enum Target {
    Shard(Place),
    AllShards,
    /// Nowhere: its subject does not exist.
    Nothing,
}

impl Target {
    fn of(command: &Command, node: &Node) -> Target {
        let directory = node.directory();
        let home = |name: &str| Target::Shard(directory.home(name));
        // It knows where the account is at home, and sends the command on.
        let account_of = |name: &str| Target::Shard(directory.account(name));
        match command {
            Command::Notify(notification) | Command::NotifyFollowed { notification, .. } => {
                account_of(notification.to.as_str())
            }
            Command::Cancel { id } | Command::Trace { id } => {
                Target::Shard(directory.home_of_notification(*id))
            }
            Command::Topic { domain, name, .. } => match node.domains().numbered(*domain) {
                Some(domain) => home(&carillon_core::model::topic_address(name, &domain.name)),
                None => Target::Nothing,
            },
            Command::Room { domain, kind, name, .. } => match node.domains().numbered(*domain) {
                Some(domain) => home(&kind.address(name, &domain.name)),
                None => Target::Nothing,
            },
            Command::Queue { domain, name, .. } => match node.domains().numbered(*domain) {
                Some(domain) => home(&carillon_core::model::queue_address(name, &domain.name)),
                None => Target::Nothing,
            },
            Command::Match { id, .. } => {
                let home = id.home();
                let is_own = home.node == node.inner.own;
                match is_own && usize::from(home.shard.0) >= node.inner.inboxes.len() {
                    true => Target::Nothing,
                    false => Target::Shard(home),
                }
            }
            Command::Kick { jid, .. } if jid.local().is_some() => account_of(jid.bare_str()),
            Command::Sessions { account: Some(account), .. } => account_of(account.as_str()),
            Command::Act { account, .. }
            | Command::RevokeTokens { account, .. }
            | Command::Hears { account, .. }
            | Command::RenderPush { account, .. }
            | Command::RemoveAccount { account, .. } => account_of(account.as_str()),
            Command::ContactsRemoved { .. } => {
                Target::Shard(Place { node: node.inner.own, shard: ShardId(0) })
            }
            Command::TracesInMemory { query, .. } => match &query.whose {
                Whose::Account(domain, local) => match node.domains().numbered(*domain) {
                    Some(domain) => account_of(&format!("{local}@{}", domain.name)),
                    None => Target::Nothing,
                },
                Whose::Anyones | Whose::Domain(_) => Target::AllShards,
            },
            Command::Changed { .. }
            | Command::CountReached { .. }
            | Command::Kick { .. }
            | Command::Presence { .. }
            | Command::Sessions { .. }
            | Command::TopicFigures { .. } => Target::AllShards,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
