//! A running server: starting, reloading and draining it. Everything that can fail is done before the first thread runs.

mod among;
mod leaving;
mod seeds;
mod shards;
mod threads;

use crate::cell::Cell;
use crate::channels::inbox::{Control, Inbox};
use crate::derivers::Derivers;
use crate::events::{self, EventLog, EventLogError, Kinds, Producer};
use crate::handover::TakeOver;
use crate::listen::{
    Admission, BindError, Bounds, DescriptorLimit, ListenConfig, Listener, ListenerKind, Ports, bind,
    bind_quic,
};
use crate::listener_tls::ListenerTls;
use crate::machine::Machine;
use crate::metrics::ShardFigures;
use crate::node::parked;
use crate::node::{ModulesError, Node, NodeParts};
use crate::options::{Options, OutQueues};
use crate::quic::{QuicKeys, steer};
use crate::tls;
use among::Among;
use carillon_core::machine::ShardMachine as Core;
use carillon_core::model::Domains;
use carillon_core::ports::modules::Runtime;
use carillon_core::ports::store::domains;
use carillon_core::ports::{Fault, Question, SessionLog, Store};
use carillon_core::settings::Settings;
use carillon_core::shard::Member;
pub use leaving::{FreezeError, HandedOver};
use mio::Poll;
use seeds::Seeds;
use shards::{ShardBuilder, ShardParts, inbox};
use socket2::Socket;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};
use threads::Threads;

