//! Starting a server: everything that can fail is done before the first thread runs.

use crate::clock::Clock;
use crate::deadlines::Deadlines;
use crate::derivers::Derivers;
use crate::drain::Threads;
use crate::events::{EventLog, EventLogError, Kinds, Lane};
use crate::inbox::{Inbox, Order};
use crate::jobs::{Jobs, Note};
use crate::listen::{Admission, BindError, Binding, Bounds, Ceiling, Listener, Ports, bind};
use crate::machine::Machine;
use crate::metrics::{Board, Tally};
use crate::node::{Node, Parts};
use crate::offers::Offers;
use crate::options::Options;
use crate::sends::Sends;
use crate::shard::{Shard, Ties};
use crate::tls;
use crate::watch::Watchers;
use crate::websocket::Face;
use crate::world::{Errands, Post, Ready, Scratch, World, special};
use carillon_core::model::{Domains, Mono, ShardId};
use carillon_core::node::Shard as Core;
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
    offers: Mutex<Arc<Offers>>,
    ceiling: Ceiling,
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
        let (ports, listeners) = bind(&Binding {
            addresses: &options.addresses,
            services: options.services(),
            shards: count.into(),
            backlog: options.backlog,
            reuse_port: options.reuse_port,
            nodelay: options.nodelay,
        })?;
        let polls = (0..count).map(|_| Poll::new()).collect::<io::Result<Vec<_>>>()?;
        let inboxes = polls.iter().map(inbox).collect::<io::Result<Arc<[_]>>>()?;
        let ceiling = Ceiling::find();
        let admission = Arc::new(Admission::new(ceiling.lower(options.bounds)));
        let boards: Vec<Arc<Board>> = (0..count).map(|_| Arc::default()).collect();
        let offers = Arc::new(Offers::new(&options.tls));
        let derivers = Derivers::start()?;
        let common = Common {
            options,
            store: &store,
            derivers: &derivers,
            inboxes: &inboxes,
            admission: &admission,
            offers: &offers,
            clock,
        };
        let (events, lanes) = match &options.events {
            Some(events) => EventLog::start(events, count).map(|(log, lanes)| (Some(log), lanes))?,
            None => (None, Vec::new()),
        };
        let mut lanes = lanes.into_iter();
        let mut shards = Vec::new();
        for (n, (poll, listeners)) in polls.into_iter().zip(listeners).enumerate() {
            let id = ShardId(n as u16);
            let ends = Ends { poll, listeners, lane: lanes.next() };
            shards.push(common.shard(id, machine(id, count, &domains), ends, &boards[n])?);
        }
        let node = Node::new(Parts {
            inboxes,
            boards,
            store: Arc::clone(&store),
            admission: Arc::clone(&admission),
            clock,
            domains,
            events: events.as_ref().map(EventLog::figures),
        });
        let (sender, notes) = mpsc::channel::<Note>();
        let jobs = Jobs {
            node: node.clone(),
            notes,
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
            offers: Mutex::new(offers),
            ceiling,
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
        let mut offers = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
        *offers = Arc::new(offers.renewed(settings));
        self.node.set_certificate_expiry(settings.not_after());
        self.node.order(|| Order::Tls(Arc::clone(&offers)));
    }

    /// Puts other bounds in force: who gets in from now on, and how much waits for a client that reads too slowly.
    pub fn reload_bounds(&self, bounds: Bounds, out_queue_bytes: usize) {
        self.admission.set(self.ceiling.lower(bounds));
        self.node.order(|| Order::OutQueue(out_queue_bytes));
    }

    /// Has the event log, if there is one, keep these kinds from now on.
    pub fn reload_events(&self, kinds: Kinds) {
        self.node.order(|| Order::Kinds(kinds));
    }

    /// Puts other limits and timeouts in force.
    pub fn reload_settings(&self, settings: &Arc<Settings>) {
        self.node.order(|| Order::Settings(Arc::clone(settings)));
    }
}

/// What all shards are made of.
struct Common<'a> {
    options: &'a Options,
    store: &'a Arc<dyn Store>,
    derivers: &'a Derivers,
    inboxes: &'a Arc<[Arc<Inbox>]>,
    admission: &'a Arc<Admission>,
    offers: &'a Arc<Offers>,
    clock: Clock,
}

/// What one shard is made of.
struct Ends {
    poll: Poll,
    listeners: Vec<Listener>,
    lane: Option<Lane>,
}

impl Common<'_> {
    fn shard<M: Machine>(
        &self,
        id: ShardId,
        machine: M,
        ends: Ends,
        board: &Arc<Board>,
    ) -> io::Result<Shard<M>> {
        let Ends { poll, listeners, lane } = ends;
        let websocket = self.options.websocket.as_ref();
        let face = Face {
            path: websocket.map(|websocket| websocket.path.as_str()).unwrap_or_default().into(),
            secure: websocket.is_some_and(|websocket| websocket.tls),
            proxies: self.options.trusted_proxies.as_slice().into(),
        };
        let world = World {
            id,
            conns: Default::default(),
            scratch: Scratch::new(),
            sends: Sends::default(),
            hand: Default::default(),
            upcalls: Vec::new(),
            ready: Ready::default(),
            deadlines: Deadlines::default(),
            post: Post::new(Arc::clone(self.inboxes)),
            errands: Errands::default(),
            store: Arc::clone(self.store),
            derivers: self.derivers.clone(),
            watchers: Watchers::default(),
            offers: Arc::clone(self.offers),
            face: Arc::new(face),
            settings: Arc::clone(&self.options.core),
            out_queue_bytes: self.options.out_queue_bytes,
            registry: poll.registry().try_clone()?,
            tally: Tally::default(),
            mono: Mono(0),
        };
        let ties = Ties {
            admission: Arc::clone(self.admission),
            inbox: Arc::clone(&self.inboxes[usize::from(id.0)]),
            board: Arc::clone(board),
            lane,
            io_uring: self.options.io_uring,
            clock: self.clock,
        };
        Shard::new(machine, world, poll, listeners, ties)
    }
}

fn inbox(poll: &Poll) -> io::Result<Arc<Inbox>> {
    Ok(Arc::new(Inbox::new(Waker::new(poll.registry(), special(WAKER))?)))
}

fn read_domains(store: &dyn Store) -> Result<Domains, StartError> {
    let (sender, answers) = mpsc::channel();
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
