//! QUIC (RFC 9000) for the players of matches, in the event loop of a shard.
//!
//! `quinn-proto` is a state machine: packets and time go in, packets and events come out. A shard has an endpoint, which knows the
//! connections by their ids, and the connections themselves. Their ids name the shard ([`cid`]), so that each packet finds it from
//! whatever address it comes, by the kernel ([`steer`]) or, where another shard received it, by the inbox.
//!
//! ```text
//!  UDP ─► Received ─► cid::shard_of ─► Endpoint ─► Connection ─► QuicStep ─► the core     (the way in)
//!  UDP ◄─ flush ◄──────────────────────────────── Connection ◄─ effects ◄─ the core     (the way out)
//! ```
//!
//! A player whose match is on another shard moves there: the connection with its keys and streams. Its endpoint stays, and passes on what
//! comes for it; what the connection sends, it sends by the socket of its new shard.
//!
//! Nothing is kept for a client before it has shown that it receives what is sent to its address: the first packet is answered by a
//! Retry (RFC 9000 §8.1.2).

mod cid;
mod conn;
mod drive;
mod settings;
mod socket;
mod steer;
#[cfg(test)]
mod tests;

pub(crate) use conn::QuicConn;
pub(crate) use drive::QuicStep;
pub(crate) use settings::QuicKeys;
pub(crate) use steer::steer;

use crate::clock::Clock;
use crate::inbox::InboxItem;
use crate::listen::{Admission, Refusal};
use crate::metrics::IoCounters;
use crate::shard_io::Outboxes;
use bytes::BytesMut;
use carillon_core::connection::Joining;
use carillon_core::model::{ConnId, Mono, Place, ShardId};
use hashbrown::HashMap;
use quinn_proto::{
    ConnectionEvent, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, EndpointEvent, Incoming,
    ServerConfig, Transmit,
};
use socket::{Received, UdpSocket};
use socket2::Socket;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Instant;

/// A connection, as all shards know it: the shard whose endpoint it is of, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    shard: ShardId,
    handle: usize,
}

/// QUIC on a shard.
pub(crate) struct Quic {
    place: Place,
    shards: u16,
    clock: Clock,
    endpoint: Endpoint,
    sockets: Vec<UdpSocket>,
    received: Received,
    /// A socket may have packets.
    is_readable: bool,
    /// A packet that is sent.
    packet: Vec<u8>,
    /// The connections that are processed here.
    conns: HashMap<Key, Box<QuicConn>>,
    keys: HashMap<ConnId, Key>,
    /// Connections of this endpoint that are processed on another shard.
    away: HashMap<usize, Place>,
    to_drive: Vec<Key>,
    to_send: Vec<Key>,
    timers: BinaryHeap<Reverse<(Mono, Key)>>,
    /// No connection is accepted any more.
    refuses: bool,
    /// Connections that end do so at once.
    is_ending: bool,
}

/// A packet, and how it came.
pub(crate) struct Packet {
    via: u8,
    remote: SocketAddr,
    local: Option<IpAddr>,
    ecn: Option<EcnCodepoint>,
    bytes: BytesMut,
}

/// Something of QUIC for another shard.
pub(crate) enum QuicItem {
    /// A packet of a connection whose endpoint is there.
    Packet(Packet),
    /// A connection that is processed there is told something by its endpoint.
    ToConnection {
        /// The connection.
        key: Key,
        /// The socket that its client sends to, if a packet came.
        via: Option<u8>,
        /// What it is told.
        event: ConnectionEvent,
    },
    /// The endpoint is told something by a connection that is processed elsewhere.
    ToEndpoint {
        /// The connection.
        key: Key,
        /// What it is told.
        event: EndpointEvent,
    },
    /// A player and its connection move there.
    Arrival {
        /// The connection.
        key: Key,
        /// It.
        conn: Box<QuicConn>,
        /// What the player wants.
        joining: Box<Joining>,
    },
}

/// What is around it in a shard.
pub(crate) struct Around<'a> {
    pub(crate) outboxes: &'a mut Outboxes,
    pub(crate) counters: &'a mut IoCounters,
    pub(crate) admission: &'a Arc<Admission>,
    /// Whether connections are accepted now.
    pub(crate) accepts: bool,
    pub(crate) now: Instant,
}

