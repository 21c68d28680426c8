//! Starting a server: everything that can fail is done before the first thread runs.

use crate::clock::Clock;
use crate::deadlines::Deadlines;
use crate::derivers::Derivers;
use crate::drain::Threads;
use crate::event_loop::{EventLoop, Shared};
use crate::events::{EventLog, EventLogError, Kinds, Producer};
use crate::inbox::{Control, Inbox};
use crate::jobs::{Jobs, MESSAGES_MAX};
use crate::listen::{Admission, BindError, Bounds, DescriptorLimit, ListenConfig, Listener, Ports, bind};
use crate::listener_tls::ListenerTls;
use crate::machine::Machine;
use crate::metrics::{IoCounters, ShardFigures};
use crate::node::{Node, NodeParts};
use crate::options::Options;
use crate::sends::SendBatch;
use crate::shard_io::{Deferred, Outboxes, Ready, Scratch, ShardIo, special};
use crate::tls;
use crate::watch::Watchers;
use crate::websocket::WebSocketEndpoint;
use carillon_core::machine::Shard as Core;
use carillon_core::model::{Domains, Mono, ShardId};
use carillon_core::ports::{Answer, Ask, Fault, Store};
use carillon_core::settings::Settings;
use mio::{Poll, Waker};
use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

/// A running server. Dropping it stops it at once; [`Server::drain`] is the polite way.
pub struct Server {
    pub(crate) node: Node,
    pub(crate) ports: Ports,
    pub(crate) admission: Arc<Admission>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) threads: Threads,
    tls: Mutex<Arc<ListenerTls>>,
    descriptor_limit: DescriptorLimit,
    /// Ends behind the shards, when all of their events are written.
    _events: Option<EventLog>,
}

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A port could not be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The store did not say which domains there are.
    #[error("cannot read the domains: {0}")]
    Store(#[from] Fault),
    /// The store did not answer.
    #[error("cannot read the domains: the store did not answer within {} s", STORE_PATIENCE.as_secs())]
    StoreSilent,
    /// The event log's folder cannot be written.
    #[error(transparent)]
    Events(#[from] EventLogError),
    /// The system gave no poll, thread or entropy.
    #[error("cannot start a shard: {0}")]
    System(#[from] io::Error),
}

impl Server {
    /// Binds the ports, reads the domains and starts the shards. When it returns, the node takes sessions.
    pub fn start(options: &Options, store: Arc<dyn Store>) -> Result<Server, StartError> {
        let settings = Arc::clone(&options.core);
        let seeds = Seeds::new(options.seed)?;
        let core = |id: ShardId, shards, domains: &Arc<Domains>| {
            Core::new(id, shards, Arc::clone(&settings), Arc::clone(domains), seeds.of(id))
        };
        Server::start_with(options, store, core)
    }

    /// The same with any machine as the shards' core.
    pub(crate) fn start_with<M: Machine>(
        options: &Options,
        store: Arc<dyn Store>,
        machine: impl Fn(ShardId, u16, &Arc<Domains>) -> M,
    ) -> Result<Server, StartError> {
        let clock = Clock::start();
        let domains = Arc::new(read_domains(&*store)?);
        let count = options.shard_count();
        let (ports, listeners) = bind(&ListenConfig {
            addresses: &options.addresses,
            services: options.services(),
            shards: count.into(),
            backlog: options.backlog,
            reuse_port: options.reuse_port,
            nodelay: options.nodelay,
        })?;
        let polls = (0..count).map(|_| Poll::new()).collect::<io::Result<Vec<_>>>()?;
        let inboxes = polls.iter().map(inbox).collect::<io::Result<Arc<[_]>>>()?;
        let descriptor_limit = DescriptorLimit::find();
        let admission = Arc::new(Admission::new(descriptor_limit.clamp(options.bounds)));
        let figures: Vec<Arc<ShardFigures>> = (0..count).map(|_| Arc::default()).collect();
        let tls = Arc::new(ListenerTls::new(&options.tls));
        let derivers = Derivers::start()?;
        let builder = ShardBuilder {
            options,
            store: &store,
            derivers: &derivers,
            inboxes: &inboxes,
            admission: &admission,
            tls: &tls,
            clock,
        };
        let (events, producers) = match &options.events {
            Some(events) => EventLog::start(events, count).map(|(log, producers)| (Some(log), producers))?,
            None => (None, Vec::new()),
        };
        let mut producers = producers.into_iter();
        let mut shards = Vec::new();
        for (n, (poll, listeners)) in polls.into_iter().zip(listeners).enumerate() {
            let id = ShardId(n as u16);
            let parts = ShardParts { poll, listeners, producer: producers.next() };
            shards.push(builder.build(id, machine(id, count, &domains), parts, &figures[n])?);
        }
        let node = Node::new(NodeParts {
            inboxes,
            figures,
            store: Arc::clone(&store),
            admission: Arc::clone(&admission),
            clock,
            domains,
            events: events.as_ref().map(EventLog::figures),
        });
        let (sender, messages) = mpsc::sync_channel(MESSAGES_MAX);
        let jobs = Jobs {
            node: node.clone(),
            messages,
            sender: sender.clone(),
            traces_kept_ms: options.traces_kept_ms,
        };
        let threads = Threads::start(shards, jobs, sender, &node)?;
        node.set_certificate_expiry(options.tls.not_after());
        node.set_ready(true);
        tracing::info!(shards = count, ?ports, "listening");
        Ok(Server {
            node,
            ports,
            admission,
            store,
            threads,
            tls: Mutex::new(tls),
            descriptor_limit,
            _events: events,
        })
    }

    /// A handle to the node.
    pub fn node(&self) -> Node {
        self.node.clone()
    }

    /// The ports it listens on.
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// Offers another certificate to connections from now on. Present ones stay; tickets given before stay good.
    pub fn reload_tls(&self, settings: &tls::Settings) {
        let mut tls = self.tls.lock().unwrap_or_else(PoisonError::into_inner);
        *tls = Arc::new(tls.renewed(settings));
        self.node.set_certificate_expiry(settings.not_after());
        self.node.control(|| Control::Tls(Arc::clone(&tls)));
    }

    /// Puts other bounds in force: who gets in from now on, and how much waits for a client that reads too slowly.
    pub fn reload_bounds(&self, bounds: Bounds, out_queue_bytes: usize) {
        self.admission.set(self.descriptor_limit.clamp(bounds));
        self.node.control(|| Control::OutQueue(out_queue_bytes));
    }

    /// Has the event log, if there is one, keep these kinds from now on.
    pub fn reload_events(&self, kinds: Kinds) {
        self.node.control(|| Control::Kinds(kinds));
    }

    /// Puts other limits and timeouts in force.
    pub fn reload_settings(&self, settings: &Arc<Settings>) {
        self.node.control(|| Control::Settings(Arc::clone(settings)));
    }
}

/// What all shards are made of.
struct ShardBuilder<'a> {
    options: &'a Options,
    store: &'a Arc<dyn Store>,
    derivers: &'a Derivers,
    inboxes: &'a Arc<[Arc<Inbox>]>,
    admission: &'a Arc<Admission>,
    tls: &'a Arc<ListenerTls>,
    clock: Clock,
}

/// What one shard is made of.
struct ShardParts {
    poll: Poll,
    listeners: Vec<Listener>,
    producer: Option<Producer>,
}

impl ShardBuilder<'_> {
    fn build<M: Machine>(
        &self,
        id: ShardId,
        machine: M,
        parts: ShardParts,
        figures: &Arc<ShardFigures>,
    ) -> io::Result<EventLoop<M>> {
        let ShardParts { poll, listeners, producer } = parts;
        let websocket = self.options.websocket.as_ref();
        let endpoint = WebSocketEndpoint {
            path: websocket.map(|websocket| websocket.path.as_str()).unwrap_or_default().into(),
            secure: websocket.is_some_and(|websocket| websocket.tls),
            proxies: self.options.trusted_proxies.as_slice().into(),
        };
        let io = ShardIo {
            id,
            conns: Default::default(),
            scratch: Scratch::new(),
            sends: SendBatch::default(),
            plaintext: Default::default(),
            upcalls: Vec::new(),
            ready: Ready::default(),
            deadlines: Deadlines::default(),
            outboxes: Outboxes::new(Arc::clone(self.inboxes)),
            deferred: Deferred::default(),
            store: Arc::clone(self.store),
            derivers: self.derivers.clone(),
            watchers: Watchers::default(),
            tls: Arc::clone(self.tls),
            websocket: Arc::new(endpoint),
            settings: Arc::clone(&self.options.core),
            out_queue_bytes: self.options.out_queue_bytes,
            registry: poll.registry().try_clone()?,
            counters: IoCounters::default(),
            mono: Mono(0),
        };
        let shared = Shared {
            admission: Arc::clone(self.admission),
            inbox: Arc::clone(&self.inboxes[usize::from(id.0)]),
            figures: Arc::clone(figures),
            producer,
            io_uring: self.options.io_uring,
            clock: self.clock,
        };
        EventLoop::new(machine, io, poll, listeners, shared)
    }
}

