//! Building the shards of a server.

use super::Among;
use crate::cell::CellIo;
use crate::channels::inbox::Inbox;
use crate::channels::taps::TapSinks;
use crate::channels::watch::Watchers;
use crate::clock::Clock;
use crate::conn::deadlines::Deadlines;
use crate::derivers::Derivers;
use crate::event_loop::{EventLoop, Shared, WAKER};
use crate::events::Producer;
use crate::handover::ForShard;
use crate::listen::proxies::TrustedProxies;
use crate::listen::{Admission, Listener};
use crate::listener_tls::ListenerTls;
use crate::machine::Machine;
use crate::metrics::{IoCounters, ShardFigures};
use crate::options::Options;
use crate::quic::Quic;
use crate::sends::SendBatch;
use crate::shard_io::{Deferred, Outboxes, QueuedBytes, Ready, Scratch, ShardIo, special};
use crate::websocket::WebSocketEndpoint;
use carillon_core::model::{Mono, Place, ShardId};
use carillon_core::ports::Store;
use carillon_core::ports::store::parked::ParkedGroup;
use carillon_core::settings::Settings;
use mio::{Poll, Waker};
use socket2::Socket;
use std::io;
use std::sync::Arc;

/// What all shards have in common, to build each of them.
pub(super) struct ShardBuilder<'a> {
    pub(super) options: &'a Options,
    pub(super) core: &'a Arc<Settings>,
    pub(super) store: &'a Arc<dyn Store>,
    pub(super) derivers: &'a Derivers,
    pub(super) among: &'a Among,
    pub(super) inboxes: &'a Arc<[Arc<Inbox>]>,
    pub(super) admission: &'a Arc<Admission>,
    pub(super) tls: &'a Arc<ListenerTls>,
    pub(super) clock: Clock,
    pub(super) left_parked: Arc<[ParkedGroup]>,
}

/// What one shard alone has.
pub(super) struct ShardParts {
    pub(super) poll: Poll,
    pub(super) listeners: Vec<Listener>,
    /// The sockets of QUIC.
    pub(super) udp: Vec<Socket>,
    pub(super) producer: Option<Producer>,
    pub(super) handed: ForShard,
}

impl ShardParts {
    pub(super) fn new(
        (poll, (listeners, udp)): (Poll, (Vec<Listener>, Vec<Socket>)),
        producer: Option<Producer>,
        handed: ForShard,
    ) -> ShardParts {
        ShardParts { poll, listeners, udp, producer, handed }
    }
}

impl ShardBuilder<'_> {
    /// Builds all shards, one of each of `parts`.
    pub(super) fn build_all<M: Machine>(
        &self,
        parts: impl Iterator<Item = ShardParts>,
        machine: impl Fn(Place) -> M,
        figures: &[Arc<ShardFigures>],
    ) -> io::Result<Vec<EventLoop<M>>> {
        let places = (0..).map(|shard| Place { node: self.among.own, shard: ShardId(shard) });
        let shards = places.zip(parts).zip(figures);
        shards.map(|((place, parts), figures)| self.build(place, machine(place), parts, figures)).collect()
    }

    fn build<M: Machine>(
        &self,
        place: Place,
        machine: M,
        parts: ShardParts,
        figures: &Arc<ShardFigures>,
    ) -> io::Result<EventLoop<M>> {
        let ShardParts { poll, listeners, udp, producer, handed } = parts;
        let proxies = TrustedProxies::new(&self.options.trusted_proxies);
        let endpoint = WebSocketEndpoint {
            path: self.options.websocket.path.as_str().into(),
            secure: self.options.websocket.tls,
            proxies: proxies.clone(),
            takes_players: self.core.matches.max > 0,
        };
        let io = ShardIo {
            place,
            conns: Default::default(),
            scratch: Scratch::new(),
            sends: SendBatch::default(),
            plaintext: Default::default(),
            upcalls: Vec::new(),
            ready: Ready::default(),
            deadlines: Deadlines::default(),
            outboxes: Outboxes::new(Arc::clone(self.inboxes), place),
            cell: CellIo::new(self.among.bus.clone(), Arc::clone(&self.among.unsettled)),
            deferred: Deferred::default(),
            replies: Arc::clone(&self.among.replies),
            store: Arc::clone(self.store),
            derivers: self.derivers.clone(),
            watchers: Watchers::default(),
            tap_sinks: TapSinks::default(),
            hops: Default::default(),
            tls: Arc::clone(self.tls),
            websocket: Arc::new(endpoint),
            proxies,
            settings: Arc::clone(self.core),
            out_queues: self.options.out_queues.of_shard(self.inboxes.len()),
            quic: self.quic(place, udp)?,
            waiting: QueuedBytes::default(),
            registry: poll.registry().try_clone()?,
            counters: IoCounters::default(),
            mono: Mono(0),
        };
        let shared = Shared {
            admission: Arc::clone(self.admission),
            inbox: Arc::clone(&self.inboxes[usize::from(place.shard.0)]),
            figures: Arc::clone(figures),
            producer,
            io_uring: self.options.io_uring,
            clock: self.clock,
            left_parked: Arc::clone(&self.left_parked),
            handed,
            log: self.among.log.clone(),
        };
        EventLoop::new(machine, io, poll, listeners, shared)
    }

    /// QUIC on these sockets, if there are any and a certificate that it can use.
    fn quic(&self, place: Place, udp: Vec<Socket>) -> io::Result<Option<Box<Quic>>> {
        let Some((keys, server)) = self.tls.quic().filter(|_| !udp.is_empty()) else { return Ok(None) };
        let shards = self.inboxes.len() as u16;
        Quic::new(udp, (place, shards), self.clock, keys, Arc::clone(server)).map(Box::new).map(Some)
    }
}

pub(super) fn inbox(poll: &Poll) -> io::Result<Arc<Inbox>> {
    Ok(Arc::new(Inbox::new(Waker::new(poll.registry(), special(WAKER))?)))
}
