//! Carrying out the core's effects, in their order.

use crate::cell::Record;
use crate::channels::inbox::{Arrival, InboxItem, Moving};
use crate::conn::{Protocol, ReadFlow, SendOutcome, Sent, Stage};
use crate::shard_io::{ShardIo, Upcall};
use carillon_core::connection::QueueBound;
use carillon_core::model::{ConnId, HopStep, Place};
use carillon_core::{Effect, Effects};
use carillon_wire::frame::websocket::{encode_binary, encode_text};
use std::iter::Peekable;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::vec::Drain;

impl ShardIo {
    /// Carries out all effects and empties `effects`.
    pub(crate) fn carry_out(&mut self, effects: &mut Effects) {
        let Effects { list, bytes, .. } = effects;
        let mut list = list.drain(..).peekable();
        while let Some(mut effect) = list.next() {
            if ends_batch(&effect) {
                self.send_batch();
            }
            if !self.cell.carried.is_empty() {
                match self.carry_out_far(effect, bytes, &mut list) {
                    Some(other) => effect = other,
                    None => continue,
                }
            }
            if self.quic.as_deref().is_some_and(|quic| !quic.is_idle()) {
                match self.carry_out_quic(effect, bytes) {
                    Some(other) => effect = other,
                    None => continue,
                }
            }
            match effect {
                Effect::Send { conn, range } | Effect::Datagram { conn, range } => {
                    self.send_run(conn, range, bytes, &mut list);
                }
                Effect::Secure { conn } => self.secure(conn),
                Effect::Pause { conn } => {
                    if let Some(conn) = self.conns.get_mut(conn) {
                        conn.flow = ReadFlow::Paused;
                    }
                }
                Effect::Resume { conn } => {
                    if let Some(conn) = self.conns.get_mut(conn) {
                        conn.flow = ReadFlow::Open;
                    }
                    self.schedule(conn);
                }
                Effect::WatchFlush { conn } => self.watch_flush(conn),
                Effect::CountUnacked { conn, sent } => self.count_unacked(conn, sent),
                // 1000: a normal end.
                Effect::Close { conn } => self.close(conn, 1000),
                Effect::Move { conn, to, moving } if to.node != self.place.node => {
                    self.relay(conn, to, *moving);
                }
                Effect::Move { conn, to, moving } => self.move_to_shard(conn, to, Moving::Client(moving)),
                Effect::MovePlayer { conn, to, joining } => {
                    self.move_to_shard(conn, to, Moving::Player(joining));
                }
                Effect::Post { to, message } if to.node != self.place.node => {
                    self.post_message_far(to, message);
                }
                Effect::Post { to, message } => self.outboxes.add(to, InboxItem::ShardMessage(message)),
                Effect::PostAll { to, message } => self.post_far(to, &Record::MessageToAll(message)),
                Effect::Ask { ticket, ask } => self.ask(ticket, ask),
                Effect::Derive { ticket, derivation } => {
                    let inbox = Arc::clone(&self.outboxes.inboxes[usize::from(self.place.shard.0)]);
                    self.derivers.derive(ticket, derivation, inbox);
                }
                Effect::Reply { to, outcome } if to.node != self.place.node => {
                    self.post_far(to.node, &Record::Outcome { to, outcome });
                }
                Effect::Reply { to, outcome } => self.deferred.reply(to, outcome),
                Effect::Hop(hop) => self.hop(*hop),
                Effect::StateChange(change) => self.deferred.notify(change),
                Effect::EventStored => self.deferred.note_event(),
            }
        }
        drop(list);
        self.send_batch();
        effects.clear();
    }

    /// Sends an element, and with it those that follow for the same connection: as one record and one part of the batch.
    fn send_run(
        &mut self,
        id: ConnId,
        first: Range<usize>,
        bytes: &[u8],
        list: &mut Peekable<Drain<'_, Effect>>,
    ) {
        if self.sends.is_full() || self.conns.get_mut(id).is_some_and(|conn| conn.staged) {
            self.send_batch();
        }
        let Some(conn) = self.conns.get_mut(id).filter(|conn| conn.stage == Stage::Open) else { return };
        let encode = match conn.protocol {
            Protocol::WebSocket(_) => Some(encode_text as fn(&mut Vec<u8>, &[u8])),
            Protocol::PlayerSocket(_) => Some(encode_binary as fn(&mut Vec<u8>, &[u8])),
            _ => None,
        };
        let frames = &mut self.scratch.framed;
        frames.clear();
        if let Some(encode) = encode {
            encode(frames, &bytes[first.clone()]);
        }
        let mut run = first;
        while let Some(range) = next_of_run(id, &run, list) {
            if let Some(encode) = encode {
                encode(frames, &bytes[range.clone()]);
            }
            run.end = range.end;
        }
        let data = if encode.is_some() { &frames[..] } else { &bytes[run] };
        let start = self.sends.bytes().len();
        match conn.seal(data, self.out_queues.each_bytes, self.sends.bytes()) {
            Ok(Sent { outcome, watched }) => {
                match outcome {
                    SendOutcome::Taken => {
                        self.counters.bytes_out += data.len() as u64;
                        if self.sends.bytes().len() > start {
                            conn.staged = true;
                            self.sends.add(id, conn.socket.as_raw_fd(), start);
                        }
                    }
                    SendOutcome::Overflowed { first: false } => {}
                    SendOutcome::Overflowed { first: true } => {
                        self.counters.overflows += 1;
                        self.upcalls.push(Upcall::Overflowed(id, QueueBound::Own));
                    }
                }
                if watched {
                    self.upcalls.push(Upcall::Flushed(id));
                }
                self.recount(id);
            }
            Err(error) => {
                self.sends.bytes().truncate(start);
                self.fail(id, &error);
            }
        }
    }