fn inbox(poll: &Poll) -> io::Result<Arc<Inbox>> {
    Ok(Arc::new(Inbox::new(Waker::new(poll.registry(), special(WAKER))?)))
}

fn read_domains(store: &dyn Store) -> Result<Domains, StartError> {
    let (sender, answers) = mpsc::sync_channel(1);
    store.ask(Ask::Domains, Box::new(move |answer| drop(sender.send(answer))));
    match answers.recv_timeout(STORE_PATIENCE) {
        Ok(Answer::Domains(domains)) => Ok(Domains::new(domains)),
        Ok(Answer::Failed(fault)) => Err(fault.into()),
        Ok(_) => Err(Fault::Broken.into()),
        Err(_) => Err(StartError::StoreSilent),
    }
}

/// Entropy for the shards.
struct Seeds([u8; 32]);

impl Seeds {
    fn new(seed: Option<[u8; 32]>) -> io::Result<Seeds> {
        match seed {
            Some(seed) => Ok(Seeds(seed)),
            None => {
                let mut seed = [0; 32];
                getrandom::fill(&mut seed).map_err(io::Error::other)?;
                Ok(Seeds(seed))
            }
        }
    }

    /// One for each shard, of which none tells another.
    fn of(&self, id: ShardId) -> [u8; 32] {
        let mut context = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA256);
        context.update(&self.0);
        context.update(&id.0.to_be_bytes());
        context.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")
    }
}

/// The waker's place among the tokens that name no connection; listeners count from 0.
const WAKER: usize = 0xff;
/// How long a store may take for its first answer.
const STORE_PATIENCE: Duration = Duration::from_secs(30);