impl QuicItem {
    /// Bytes that it takes in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            QuicItem::Packet(packet) => size_of::<QuicItem>() + packet.bytes.len(),
            QuicItem::ToConnection { .. } => size_of::<QuicItem>() + PACKET_BYTES,
            QuicItem::ToEndpoint { .. } | QuicItem::Arrival { .. } => size_of::<QuicItem>(),
        }
    }
}

impl Quic {
    /// QUIC on these sockets, one for each address.
    pub(crate) fn new(
        sockets: Vec<Socket>,
        (place, shards): (Place, u16),
        clock: Clock,
        keys: &QuicKeys,
        server: Arc<ServerConfig>,
    ) -> io::Result<Quic> {
        Ok(Quic {
            place,
            shards,
            clock,
            endpoint: Endpoint::new(keys.endpoint(place.shard), Some(server), false, None),
            sockets: sockets.into_iter().map(UdpSocket::new).collect::<io::Result<_>>()?,
            received: Received::new(),
            is_readable: false,
            packet: Vec::new(),
            conns: HashMap::new(),
            keys: HashMap::new(),
            away: HashMap::new(),
            to_drive: Vec::new(),
            to_send: Vec::new(),
            timers: BinaryHeap::new(),
            refuses: false,
            is_ending: false,
        })
    }

    /// Accepts connections by these settings from now on.
    pub(crate) fn set_server(&mut self, server: Arc<ServerConfig>) {
        self.endpoint.set_server_config(Some(server));
    }

