//! The event loop of a shard: one thread, one poll, one core.
//!
//! A turn of the loop. Each part of it is bounded, so that no part delays another for long:
//!
//! ```text
//!  poll ─► readiness ─► accept ─► read sessions ─► read opening connections ─► inbox ─► timers ─► fan-out ─► outboxes
//!   ▲                                                                                                       │
//!   └── sleeps only when no fan-out, no unread connection and no item of the inbox is left ◄────────────────┘
//! ```
//!
//! After an input the effects are carried out ([`crate::interpret`]), and the core is told what came of them
//! ([`EventLoop::run_effects`]). The poll is edge-triggered: a socket is registered once, for both directions, and its
//! readiness is remembered until a read or a write has used it up.

mod accept;
#[cfg(test)]
mod counts;
mod far;
mod handover;
mod inbox;
mod log;
mod parked;
mod proxied;
mod quic;
mod read;
#[cfg(test)]
mod tests;

use self::log::ShardLog;
use crate::channels::inbox::{Inbox, InboxItem};
use crate::clock::Clock;
use crate::conn::Readiness;
use crate::events::Producer;
use crate::handover::ForShard;
use crate::listen::{Admission, Listener, RefusedConns, SpareDescriptor};
use crate::machine::Machine;
use crate::metrics::ShardFigures;
use crate::quic::Quic;
use crate::sends::SendBatch;
use crate::shard_io::{ShardIo, Upcall, conn_of, special};
use carillon_core::connection::QueueBound;
use carillon_core::model::{Mono, Now};
use carillon_core::ports::SessionLog;
use carillon_core::ports::store::parked::ParkedGroup;
use carillon_core::{Effects, Input};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

/// The event loop of a shard, to be run on its thread.
pub(crate) struct EventLoop<M> {
    pub(crate) machine: M,
    pub(crate) io: ShardIo,
    effects: Effects,
    /// Upcalls that the core is being told; swapped with those of `io`.
    reported: Vec<Upcall>,
    poll: Poll,
    events: Events,
    listeners: Vec<Listener>,
    spare: SpareDescriptor,
    admission: Arc<Admission>,
    /// Refused connections that have not been closed yet.
    refused_conns: RefusedConns,
    /// Until when it says no more that a proxy sends no header.
    silent_until: Mono,
    inbox: Arc<Inbox>,
    items: VecDeque<InboxItem>,
    figures: Arc<ShardFigures>,
    /// Its producer of the event log, if there is one.
    producer: Option<Producer>,
    /// Whether it may use io_uring.
    io_uring: bool,
    clock: Clock,
    now: Now,
    phase: Phase,
    /// A fan-out is not finished.
    walking: bool,
    /// The last turn took long: new connections are slowed down in favour of open ones.
    overloaded: bool,
    /// Something happened since the figures were published.
    unpublished: bool,
    published: Mono,
    /// What the process before this one left, until the first turn.
    left_parked: Arc<[ParkedGroup]>,
    /// What the process before this one handed over, until the first turn.
    handed: ForShard,
    /// Connections are accepted.
    accepts: bool,
    /// No connection is read and no timer runs: the sessions are about to be handed over.
    frozen: bool,
    /// What clients sent, up to the next of which the time is measured.
    unmeasured: u8,
    /// Where the sessions are written down, if they are.
    log: Option<Box<ShardLog>>,
}

/// Whether the loop goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    Stopping,
}

/// What a shard shares with other threads.
pub(crate) struct Shared {
    pub(crate) admission: Arc<Admission>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) figures: Arc<ShardFigures>,
    pub(crate) producer: Option<Producer>,
    pub(crate) io_uring: bool,
    pub(crate) clock: Clock,
    pub(crate) left_parked: Arc<[ParkedGroup]>,
    pub(crate) handed: ForShard,
    pub(crate) log: Option<Arc<dyn SessionLog>>,
}