/// A running server. Dropping it stops it at once; [`Server::drain`] closes every stream first.
pub struct Server {
    node: Node,
    ports: Ports,
    admission: Arc<Admission>,
    store: Arc<dyn Store>,
    threads: Threads,
    tls: Mutex<Arc<ListenerTls>>,
    descriptor_limit: DescriptorLimit,
    parked_bytes_max: u64,
    /// The listening sockets once more, for a process that takes over.
    listening: Vec<(ListenerKind, Socket)>,
    /// Dropped last: it ends when all events of the shards are written.
    events: Mutex<Option<EventLog>>,
    /// Where the sessions are written down, if they are.
    log: Option<Arc<dyn SessionLog>>,
}

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A port could not be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The store could not list the domains.
    #[error("cannot read the domains: {0}")]
    Store(#[from] Fault),
    /// The store could not give or forget the sessions that the process before left.
    #[error("cannot take the parked sessions from the store: {0}")]
    Parked(Fault),
    /// The store did not answer.
    #[error("cannot read the domains: the store did not answer within {} s", STORE_PATIENCE.as_secs())]
    StoreSilent,
    /// The event log's folder cannot be written.
    #[error(transparent)]
    Events(#[from] EventLogError),
    /// The bus of the cell cannot be used.
    #[error("cannot join the cell: {0}")]
    Bus(String),
    /// The log of sessions cannot be opened.
    #[error("{0}")]
    Log(String),
    /// The system provided no poll, thread or entropy.
    #[error("cannot start a shard: {0}")]
    System(#[from] io::Error),
}

/// What a server begins with, if it is not alone and new.
#[derive(Default)]
pub struct Beginning {
    /// What another process handed over.
    pub take_over: Option<TakeOver>,
    /// The cell that it is a node of.
    pub cell: Option<Cell>,
    /// What compiles modules, where that is built.
    pub modules: Option<Arc<dyn Runtime>>,
}

/// Gives the shards the modules that are activated, before they run. One that cannot be run does not keep a node from starting: it
/// fails whenever it is asked, and the log says why.
fn load_modules(node: &Node) -> Result<(), StartError> {
    match node.load_modules_now() {
        Ok(()) | Err(ModulesError::NotBuilt) => Ok(()),
        Err(ModulesError::Store(fault)) => Err(StartError::Store(fault)),
        Err(error) => {
            tracing::error!(%error, "modules are not as they are activated");
            Ok(())
        }
    }
}

impl Server {
    /// Binds the ports, reads the domains and starts the shards. When it returns, the node accepts sessions.
    pub fn start(
        options: &Options,
        tls: &tls::Settings,
        core: &Arc<Settings>,
        store: Arc<dyn Store>,
    ) -> Result<Server, StartError> {
        Server::start_after(options, tls, core, store, Beginning::default())
    }

    /// Like [`Server::start`], with what it may begin with.
    pub fn start_after(
        options: &Options,
        tls: &tls::Settings,
        core: &Arc<Settings>,
        store: Arc<dyn Store>,
        beginning: Beginning,
    ) -> Result<Server, StartError> {
        let seeds = Seeds::new()?;
        let machine = |member: Member, domains: &Arc<Domains>| {
            let seed = seeds.of(member.place.shard);
            Core::new(member, Arc::clone(core), Arc::clone(domains), seed)
        };
        Server::start_with(options, tls, core, store, machine, beginning)
    }

    /// Like [`Server::start`], with any machine as the core of the shards.
    pub(crate) fn start_with<M: Machine>(
        options: &Options,
        tls: &tls::Settings,
        core: &Arc<Settings>,
        store: Arc<dyn Store>,
        machine: impl Fn(Member, &Arc<Domains>) -> M,
        Beginning { take_over, cell, modules }: Beginning,
    ) -> Result<Server, StartError> {
        let mut take_over = take_over.unwrap_or_else(TakeOver::nothing);
        let clock = take_over.clock;
        let domains = Arc::new(read_domains(&*store)?);
        let count = options.shard_count();
        let Ground { ports, listeners, udp, polls, inboxes, descriptor_limit, admission } =
            Ground::prepare(options, &mut take_over)?;
        let listening = copies(&listeners, &udp)?;
        let figures: Vec<Arc<ShardFigures>> = (0..count).map(|_| Arc::default()).collect();
        let listener_tls = Arc::new(listener_tls(tls, ports, core)?);
        let name = cell.as_ref().map(|cell| cell.name.clone());
        let among = Among::join(cell, &inboxes, clock)?;
        let builder = ShardBuilder {
            options,
            core,
            store: &store,
            derivers: &Derivers::start()?,
            among: &among,
            inboxes: &inboxes,
            admission: &admission,
            tls: &listener_tls,
            clock,
            left_parked: parked::take(&*store).map_err(StartError::Parked)?.into(),
        };
        let handed = take_over.into_shards(count, &*among.directory, &admission);
        let (events, mut producers) = start_event_log(&options.event_log, count)?;
        let parts = polls.into_iter().zip(listeners.into_iter().zip(udp)).zip(handed);
        let parts = parts.map(|(of, handed)| ShardParts::new(of, producers.next(), handed));
        let member = |place| Member { place, shards: count, directory: Arc::clone(&among.directory) };
        let shards = builder.build_all(parts, |place| machine(member(place), &domains), &figures)?;
        let node = Node::new(NodeParts {
            inboxes,
            own: among.own,
            name,
            directory: among.directory,
            bus: among.bus,
            replies: among.replies,
            figures,
            store: Arc::clone(&store),
            admission: Arc::clone(&admission),
            clock,
            domains,
            events: events.as_ref().map(EventLog::figures),
            modules,
        });
        load_modules(&node)?;
        among.known.get_or_init(|| node.clone());
        let threads = Threads::start(shards, options.traces_kept_ms, &node)?;
        serve(&node, tls, ports, count);
        Ok(Server {
            node,
            ports,
            admission,
            store,
            threads,
            tls: Mutex::new(listener_tls),
            descriptor_limit,
            parked_bytes_max: options.parked_bytes_max,
            listening,
            events: Mutex::new(events),
            log: among.log,
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

    /// Uses another certificate for new connections. Open connections stay, and tickets issued before stay valid.
    pub fn reload_tls(&self, settings: &tls::Settings) {
        let mut tls = self.tls.lock().unwrap_or_else(PoisonError::into_inner);
        *tls = Arc::new(tls.renewed(settings));
        self.node.set_certificate_expiry(settings.not_after());
        self.node.control(|| Control::Tls(Arc::clone(&tls)));
    }

    /// Changes the bounds on connections that come from now on, and how much may wait for clients that read too slowly.
    pub fn reload_bounds(&self, bounds: Bounds, out_queues: OutQueues) {
        self.admission.set(self.descriptor_limit.clamp(bounds));
        self.node.control(|| Control::OutQueues(out_queues));
    }

    /// Changes which kinds of events the event log keeps, if there is one.
    pub fn reload_events(&self, kinds: Kinds) {
        self.node.control(|| Control::Kinds(kinds));
    }

    /// Changes limits and timeouts.
    pub fn reload_settings(&self, settings: &Arc<Settings>) {
        self.node.control(|| Control::Settings(Arc::clone(settings)));
    }

    /// Accepts no more connections, closes every stream, in slices over `spread` where there are many, and waits up to `timeout` until
    /// all connections are gone; then closes the rest and the store. Whether all connections were gone in time.
    pub fn drain(mut self, timeout: Duration, spread: Duration) -> bool {
        self.node.set_ready(false);
        self.listening.clear();
        if self.node.is_in_cell() {
            self.node.leave_in_slices(spread);
            // What had not been acknowledged is for the store, or for the node that serves the account from now on.
            if !parked::settle(&self.node, timeout) {
                tracing::warn!("the node ends while answers of the store are awaited");
            }
        } else {
            self.park(spread);
        }
        self.node.control(|| Control::Drain);
        let gone = self.admission.wait_until_empty(timeout);
        tracing::info!(left = self.admission.open(), "drained");
        self.threads.stop(&self.node);
        // Its sessions have ended: nobody is to go on with them.
        self.log.iter().for_each(|log| log.close());
        self.store.close();
        gone
    }

    /// Parks the sessions that can be resumed, and has the store keep them for the next process.
    fn park(&self, spread: Duration) {
        self.node.park_in_slices(spread);
        if self.parked_bytes_max > 0 {
            let began = Instant::now();
            let written = parked::write(&self.node, &*self.store, self.parked_bytes_max);
            let took_ms = began.elapsed().as_millis() as u64;
            let parked::Written { sessions, bytes, returned, .. } = written;
            tracing::info!(sessions, bytes, not_stored = returned, took_ms, "parked sessions stored");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.node.set_ready(false);
        self.threads.stop(&self.node);
    }
}

/// What the shards stand on.
struct Ground {
    ports: Ports,
    /// The listeners of each shard.
    listeners: Vec<Vec<Listener>>,
    /// The sockets of QUIC of each shard.
    udp: Vec<Vec<Socket>>,
    polls: Vec<Poll>,
    inboxes: Arc<[Arc<Inbox>]>,
    descriptor_limit: DescriptorLimit,
    admission: Arc<Admission>,
}

impl Ground {
    fn prepare(options: &Options, take_over: &mut TakeOver) -> Result<Ground, StartError> {
        let config = options.listen_config();
        let mut inherited = std::mem::take(&mut take_over.listeners);
        let (quic, udp) = match options.quic {
            Some(port) => {
                let (port, sockets) = bind_quic(&config, port, &mut inherited)?;
                steer_all(&sockets, &config);
                (Some(port), sockets)
            }
            None => (None, (0..config.shards).map(|_| Vec::new()).collect()),
        };
        let (ports, listeners) = bind(&config, inherited)?;
        let ports = Ports { quic, ..ports };
        let polls = (0..options.shard_count()).map(|_| Poll::new()).collect::<io::Result<Vec<_>>>()?;
        let inboxes = polls.iter().map(inbox).collect::<io::Result<Arc<[_]>>>()?;
        let descriptor_limit = DescriptorLimit::find(take_over.connections());
        let admission = Arc::new(Admission::new(descriptor_limit.clamp(options.bounds)));
        Ok(Ground { ports, listeners, udp, polls, inboxes, descriptor_limit, admission })
    }
}

/// The node is ready once its shards have what was handed over, or was parked.
fn serve(node: &Node, tls: &tls::Settings, ports: Ports, shards: u16) {
    // A shard answers when it has it.
    node.sum(Control::Unbound, TAKING_OVER);
    node.set_certificate_expiry(tls.not_after());
    node.set_ready(true);
    let Ports { c2s: starttls, c2s_tls: direct_tls, websocket, light, quic } = ports;
    tracing::info!(starttls, direct_tls, websocket, light, quic, shards, "listening");
}

/// What TLS offers on the ports.
fn listener_tls(tls: &tls::Settings, ports: Ports, core: &Settings) -> io::Result<ListenerTls> {
    let takes_players = core.matches.max > 0;
    let listener_tls = ListenerTls::new(tls, takes_players);
    if ports.quic.is_none() || !takes_players {
        return Ok(listener_tls);
    }
    let keys = QuicKeys::new().ok_or_else(|| io::Error::other("the system has no randomness"))?;
    Ok(listener_tls.with_quic(tls, &Arc::new(keys)))
}

/// Has the kernel give each packet of QUIC to its shard, where each has a socket of its own.
fn steer_all(shards: &[Vec<Socket>], config: &ListenConfig<'_>) {
    if !config.reuse_port || config.shards < 2 {
        return;
    }
    for socket in shards.first().into_iter().flatten() {
        if let Err(error) = steer(socket.as_fd(), config.shards as u16) {
            tracing::warn!(%error, "packets of QUIC are handed over between shards: the system does not steer them");
        }
    }
}

/// The listening sockets once more.
fn copies(listeners: &[Vec<Listener>], udp: &[Vec<Socket>]) -> io::Result<Vec<(ListenerKind, Socket)>> {
    let copy = |listener: &Listener| {
        let socket = listener.socket.as_fd().try_clone_to_owned()?;
        Ok((ListenerKind::of(listener.service), Socket::from(socket)))
    };
    let udp = udp.iter().flatten().map(|socket| Ok((ListenerKind::QUIC, socket.try_clone()?)));
    listeners.iter().flatten().map(copy).chain(udp).collect()
}

/// Starts the event log, if there is one: the log, and a producer for each shard.
fn start_event_log(
    options: &events::Options,
    shards: u16,
) -> Result<(Option<EventLog>, std::vec::IntoIter<Producer>), EventLogError> {
    if !options.enabled {
        return Ok((None, Vec::new().into_iter()));
    }
    EventLog::start(options, shards).map(|(log, producers)| (Some(log), producers.into_iter()))
}

fn read_domains(store: &dyn Store) -> Result<Domains, StartError> {
    let (sender, answers) = mpsc::sync_channel(1);
    let reply = domains::Domains::reply(move |answer| drop(sender.send(answer)));
    store.ask(domains::Domains.into(), reply);
    let answer = answers.recv_timeout(STORE_PATIENCE).map_err(|_| StartError::StoreSilent)?;
    Ok(Domains::new(answer?))
}

/// How long the shards may take to go on with what was handed over.
const TAKING_OVER: Duration = Duration::from_secs(30);
/// How long the store may take for its first answer.
const STORE_PATIENCE: Duration = Duration::from_secs(30);