    /// The sockets, to be watched.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.sockets.iter().map(UdpSocket::descriptor)
    }

    /// A socket has packets.
    pub(crate) fn edge(&mut self) {
        self.is_readable = true;
    }

    /// Whether there is something to do without waiting.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_readable || !self.to_drive.is_empty() || !self.to_send.is_empty()
    }

    /// When a timer of a connection is due.
    pub(crate) fn due(&self) -> Option<Mono> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// Whether the core knows no connection of QUIC.
    pub(crate) fn is_idle(&self) -> bool {
        self.keys.is_empty()
    }

    /// Receives packets, a bounded number of them.
    pub(crate) fn receive(&mut self, around: &mut Around<'_>) {
        if !self.is_readable {
            return;
        }
        let before = around.counters.quic.retried + around.counters.quic.accepted;
        let mut received = std::mem::replace(&mut self.received, Received::empty());
        self.is_readable = false;
        for via in 0..self.sockets.len() {
            for round in 0.. {
                match self.sockets[via].receive(&mut received) {
                    Ok(parts) => {
                        for (about, bytes) in received.packets(parts) {
                            let ecn = about.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8));
                            let packet = Packet {
                                via: via as u8,
                                remote: about.addr,
                                local: about.dst_ip,
                                ecn,
                                bytes: BytesMut::from(bytes),
                            };
                            self.packet(packet, around);
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // An address that a packet was sent to is not there: of some other packet.
                    Err(_) => {}
                }
                let begun = around.counters.quic.retried + around.counters.quic.accepted - before;
                if round + 1 == ROUNDS_PER_TURN || begun >= BEGUN_PER_TURN {
                    self.is_readable = true;
                    break;
                }
            }
        }
        self.received = received;
    }

    /// A packet came, here or at another shard.
    fn packet(&mut self, packet: Packet, around: &mut Around<'_>) {
        let Some(shard) = cid::shard_of(&packet.bytes, self.shards) else { return };
        if shard != self.place.shard {
            around.counters.quic.passed_on += 1;
            let to = Place { shard, ..self.place };
            return around.outboxes.add(to, InboxItem::Quic(Box::new(QuicItem::Packet(packet))));
        }
        around.counters.quic.packets_in += 1;
        let Packet { via, remote, local, ecn, bytes } = packet;
        let mut answer = std::mem::take(&mut self.packet);
        answer.clear();
        match self.endpoint.handle(around.now, remote, local, ecn, bytes, &mut answer) {
            None => {}
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                self.to_connection(self.own(handle), Some(via), event, around);
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.begin(incoming, via, &mut answer, around),
            Some(DatagramEvent::Response(transmit)) => self.send(via, &transmit, &answer, around.counters),
        }
        self.packet = answer;
    }

    fn own(&self, ConnectionHandle(handle): ConnectionHandle) -> Key {
        Key { shard: self.place.shard, handle }
    }

    fn send(&self, via: u8, transmit: &Transmit, packet: &[u8], counters: &mut IoCounters) {
        let Some(socket) = self.sockets.get(usize::from(via)) else { return };
        match packet.get(..transmit.size).is_some_and(|packet| socket.send(transmit, packet)) {
            true => counters.quic.packets_out += 1,
            false => counters.quic.packets_unsent += 1,
        }
    }

    /// A client wants to connect: it has to show that it has its address, and there must be room.
    fn begin(&mut self, incoming: Incoming, via: u8, answer: &mut Vec<u8>, around: &mut Around<'_>) {
        answer.clear();
        let address = incoming.remote_address().ip();
        if !around.accepts && !self.refuses {
            // It tries again soon, and finds the process that takes over.
            return self.endpoint.ignore(incoming);
        }
        if self.refuses {
            let transmit = self.endpoint.refuse(incoming, answer);
            return self.send(via, &transmit, answer, around.counters);
        }
        if !incoming.remote_address_validated() {
            around.counters.quic.retried += 1;
            if let Ok(transmit) = self.endpoint.retry(incoming, answer) {
                self.send(via, &transmit, answer, around.counters);
            }
            return;
        }
        let permit = match around.admission.admit(address, self.clock.mono_at(around.now)) {
            Ok(permit) => permit,
            Err(refusal) => {
                refused(refusal, around.counters);
                let transmit = self.endpoint.refuse(incoming, answer);
                return self.send(via, &transmit, answer, around.counters);
            }
        };
        match self.endpoint.accept(incoming, around.now, answer, None) {
            Ok((handle, inner)) => {
                around.counters.accepted += 1;
                around.counters.quic.accepted += 1;
                around.counters.quic.connections += 1;
                let key = self.own(handle);
                self.conns.insert(key, Box::new(QuicConn::new(inner, permit, via)));
                self.touch(key);
            }
            Err(error) => {
                if let Some(transmit) = error.response {
                    self.send(via, &transmit, answer, around.counters);
                }
            }
        }
    }

    /// Gives a connection what its endpoint has for it, wherever the connection is.
    fn to_connection(&mut self, key: Key, via: Option<u8>, event: ConnectionEvent, around: &mut Around<'_>) {
        if let Some(conn) = self.conns.get_mut(&key) {
            conn.via = via.unwrap_or(conn.via);
            conn.inner.handle_event(event);
            self.touch(key);
        } else if let Some(to) = self.away.get(&key.handle).filter(|_| key.shard == self.place.shard) {
            around.counters.quic.passed_on += u64::from(via.is_some());
            let item = QuicItem::ToConnection { key, via, event };
            around.outboxes.add(*to, InboxItem::Quic(Box::new(item)));
        }
    }

    /// Something came from another shard. A player who arrives is told to the core.
    pub(crate) fn item(
        &mut self,
        item: QuicItem,
        around: &mut Around<'_>,
    ) -> Option<(Key, Box<QuicConn>, Box<Joining>)> {
        match item {
            QuicItem::Packet(packet) => self.packet(packet, around),
            QuicItem::ToConnection { key, via, event } => self.to_connection(key, via, event, around),
            QuicItem::ToEndpoint { key, event } => {
                if event.is_drained() {
                    self.away.remove(&key.handle);
                }
                if let Some(event) = self.endpoint.handle_event(ConnectionHandle(key.handle), event) {
                    self.to_connection(key, None, event, around);
                }
            }
            QuicItem::Arrival { key, conn, joining } => return Some((key, conn, joining)),
        }
        None
    }

    /// Something happened to a connection: it is driven and sent.
    fn touch(&mut self, key: Key) {
        let Some(conn) = self.conns.get_mut(&key) else { return };
        if !std::mem::replace(&mut conn.touched.0, true) {
            self.to_drive.push(key);
        }
        self.has_to_send(key);
    }

    /// A connection has something to send.
    fn has_to_send(&mut self, key: Key) {
        let Some(conn) = self.conns.get_mut(&key) else { return };
        if !std::mem::replace(&mut conn.touched.1, true) {
            self.to_send.push(key);
        }
    }

    /// Has the timers run that are due.
    pub(crate) fn run_timers(&mut self, now: Instant) {
        let mono = self.clock.mono_at(now);
        while let Some(&Reverse((at, key))) = self.timers.peek()
            && at <= mono
        {
            self.timers.pop();
            let Some(conn) = self.conns.get_mut(&key).filter(|conn| conn.wake == at) else { continue };
            conn.wake = Mono(u64::MAX);
            if conn.leaves_at().is_some_and(|until| until <= mono) {
                conn.close(0, now);
            }
            conn.inner.handle_timeout(now);
            self.touch(key);
        }
    }

    /// Sends what connections have to send, and sets their timers.
    pub(crate) fn flush(&mut self, around: &mut Around<'_>) {
        let mut keys = std::mem::take(&mut self.to_send);
        for key in keys.drain(..) {
            self.flush_one(key, around);
        }
        if self.is_ending && self.conns.is_empty() {
            // Another process may have the same sockets, and is to have their packets.
            self.sockets.clear();
            self.is_readable = false;
        }
        // Those that were touched meanwhile are sent in the next turn.
        if self.to_send.is_empty() {
            self.to_send = keys;
        }
    }

    fn flush_one(&mut self, key: Key, around: &mut Around<'_>) {
        let Some(mut conn) = self.conns.remove(&key) else { return };
        conn.touched.1 = false;
        let mut is_drained = false;
        loop {
            self.transmit(&mut conn, around);
            let mut was_told = false;
            while let Some(event) = conn.inner.poll_endpoint_events() {
                is_drained |= event.is_drained();
                if let Some(event) = self.to_endpoint(key, event, around) {
                    conn.inner.handle_event(event);
                    was_told = true;
                }
            }
            if !was_told {
                break;
            }
        }
        if self.is_ending && !is_drained && conn.id.is_none() && !conn.touched.0 {
            // What it had to say is said: its client is told to come back, and nothing is waited for.
            conn.close(SHUTDOWN, around.now);
            self.transmit(&mut conn, around);
            self.to_endpoint(key, EndpointEvent::drained(), around);
            is_drained = true;
        }
        if is_drained {
            around.counters.quic.connections -= 1;
            return;
        }
        let due = conn.inner.poll_timeout().map(|at| self.clock.mono_at(at));
        let due = due.into_iter().chain(conn.leaves_at()).min();
        if let Some(due) = due.filter(|due| *due < conn.wake) {
            conn.wake = due;
            self.timers.push(Reverse((due, key)));
        }
        self.conns.insert(key, conn);
    }

    fn transmit(&mut self, conn: &mut QuicConn, around: &mut Around<'_>) {
        let mut packet = std::mem::take(&mut self.packet);
        loop {
            packet.clear();
            let Some(transmit) = conn.inner.poll_transmit(around.now, 1, &mut packet) else { break };
            self.send(conn.via, &transmit, &packet, around.counters);
        }
        self.packet = packet;
    }

    /// Tells the endpoint of a connection something, wherever that is.
    fn to_endpoint(
        &mut self,
        key: Key,
        event: EndpointEvent,
        around: &mut Around<'_>,
    ) -> Option<ConnectionEvent> {
        if key.shard == self.place.shard {
            return self.endpoint.handle_event(ConnectionHandle(key.handle), event);
        }
        let to = Place { shard: key.shard, ..self.place };
        around.outboxes.add(to, InboxItem::Quic(Box::new(QuicItem::ToEndpoint { key, event })));
        None
    }

    /// Accepts no connections any more.
    pub(crate) fn refuse(&mut self) {
        self.refuses = true;
    }

    /// Ends: connections that the core does not know, or has closed, are closed now.
    pub(crate) fn end(&mut self) {
        (self.refuses, self.is_ending) = (true, true);
        let keys: Vec<Key> = self.conns.keys().copied().collect();
        keys.into_iter().for_each(|key| self.touch(key));
    }
}

pub(crate) fn refused(refusal: Refusal, counters: &mut IoCounters) {
    tracing::debug!(reason = refusal.label(), "a connection was refused");
    counters.refusals[refusal.index()] += 1;
}

/// The code with which connections are closed when the node ends, which is that of the error (`ErrorCode::Shutdown`).
const SHUTDOWN: u32 = 14;
/// How often a socket is read in a turn.
const ROUNDS_PER_TURN: usize = 16;
/// Connections that are begun in a turn: a handshake takes as long as many packets of matches.
const BEGUN_PER_TURN: u64 = 16;
/// Bytes of a packet.
const PACKET_BYTES: usize = 1500;
