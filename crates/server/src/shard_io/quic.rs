//! Between connections of QUIC and the core: what happened to them, and what the core wants done.

use super::{ShardIo, Upcall};
use crate::channels::inbox::InboxItem;
use crate::listen::Admission;
use crate::listener_tls::ListenerTls;
use crate::metrics::IoCounters;
use crate::quic::{Around, Key, Quic, QuicConn, QuicItem, Read, Written};
use bytes::Bytes;
use carillon_core::Effect;
use carillon_core::connection::{Joining, QueueBound};
use carillon_core::model::{ConnId, Mono, Place};
use quinn_proto::{Event, StreamEvent};
use std::sync::Arc;
use std::time::Instant;

/// Something that the core is to be told.
pub(crate) enum QuicStep {
    /// A player's connection is there.
    Opened {
        /// Its name.
        id: ConnId,
        /// Whether its client takes datagrams.
        datagrams: bool,
    },
    /// Bytes of its stream came.
    Bytes(ConnId, Bytes),
    /// A datagram came.
    Datagram(ConnId, Bytes),
    /// The client ended its stream: it has left.
    Ended(ConnId),
    /// Nothing; there may be upcalls.
    Told,
}

impl ShardIo {
    /// QUIC and what is around it.
    pub(crate) fn quic<'a>(
        &'a mut self,
        admission: &'a Arc<Admission>,
        accepts: bool,
    ) -> Option<(&'a mut Quic, Around<'a>)> {
        let quic = self.quic.as_deref_mut()?;
        let counters = &mut self.counters;
        Some((quic, Around { counters, admission, accepts, now: Instant::now() }))
    }

    /// Uses these settings of TLS for new connections.
    pub(crate) fn set_tls(&mut self, tls: Arc<ListenerTls>) {
        if let (Some(quic), Some((_, server))) = (self.quic.as_deref_mut(), tls.quic()) {
            quic.set_server(Arc::clone(server));
        }
        self.tls = tls;
    }

    /// Gives to other shards what QUIC has for them.
    pub(crate) fn pass_on_quic(&mut self) {
        let Some(quic) = self.quic.as_deref_mut() else { return };
        for (to, item) in quic.passed.drain(..) {
            self.outboxes.add(to, InboxItem::Quic(Box::new(item)));
        }
    }

    /// A connection to drive: something happened to it.
    pub(crate) fn quic_next(&mut self) -> Option<Key> {
        let quic = self.quic.as_deref_mut()?;
        let key = quic.to_drive.pop()?;
        if let Some(conn) = quic.conns.get_mut(&key) {
            conn.touched.0 = false;
        }
        Some(key)
    }

    /// The next thing that happened to a connection; none if that was all.
    pub(crate) fn quic_step(&mut self, key: Key) -> Option<QuicStep> {
        let ShardIo { quic, conns, counters, upcalls, .. } = self;
        let quic = quic.as_deref_mut()?;
        let conn = quic.conns.get_mut(&key)?;
        if let Some(id) = conn.id
            && let Some(step) = read(conn, id, counters)
        {
            return Some(step);
        }
        let now = Instant::now();
        let mut is_over = false;
        match conn.inner.poll()? {
            Event::Connected => {
                conn.opened();
                counters.handshakes += 1;
                let (id, datagrams) = (conns.reserve(), conn.has_datagrams());
                conn.id = Some(id);
                quic.keys.insert(id, key);
                return Some(QuicStep::Opened { id, datagrams });
            }
            Event::Stream(StreamEvent::Opened { .. }) => conn.accept_stream(),
            Event::Stream(StreamEvent::Readable { .. }) => conn.readable(),
            Event::Stream(StreamEvent::Writable { .. }) => {
                if conn.writable()
                    && let Some(id) = conn.id
                {
                    upcalls.push(Upcall::Flushed(id));
                }
            }
            Event::Stream(StreamEvent::Finished { .. }) => conn.finished(now),
            // A client that does not read has left.
            Event::Stream(StreamEvent::Stopped { .. }) => {
                conn.close(0, now);
                is_over = true;
            }
            Event::ConnectionLost { reason } => {
                tracing::debug!(%reason, "a connection of QUIC ended");
                conn.lost();
                is_over = true;
            }
            Event::HandshakeDataReady
            | Event::DatagramReceived
            | Event::DatagramsUnblocked
            | Event::Stream(StreamEvent::Available { .. }) => {}
        }
        if is_over && let Some(id) = conn.id {
            conn.id = None;
            quic.keys.remove(&id);
            conns.release(id);
            upcalls.push(Upcall::Closed(id, 0));
        }
        Some(QuicStep::Told)
    }

    /// Carries out an effect, if it is about a connection of QUIC; else returns it.
    pub(crate) fn carry_out_quic(&mut self, effect: Effect, bytes: &[u8]) -> Option<Effect> {
        let id = match &effect {
            Effect::Send { conn, .. }
            | Effect::Datagram { conn, .. }
            | Effect::Pause { conn }
            | Effect::Resume { conn }
            | Effect::WatchFlush { conn }
            | Effect::Close { conn }
            | Effect::MovePlayer { conn, .. } => *conn,
            _ => return Some(effect),
        };
        let Some((key, quic)) = self.quic.as_deref_mut().and_then(|quic| Some((*quic.keys.get(&id)?, quic)))
        else {
            return Some(effect);
        };
        match effect {
            // It may have something that it was not given.
            Effect::Resume { .. } => quic.touch(key),
            _ => quic.has_to_send(key),
        }
        let conn = quic.conns.get_mut(&key)?;
        match effect {
            Effect::Send { range, .. } => self.send_quic(id, key, &bytes[range]),
            Effect::Datagram { range, .. } => {
                let bytes = &bytes[range];
                if conn.write_datagram(bytes) {
                    self.counters.quic.datagrams_out += 1;
                    self.counters.bytes_out += bytes.len() as u64;
                } else {
                    self.counters.quic.fallbacks += 1;
                    self.send_quic(id, key, bytes);
                }
            }
            Effect::Pause { .. } => conn.paused = true,
            Effect::Resume { .. } => conn.paused = false,
            Effect::WatchFlush { .. } => {
                if conn.watch() {
                    self.upcalls.push(Upcall::Flushed(id));
                }
            }
            Effect::Close { .. } => self.close_quic(id),
            Effect::MovePlayer { to, joining, .. } => self.move_quic(id, to, joining),
            other => return Some(other),
        }
        None
    }

    fn send_quic(&mut self, id: ConnId, key: Key, bytes: &[u8]) {
        let bound = self.out_queues.each_bytes;
        let Some(conn) = self.quic.as_deref_mut().and_then(|quic| quic.conns.get_mut(&key)) else { return };
        match conn.write(bytes, bound) {
            Written::Taken => self.counters.bytes_out += bytes.len() as u64,
            Written::Overflowed { first: false } => {}
            Written::Overflowed { first: true } => {
                self.counters.overflows += 1;
                self.upcalls.push(Upcall::Overflowed(id, QueueBound::Own));
            }
        }
    }

    /// Closes a connection. For the core it is gone at once.
    pub(crate) fn close_quic(&mut self, id: ConnId) {
        let until = self.mono.plus(self.settings.timeouts.close_ms);
        let Some(quic) = self.quic.as_deref_mut() else { return };
        let Some(key) = quic.keys.remove(&id) else { return };
        if let Some(conn) = quic.conns.get_mut(&key) {
            conn.leave(until, Instant::now());
        }
        quic.has_to_send(key);
        self.conns.release(id);
        self.upcalls.push(Upcall::Closed(id, 0));
    }

    /// Gives a connection to the shard of its match.
    fn move_quic(&mut self, id: ConnId, to: Place, joining: Box<Joining>) {
        let Some(quic) = self.quic.as_deref_mut() else { return };
        let Some(key) = quic.keys.remove(&id) else { return };
        self.conns.release(id);
        let Some(mut conn) = quic.conns.remove(&key) else { return };
        conn.id = None;
        (conn.touched, conn.wake) = ((false, false), Mono(u64::MAX));
        if key.shard == self.place.shard {
            quic.away.insert(key.handle, to);
        }
        self.counters.quic.connections -= 1;
        self.counters.quic.moved += 1;
        self.outboxes.add(to, InboxItem::Quic(Box::new(QuicItem::Arrival { key, conn, joining })));
    }

    /// Takes a connection that moves here, and names it.
    pub(crate) fn adopt_quic(&mut self, key: Key, mut conn: Box<QuicConn>) -> Option<ConnId> {
        let quic = self.quic.as_deref_mut()?;
        let id = self.conns.reserve();
        conn.id = Some(id);
        // Whatever it waited for at the other shard, it does not wait for it here.
        conn.paused = false;
        quic.keys.insert(id, key);
        quic.conns.insert(key, conn);
        quic.touch(key);
        self.counters.quic.connections += 1;
        Some(id)
    }
}

/// What a connection has for the core: first of the stream, which has what takes the seat.
fn read(conn: &mut QuicConn, id: ConnId, counters: &mut IoCounters) -> Option<QuicStep> {
    if conn.paused {
        // What may be lost is lost; the stream waits.
        while conn.datagram().is_some() {
            counters.quic.datagrams_dropped += 1;
        }
        return None;
    }
    match conn.read() {
        Read::Bytes(bytes) => {
            counters.bytes_in += bytes.len() as u64;
            return Some(QuicStep::Bytes(id, bytes));
        }
        Read::End => return Some(QuicStep::Ended(id)),
        Read::Nothing => {}
    }
    let datagram = conn.datagram()?;
    counters.quic.datagrams_in += 1;
    counters.bytes_in += datagram.len() as u64;
    Some(QuicStep::Datagram(id, datagram))
}