    /// Sends the batch.
    fn send_batch(&mut self) {
        let sends = self.sends.len() as u64;
        if sends == 0 {
            return;
        }
        let together = self.sends.send();
        self.counters.sends += sends;
        self.counters.send_calls += if together { 1 } else { sends };
        while let Some((id, taken, bytes)) = self.sends.next() {
            let Some(conn) = self.conns.get_mut(id) else { continue };
            conn.staged = false;
            let written = match taken {
                Ok(all) if all == bytes.len() => continue,
                // Not sent yet, or not wholly. If the socket is full, this write finds out, too.
                Ok(some) => conn.write(&bytes[some..]),
                Err(error) => Err(error),
            };
            match written {
                Ok(()) => self.recount(id),
                Err(_) => self.drop_conn(id),
            }
        }
        self.sends.clear();
    }

    /// Begins the TLS handshake. What is queued goes out in the clear, before the handshake's answer.
    fn secure(&mut self, id: ConnId) {
        let transport = self.start_handshake(crate::listen::Service::StartTls);
        if let Some(conn) = self.conns.get_mut(id) {
            conn.transport = transport;
        }
    }

    fn watch_flush(&mut self, id: ConnId) {
        let open = self.conns.get_mut(id).filter(|conn| conn.stage == Stage::Open);
        if open.is_some_and(|conn| conn.send_queue.watch()) {
            self.upcalls.push(Upcall::Flushed(id));
        }
    }

    /// Counts the bytes that a connection's peer has not acknowledged. If the connection is gone, the core hears of that
    /// anyway.
    fn count_unacked(&mut self, id: ConnId, sent: u32) {
        if self.conns.get_mut(id).is_some_and(|conn| conn.staged) {
            self.send_batch();
        }
        if let Some(conn) = self.conns.get_mut(id).filter(|conn| conn.stage == Stage::Open) {
            let bytes = conn.unacked();
            self.upcalls.push(Upcall::Unacked(id, bytes, sent));
        }
    }

    /// Moves a connection to another shard of this node. If it is gone meanwhile, so is who moves.
    fn move_to_shard(&mut self, id: ConnId, to: Place, moving: Moving) {
        if self.conns.get_mut(id).is_some_and(|conn| conn.stage == Stage::Open)
            && let Some(mut conn) = self.detach(id)
        {
            // What was decrypted and not given to the core moves along.
            conn.keep_plain(self.plaintext.unread_of(id));
            self.outboxes.add(to, InboxItem::Arrival(Box::new(Arrival { conn, moving })));
        }
    }
}

/// Whether an effect depends on what was sent before: then the batch is sent first.
fn ends_batch(effect: &Effect) -> bool {
    match effect {
        Effect::Secure { .. }
        | Effect::WatchFlush { .. }
        | Effect::Close { .. }
        | Effect::Move { .. }
        | Effect::MovePlayer { .. } => true,
        Effect::Hop(hop) => matches!(hop.step, HopStep::Written { .. }),
        Effect::Send { .. }
        | Effect::Datagram { .. }
        | Effect::CountUnacked { .. }
        | Effect::Pause { .. }
        | Effect::Resume { .. }
        | Effect::Post { .. }
        | Effect::PostAll { .. }
        | Effect::Derive { .. }
        | Effect::Ask { .. }
        | Effect::Reply { .. }
        | Effect::StateChange(_)
        | Effect::EventStored => false,
    }
}

/// The bytes of the next effect, if it sends to the same connection and the record has room.
fn next_of_run(
    id: ConnId,
    run: &Range<usize>,
    list: &mut Peekable<Drain<'_, Effect>>,
) -> Option<Range<usize>> {
    let follows = |effect: &Effect| match effect {
        Effect::Send { conn, range } => {
            *conn == id && range.start == run.end && range.end - run.start <= RUN_BYTES_MAX
        }
        _ => false,
    };
    match list.next_if(follows)? {
        Effect::Send { range, .. } => Some(range),
        _ => None,
    }
}

/// Bytes of a run: those of one record, and the most by which the empty queue of a full socket grows.
const RUN_BYTES_MAX: usize = 16 * 1024;

#[cfg(test)]
mod programs;
#[cfg(test)]
mod tests;