impl<M: Machine> EventLoop<M> {
    /// An event loop that is ready to run.
    pub(crate) fn new(
        machine: M,
        io: ShardIo,
        poll: Poll,
        mut listeners: Vec<Listener>,
        shared: Shared,
    ) -> io::Result<Self> {
        for (n, listener) in listeners.iter_mut().enumerate() {
            poll.registry().register(&mut listener.socket, special(n), Interest::READABLE)?;
        }
        for (n, descriptor) in io.quic.as_deref().into_iter().flat_map(Quic::descriptors).enumerate() {
            poll.registry().register(&mut SourceFd(&descriptor), special(UDP + n), Interest::READABLE)?;
        }
        let Shared { admission, inbox, figures, producer, io_uring, clock, left_parked, handed, log } =
            shared;
        let mut machine = machine;
        let log = log.map(|log| Box::new(ShardLog::new(io.place.shard, log)));
        if log.is_some() {
            // Until the engine is reached.
            machine.keep_log(false);
        }
        let mut effects = Effects::default();
        if let Some(producer) = &producer {
            producer.begin(&mut effects.journal, clock.now().unix);
        }
        Ok(EventLoop {
            machine,
            io,
            effects,
            reported: Vec::new(),
            poll,
            events: Events::with_capacity(EVENTS),
            listeners,
            spare: SpareDescriptor::new(),
            admission,
            refused_conns: RefusedConns::new(),
            silent_until: Mono(0),
            inbox,
            items: VecDeque::new(),
            figures,
            producer,
            io_uring,
            clock,
            now: clock.now(),
            phase: Phase::Running,
            walking: false,
            overloaded: false,
            unpublished: true,
            published: Mono(0),
            left_parked,
            handed,
            accepts: true,
            frozen: false,
            unmeasured: 0,
            log,
        })
    }

    /// Turns until it is told to stop.
    pub(crate) fn run(mut self) {
        if self.io_uring {
            // Only the thread that made a ring may use it.
            self.io.sends = SendBatch::by_ring();
        }
        // Before anybody's login is answered.
        let left_parked = std::mem::take(&mut self.left_parked);
        self.update_clock();
        self.restore(&left_parked);
        drop(left_parked);
        let handed = std::mem::take(&mut self.handed);
        self.take_over(handed);
        while self.phase == Phase::Running {
            self.turn();
        }
        self.stop();
    }

    /// One turn.
    pub(crate) fn turn(&mut self) {
        let timeout = self.timeout();
        if let Err(error) = self.poll.poll(&mut self.events, timeout)
            && error.kind() != ErrorKind::Interrupted
        {
            tracing::error!(%error, "the poll of a shard failed");
        }
        self.update_clock();
        let began = self.now.mono;
        // Before what clients say of what they have is read.
        self.io.look_at_hops();
        self.handle_readiness();
        if self.accepts {
            self.accept();
        }
        if !self.frozen {
            self.read_ready();
            self.read_quic();
        }
        self.flush_deferred();
        self.update_clock();
        self.handle_inbox();
        self.flush_deferred();
        self.update_clock();
        if !self.frozen {
            self.read_carried();
            self.run_due_timers();
        }
        self.walking = self.machine.walk(self.now, &mut self.effects);
        self.unpublished |= self.walking;
        self.run_effects();
        self.flush_quic();
        self.flush_deferred();
        self.io.outboxes.send();
        if let Some(producer) = &mut self.producer {
            producer.turn_ended(&mut self.effects.journal, self.now.mono);
        }
        if !self.effects.tape.is_empty() {
            self.give_tape();
        }
        self.publish_if_due();
        let took_ms = self.clock.mono().since(began);
        self.overloaded = took_ms >= OVERLOADED_MS;
        if self.overloaded {
            self.figures.flight.slow_turn(began, took_ms);
        }
    }

    fn update_clock(&mut self) {
        self.now = self.clock.now();
        self.io.mono = self.now.mono;
    }

    /// Whether the present part of the turn has used up its time.
    fn is_late(&self) -> bool {
        self.clock.mono().since(self.now.mono) >= PART_MS
    }

    /// Notes which sockets can be read, and writes the queues of those that can be written.
    fn handle_readiness(&mut self) {
        self.unpublished |= !self.events.is_empty();
        for event in &self.events {
            let Some(id) = conn_of(event.token()) else {
                match event.token().0 & 0xff {
                    WAKER => {}
                    UDP.. => self.io.quic.iter_mut().for_each(|quic| quic.edge()),
                    n => self.listeners.get_mut(n).into_iter().for_each(Listener::edge),
                }
                continue;
            };
            if event.is_writable() {
                self.io.writable(id);
            }
            let ended = event.is_read_closed() || event.is_error();
            if (ended || event.is_readable())
                && let Some(conn) = self.io.conns.get_mut(id)
            {
                conn.readiness = if ended { Readiness::Ended } else { conn.readiness.max(Readiness::Ready) };
                self.io.schedule(id);
            }
        }
        self.run_effects();
    }

