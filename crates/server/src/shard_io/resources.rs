//! The resources of a shard, and what connections need of them.

use super::deferred::Deferred;
use super::hops::Hops;
use super::outboxes::Outboxes;
use super::upcall::Upcall;
use crate::cell::CellIo;
use crate::channels::inbox::InboxItem;
use crate::channels::replies::Replies;
use crate::channels::taps::TapSinks;
use crate::channels::watch::Watchers;
use crate::conn::deadlines::Deadlines;
use crate::conn::plaintext::Plaintext;
use crate::conn::{Conn, Readiness, SCRATCH_BYTES, Slab, Stage, Transport};
use crate::derivers::Derivers;
use crate::listen::Service;
use crate::listen::proxies::TrustedProxies;
use crate::listener_tls::ListenerTls;
use crate::metrics::IoCounters;
use crate::options::OutQueues;
use crate::quic::Quic;
use crate::sends::SendBatch;
use crate::websocket::WebSocketEndpoint;
use carillon_core::connection::BySize;
use carillon_core::model::{ConnId, Mono, Place, Ticket};
use carillon_core::ports::{Ask, Store};
use carillon_core::settings::Settings;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// Everything a shard owns besides its core.
pub(crate) struct ShardIo {
    pub(crate) place: Place,
    pub(crate) conns: Slab,
    pub(crate) scratch: Scratch,
    pub(crate) sends: SendBatch,
    pub(crate) plaintext: Plaintext,
    /// What the core has yet to hear of.
    pub(crate) upcalls: Vec<Upcall>,
    pub(crate) ready: Ready,
    pub(crate) deadlines: Deadlines,
    pub(crate) outboxes: Outboxes,
    pub(crate) cell: CellIo,
    pub(crate) deferred: Deferred,
    pub(crate) replies: Arc<Replies>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) derivers: Derivers,
    pub(crate) watchers: Watchers,
    pub(crate) tap_sinks: TapSinks,
    pub(crate) hops: Hops,
    pub(crate) tls: Arc<ListenerTls>,
    pub(crate) websocket: Arc<WebSocketEndpoint>,
    pub(crate) proxies: TrustedProxies,
    pub(crate) settings: Arc<Settings>,
    pub(crate) out_queues: OutQueues,
    /// QUIC, where it is wanted.
    pub(crate) quic: Option<Box<Quic>>,
    /// What waits in the queues of connections.
    pub(crate) waiting: QueuedBytes,
    pub(crate) registry: Registry,
    pub(crate) counters: IoCounters,
    /// The time, as of the present part of the turn.
    pub(crate) mono: Mono,
}

/// Buffers that all connections of a shard share.
pub(crate) struct Scratch {
    /// The input of one read.
    pub(crate) raw: Vec<u8>,
    /// What TLS sends of its own accord.
    pub(crate) reply: Vec<u8>,
    /// WebSocket frames.
    pub(crate) framed: Vec<u8>,
    /// TLS records.
    pub(crate) sealed: Vec<u8>,
}

/// Connections that wait to be read. Opening ones wait apart, as their handshakes take long.
#[derive(Default)]
pub(crate) struct Ready {
    pub(crate) live: VecDeque<ConnId>,
    pub(crate) opening: VecDeque<ConnId>,
}

impl Ready {
    /// Whether no connection waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.live.is_empty() && self.opening.is_empty()
    }

    /// Frees memory that a storm made it allocate.
    pub(crate) fn tidy(&mut self) {
        for queue in [&mut self.live, &mut self.opening] {
            if queue.is_empty() && queue.capacity() > QUEUE_CAPACITY {
                queue.shrink_to(QUEUE_CAPACITY);
            }
        }
    }
}

impl Scratch {
    pub(crate) fn new() -> Scratch {
        Scratch { raw: vec![0; SCRATCH_BYTES], reply: Vec::new(), framed: Vec::new(), sealed: Vec::new() }
    }
}

/// What waits in the queues of a shard's connections.
#[derive(Default)]
pub(crate) struct QueuedBytes {
    pub(super) bytes: usize,
    pub(super) by_size: BySize<ConnId>,
}

impl ShardIo {
    /// Adds a question to the store. Its answer comes by the inbox.
    pub(crate) fn ask(&mut self, ticket: Ticket, ask: Ask) {
        let inbox = Arc::clone(&self.outboxes.inboxes[usize::from(self.place.shard.0)]);
        self.deferred.ask(ask, Box::new(move |answer| inbox.push(InboxItem::Answer { ticket, answer })));
    }

