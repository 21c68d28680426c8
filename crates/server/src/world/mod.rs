//! The world as a shard's core sees it: the connections, and the ways to everyone else. Carrying out an effect never
//! calls the core back: what the core must hear of is noted as an [`Upcall`] and told when the effects are done.

use crate::conn::{
    Broken, Conn, Flow, Flushed, Handshaking, Readiness, SCRATCH_BYTES, Slab, Stage, Transport,
};
use crate::deadlines::{Deadline, Deadlines};
use crate::hand::Hand;
use crate::inbox::{Inbox, Mail};
use crate::listen::Service;
use crate::metrics::Tally;
use crate::offers::Offers;
use crate::watch::Watchers;
use crate::websocket::Face;
use carillon_core::model::{ConnId, Mono};
use carillon_core::ports::Store;
use carillon_core::settings::Settings;
use carillon_core::{Input, model::ShardId};
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// What a shard has to do with, its core apart.
pub(crate) struct World {
    pub(crate) id: ShardId,
    pub(crate) conns: Slab,
    pub(crate) scratch: Scratch,
    pub(crate) hand: Hand,
    /// What the core is to be told.
    pub(crate) upcalls: Vec<Upcall>,
    pub(crate) ready: Ready,
    pub(crate) deadlines: Deadlines,
    pub(crate) post: Post,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) watchers: Watchers,
    pub(crate) offers: Arc<Offers>,
    pub(crate) face: Arc<Face>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) out_queue_bytes: usize,
    pub(crate) registry: Registry,
    pub(crate) tally: Tally,
    /// The time of this turn.
    pub(crate) mono: Mono,
}

/// Something the core must hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upcall {
    /// A connection is gone.
    Closed(ConnId),
    /// What was watched has left.
    Flushed(ConnId),
    /// A queue is full.
    Overflowed(ConnId),
}

/// Buffers that all connections of a shard share.
pub(crate) struct Scratch {
    /// What a read yields.
    pub(crate) raw: Vec<u8>,
    /// What TLS says of its own accord.
    pub(crate) reply: Vec<u8>,
    /// WebSocket frames.
    pub(crate) framed: Vec<u8>,
    /// TLS records.
    pub(crate) sealed: Vec<u8>,
}

/// Connections that wait to be read. Those on their way in wait apart: their handshakes are long.
#[derive(Default)]
pub(crate) struct Ready {
    pub(crate) live: VecDeque<ConnId>,
    pub(crate) opening: VecDeque<ConnId>,
}

/// Mail for other shards, gathered during a turn.
pub(crate) struct Post {
    pub(crate) inboxes: Arc<[Arc<Inbox>]>,
    batches: Vec<VecDeque<Mail>>,
    held_back: bool,
}

impl Upcall {
    /// As the core's input.
    pub(crate) fn input(self) -> Input<'static> {
        match self {
            Upcall::Closed(conn) => Input::Closed { conn },
            Upcall::Flushed(conn) => Input::Flushed { conn },
            Upcall::Overflowed(conn) => Input::Overflowed { conn },
        }
    }
}

impl Ready {
    /// Whether none waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.live.is_empty() && self.opening.is_empty()
    }

    /// Gives back what a storm made it grow to.
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

impl Post {
    pub(crate) fn new(inboxes: Arc<[Arc<Inbox>]>) -> Post {
        let batches = inboxes.iter().map(|_| VecDeque::new()).collect();
        Post { inboxes, batches, held_back: false }
    }

    /// Adds mail to the batch of a shard.
    pub(crate) fn add(&mut self, to: ShardId, mail: Mail) {
        self.batches[usize::from(to.0)].push_back(mail);
    }

    /// Hands every batch over. A batch that is not taken stays, in order.
    pub(crate) fn send(&mut self) {
        self.held_back = false;
        for (inbox, batch) in self.inboxes.iter().zip(&mut self.batches) {
            if batch.is_empty() {
                continue;
            }
            if !inbox.append(batch) {
                self.held_back = true;
            } else if batch.capacity() > BATCH_CAPACITY {
                batch.shrink_to(BATCH_CAPACITY);
            }
        }
    }

    /// Whether a shard is so far behind that its mail is held back: then no more is made of what clients send.
    pub(crate) fn is_held_back(&self) -> bool {
        self.held_back
    }
}

impl World {
    /// Takes a connection in: names it and has its socket watched, once and for all, for both directions' edges.
    pub(crate) fn attach(&mut self, mut conn: Conn) -> io::Result<ConnId> {
        conn.queued = false;
        conn.readiness = Readiness::Dry;
        let fd = conn.socket.as_raw_fd();
        let id = self.conns.insert(conn);
        let interest = Interest::READABLE | Interest::WRITABLE;
        // What is ready already is an edge, too.
        if let Err(error) = self.registry.register(&mut SourceFd(&fd), token(id), interest) {
            self.conns.remove(id);
            return Err(error);
        }
        Ok(id)
    }