    /// Gives the core an input and carries out the effects.
    fn handle(&mut self, input: Input<'_>) {
        self.figures.flight.input(self.now.mono, &input);
        self.machine.handle(self.now, input, &mut self.effects);
        self.run_effects();
    }

    /// Carries out the core's effects, tells the core of the upcalls, and repeats while there are any. After some rounds
    /// the rest is left to the next turn: a client that reads a long backlog as fast as it is sent would never let the
    /// loop end.
    fn run_effects(&mut self) {
        for _ in 0..EFFECT_ROUNDS_MAX {
            self.carry_out();
            if self.io.upcalls.is_empty() {
                return;
            }
            std::mem::swap(&mut self.reported, &mut self.io.upcalls);
            for upcall in self.reported.drain(..) {
                if let Upcall::Overflowed(id, QueueBound::Own) = upcall
                    && let Some(conn) = self.io.conns.get_mut(id)
                {
                    conn.send_queue.overflow_reported();
                }
                if !self.io.relay_upcall(upcall) {
                    let input = upcall.input();
                    self.figures.flight.input(self.now.mono, &input);
                    self.machine.handle(self.now, input, &mut self.effects);
                }
            }
        }
        self.carry_out();
    }

    /// Hands over what was deferred in this part of the turn.
    fn flush_deferred(&mut self) {
        self.io.flush_deferred();
        self.effects.watched = self.io.watchers.states();
        self.effects.events_watched = self.io.watchers.follow_events();
    }

    /// Handles the deadlines that are due: the server's and the core's.
    fn run_due_timers(&mut self) {
        self.io.expire();
        self.run_quic_timers();
        if self.machine.next_wake().is_some_and(|at| at <= self.now.mono) {
            self.unpublished = true;
            self.handle(Input::Tick);
        }
    }

    /// How long the poll may sleep.
    fn timeout(&mut self) -> Option<Duration> {
        let now = self.clock.mono();
        let held_back = self.io.outboxes.is_held_back();
        let busy = self.walking
            || !self.io.upcalls.is_empty()
            || !self.items.is_empty()
            || (!self.frozen && self.io.cell.carried.is_ready())
            || (!held_back && !self.frozen && !self.io.ready.is_empty())
            || (!held_back && !self.frozen && self.io.quic.as_deref().is_some_and(Quic::is_busy))
            || (self.accepts && self.listeners.iter_mut().any(|listener| listener.is_ready(now)));
        if busy || !self.inbox.sleep() {
            return Some(Duration::ZERO);
        }
        let due = [
            self.machine.next_wake().filter(|_| !self.frozen),
            self.io.deadlines.next().filter(|_| !self.frozen),
            self.io.quic.as_deref().and_then(Quic::due).filter(|_| !self.frozen),
            self.io.hops.due(),
            self.listeners.iter().filter_map(Listener::retry_at).min().filter(|_| self.accepts),
            self.refused_conns.due(),
            self.unpublished.then(|| self.published.plus(PUBLISH_MS)),
            // The shard that is behind does not announce that it has caught up.
            held_back.then(|| now.plus(1)),
            self.producer.as_ref().and_then(Producer::due),
        ];
        due.into_iter().flatten().min().map(|at| Duration::from_millis(at.since(now)))
    }

    fn publish_if_due(&mut self) {
        if self.unpublished && self.now.mono.since(self.published) >= PUBLISH_MS {
            self.publish();
        }
    }

    fn publish(&mut self) {
        self.io.cell.count(self.io.place.shard, &mut self.io.counters);
        // If another thread is reading them, the next turn publishes them.
        if self.figures.publish(&self.io.counters, self.machine.counters()) {
            self.unpublished = false;
        }
        self.published = self.now.mono;
    }
}

/// The number of the first socket of UDP among the tokens that name no connection; listeners are numbered from 0.
const UDP: usize = 0x80;
/// The waker's.
pub(crate) const WAKER: usize = 0xff;
/// How long a part of a turn may take, if it consists of many pieces: several times a slice of a fan-out.
const PART_MS: u64 = 4;
/// A turn that takes this long delays open sessions.
const OVERLOADED_MS: u64 = 20;
/// Events taken from the poll at once.
const EVENTS: usize = 1024;
/// How many rounds of effects and upcalls run before the next part of the turn.
const EFFECT_ROUNDS_MAX: usize = 8;
/// The least time between two publications of the figures.
const PUBLISH_MS: u64 = 100;