    /// Hands over everything that was deferred.
    pub(crate) fn flush_deferred(&mut self) {
        self.deferred.flush(&*self.store, &self.replies, &mut self.watchers);
    }

    /// Adds a connection: names it and registers its socket, once for its life here, for the edges of both directions.
    pub(crate) fn attach(&mut self, mut conn: Conn) -> io::Result<ConnId> {
        conn.queued = false;
        conn.readiness = Readiness::Dry;
        let fd = conn.socket.as_raw_fd();
        let id = self.conns.insert(conn);
        let interest = Interest::READABLE | Interest::WRITABLE;
        // Readiness that is there already makes an edge, too.
        if let Err(error) = self.registry.register(&mut SourceFd(&fd), token(id), interest) {
            self.conns.remove(id);
            return Err(error);
        }
        self.recount(id);
        Ok(id)
    }

    /// The same for a connection that had this name in the process before, and keeps it.
    pub(crate) fn attach_at(&mut self, id: ConnId, mut conn: Conn) -> io::Result<()> {
        conn.queued = false;
        conn.readiness = Readiness::Dry;
        let fd = conn.socket.as_raw_fd();
        let taken = || io::Error::from(io::ErrorKind::AlreadyExists);
        self.conns.insert_at(id, conn).map_err(|_| taken())?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self.registry.register(&mut SourceFd(&fd), token(id), interest) {
            self.conns.remove(id);
            return Err(error);
        }
        self.recount(id);
        Ok(())
    }

    /// Removes a connection that moves to another shard.
    pub(crate) fn detach(&mut self, id: ConnId) -> Option<Conn> {
        let conn = self.remove(id)?;
        if let Err(error) = self.registry.deregister(&mut SourceFd(&conn.socket.as_raw_fd())) {
            tracing::error!(%error, "a socket was not registered");
        }
        Some(conn)
    }

    /// Queues a connection to be read, if there is anything to read and it is not queued yet.
    pub(crate) fn schedule(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        if conn.is_readable() && !conn.queued {
            conn.queued = true;
            match conn.is_opening() {
                true => self.ready.opening.push_back(id),
                false => self.ready.live.push_back(id),
            }
        }
    }

    /// Writes the queue of a connection whose socket takes bytes again.
    pub(crate) fn writable(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        if conn.send_queue.is_idle() {
            return;
        }
        match conn.flush() {
            Err(_) => self.drop_conn(id),
            Ok(watched) => {
                let core_knows = conn.stage == Stage::Open;
                self.recount(id);
                self.shut_down_when_flushed(id);
                if watched && core_knows {
                    self.upcalls.push(Upcall::Flushed(id));
                }
            }
        }
    }

    /// Writes what was held back for a connection.
    pub(crate) fn release_held(&mut self, id: ConnId) {
        if self.conns.get_mut(id).is_some_and(|conn| conn.send_queue.is_held()) {
            self.writable(id);
        }
    }

    /// Starts what comes first on a listener of this kind: TLS, or nothing.
    pub(crate) fn start_transport(&self, service: Service) -> Transport {
        match service {
            Service::StartTls | Service::WebSocket | Service::Light => Transport::Plain,
            Service::DirectTls | Service::WebSocketTls | Service::LightTls => self.start_handshake(service),
        }
    }

    /// Starts a handshake with the TLS settings of this kind of listener.
    pub(crate) fn start_handshake(&self, service: Service) -> Transport {
        Transport::Handshaking(Box::new(self.tls.handshake(service)))
    }

    /// Writes what TLS sends of its own accord.
    pub(crate) fn reply(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(id)
            && !self.scratch.reply.is_empty()
        {
            match conn.write(&self.scratch.reply) {
                Ok(()) => self.recount(id),
                Err(_) => self.drop_conn(id),
            }
        }
        self.scratch.reply.clear();
    }
}

/// The poll's token of a connection.
pub(crate) fn token(id: ConnId) -> Token {
    Token((id.generation as usize) << 32 | id.slot as usize)
}

/// The connection of a token. Tokens with the highest generation name listeners or the waker.
pub(crate) fn conn_of(token: Token) -> Option<ConnId> {
    let id = ConnId { slot: token.0 as u32, generation: (token.0 >> 32) as u32 };
    (id.generation != u32::MAX).then_some(id)
}

/// The token of the `n`th listener, or of the waker.
pub(crate) const fn special(n: usize) -> Token {
    Token((u32::MAX as usize) << 32 | n)
}

/// Capacity that a queue keeps after a storm, in connections.
const QUEUE_CAPACITY: usize = 1024;