    /// Lets a connection go to another shard.
    pub(crate) fn detach(&mut self, id: ConnId) -> Option<Conn> {
        let conn = self.conns.remove(id)?;
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

    /// The socket takes bytes again.
    pub(crate) fn writable(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        if conn.outflow.is_none() {
            return;
        }
        match conn.flush() {
            Err(_) => self.lose(id),
            Ok(Flushed::Partly { watched } | Flushed::Wholly { watched }) => {
                let core_knows = conn.stage == Stage::Open;
                self.depart(id);
                if watched && core_knows {
                    self.upcalls.push(Upcall::Flushed(id));
                }
            }
        }
    }

    /// Ends a connection that cannot go on.
    pub(crate) fn lose(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.remove(id)
            && conn.stage == Stage::Open
        {
            self.upcalls.push(Upcall::Closed(id));
        }
    }

    /// Ends a connection that broke; an error of ours is worth a line in the log.
    pub(crate) fn broken(&mut self, id: ConnId, broken: &Broken) {
        if let Broken::Tls(fault) = broken {
            log_fault(fault);
        }
        self.lose(id);
    }

    /// Ends a connection in an orderly way: what is queued is written first, then WebSocket's and TLS's goodbye, with
    /// `code` as WebSocket's reason. For the core it is gone at once.
    pub(crate) fn close(&mut self, id: ConnId, code: u16) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        match conn.stage {
            Stage::Leaving | Stage::Lingering => return,
            Stage::New(_) => {}
            Stage::Open => self.upcalls.push(Upcall::Closed(id)),
        }
        conn.inflow = None;
        conn.flow = Flow::Open;
        if conn.say_goodbye(code, &mut self.scratch.sealed).is_err() {
            self.conns.remove(id);
            return;
        }
        let patience = self.settings.timeouts.close_ms;
        self.deadlines.set(self.mono.plus(patience), Deadline::Leaving, id);
        self.depart(id);
    }

    /// Shuts a leaving connection down once its queue is written. One whose peer is done is gone then.
    fn depart(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        if conn.stage != Stage::Leaving || conn.has_queue() {
            return;
        }
        let shut = conn.socket.shutdown(std::net::Shutdown::Write);
        conn.outflow = None;
        conn.stage = Stage::Lingering;
        if shut.is_err() {
            self.conns.remove(id);
            return;
        }
        // What is there already has its edge behind it.
        self.schedule(id);
    }

    /// The peer's end of the socket is closed: nothing more will come.
    pub(crate) fn ended(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        conn.readiness = Readiness::Ended;
        match conn.stage {
            // Whoever half-closes may still read what it asked for.
            Stage::Open if conn.has_queue() => self.close(id, GOING_AWAY),
            // A peer that is gone and a goodbye that waits for room: until the deadline.
            Stage::Leaving => {}
            Stage::Open | Stage::New(_) | Stage::Lingering => self.lose(id),
        }
    }

    /// A handshake that offers what this kind of listener does.
    pub(crate) fn start_handshake(&self, service: Service) -> Transport {
        Transport::Handshaking(Box::new(Handshaking {
            handshake: self.offers.handshake(service),
            end_point: self.offers.end_point.clone(),
        }))
    }

    /// Deals with the deadlines that are due.
    pub(crate) fn expire(&mut self) {
        while let Some((deadline, id)) = self.deadlines.due(self.mono) {
            let Some(conn) = self.conns.get_mut(id) else { continue };
            let missed = match deadline {
                Deadline::Opening => matches!(conn.stage, Stage::New(_)),
                Deadline::Leaving => matches!(conn.stage, Stage::Leaving | Stage::Lingering),
            };
            if missed {
                self.conns.remove(id);
            }
        }
    }

    /// Writes what TLS wants to say of its own accord.
    pub(crate) fn reply(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(id)
            && !self.scratch.reply.is_empty()
            && conn.write(&self.scratch.reply).is_err()
        {
            self.lose(id);
        }
        self.scratch.reply.clear();
    }

    /// A fault of TLS: its alert is in the scratch buffer already, and nothing else can be said any more.
    pub(crate) fn tls_fault(&mut self, id: ConnId, fault: &crate::tls::Fault) {
        log_fault(fault);
        self.reply(id);
        if let Some(conn) = self.conns.get_mut(id) {
            // The alert is not to be followed by anything; `close` writes no TLS on a plain transport.
            conn.transport = Transport::Plain;
            conn.protocol = crate::conn::Protocol::Stream;
        }
        self.close(id, GOING_AWAY);
    }
}

fn log_fault(fault: &crate::tls::Fault) {
    match fault.blame() {
        crate::tls::Blame::Peer => tracing::debug!(%fault, "TLS ended a connection"),
        crate::tls::Blame::Ours => tracing::error!(%fault, "TLS failed on our side"),
    }
}

/// A connection's name as the poll knows it.
pub(crate) fn token(id: ConnId) -> Token {
    Token((id.generation as usize) << 32 | id.slot as usize)
}

/// The connection of a token; those with the highest generation name something else.
pub(crate) fn conn_of(token: Token) -> Option<ConnId> {
    let id = ConnId { slot: token.0 as u32, generation: (token.0 >> 32) as u32 };
    (id.generation != u32::MAX).then_some(id)
}

/// The token of the `n`th thing that is no connection.
pub(crate) const fn special(n: usize) -> Token {
    Token((u32::MAX as usize) << 32 | n)
}

/// WebSocket: the server is going away, or the browser leaves (RFC 6455 §7.4.1).
pub(crate) const GOING_AWAY: u16 = 1001;
/// Connections a queue keeps room for after a storm.
const QUEUE_CAPACITY: usize = 1024;
/// Mail a batch keeps room for after a burst.
const BATCH_CAPACITY: usize = 4096;
