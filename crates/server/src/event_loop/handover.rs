//! The sessions of the shard on their way to another process, with their connections, or back.

use super::EventLoop;
use crate::cell::EdgeInput;
use crate::conn::{Conn, Stage};
use crate::handover::{
    ForShard, Handed, HandedConn, HandedFar, HandedPart, HandedSink, HandedSocket, LeftFar, LeftRelay,
    ShardHandover, TakenOver, TakenRelay, system_ms,
};
use crate::machine::Machine;
use crate::node::parked::GROUP_BYTES;
use crate::shard_io::Upcall;
use carillon_core::machine::{self, Restored};
use carillon_core::model::ConnId;
use socket2::{Domain, Socket, Type};
use std::io;

impl<M: Machine> EventLoop<M> {
    /// What is under way here: answers of the store, deliveries, messages for other shards, what waits for the log of sessions.
    pub(super) fn awaited(&self) -> usize {
        self.machine.awaited()
            + self.items.len()
            + self.io.upcalls.len()
            + usize::from(self.walking)
            + usize::from(self.io.outboxes.is_held_back())
            + self.log.as_ref().map_or(0, |log| log.awaited())
    }

    /// Takes the sessions out of the core, group by group, with their connections; in a cell first what there is for other nodes.
    pub(super) fn hand_over(&mut self, sink: &HandedSink) {
        self.rest_log();
        if self.io.cell.bus.is_some() && sink.send(ShardHandover::Far(Box::new(self.give_far()))).is_err() {
            return tracing::error!("nobody takes the sessions that are handed over");
        }
        while let Some(group) = self.machine.hand_over(self.now, GROUP_BYTES, &mut self.effects) {
            self.run_effects();
            let conns = group.conns.into_iter().map(|id| self.give(id)).collect();
            let part = HandedPart {
                shard: self.io.place.shard.0,
                bytes: group.bytes,
                sessions: group.sessions,
                written_ms: system_ms(),
                conns,
            };
            // Whoever asked waits for the last group.
            if sink.send(ShardHandover::Group(part)).is_err() {
                tracing::error!("nobody takes the sessions that are handed over");
                return;
            }
        }
        self.unpublished = true;
    }

    /// Takes out the connection of a session, wherever its socket is.
    fn give(&mut self, id: ConnId) -> Option<HandedConn> {
        if let Some(far) = self.io.cell.carried.take(id) {
            self.io.conns.release(id);
            return Some(HandedConn::Far(far));
        }
        let here = handed(self.io.detach(id))?;
        Some(HandedConn::Here(Box::new(here)))
    }

    /// Takes out what is for other nodes, and connections whose sessions are there.
    fn give_far(&mut self) -> HandedFar {
        let shard = self.io.place.shard;
        let left = LeftFar {
            generation: self.io.conns.generation(),
            held: self.machine.held_accounts(),
            unsettled: self.io.cell.unsettled.leave(shard),
        };
        let mut relays = Vec::new();
        for (id, relay) in self.io.cell.relays.take_all() {
            let is_open = self.io.conns.get_mut(id).is_some_and(|conn| conn.stage == Stage::Open);
            match is_open.then(|| handed(self.io.detach(id))).flatten() {
                Some(conn) => relays.push((LeftRelay { id, relay }, conn)),
                // It is being closed, or cannot go along: its session is told that it is gone.
                None => self.io.tell_home(id, relay.home, EdgeInput::Closed(u64::MAX)),
            }
        }
        HandedFar { shard: shard.0, left, relays }
    }

    /// Takes sessions back that were handed over in vain.
    pub(super) fn take_back(&mut self, given: Vec<ShardHandover>) {
        for given in given {
            let HandedPart { bytes, written_ms, conns, .. } = match given {
                ShardHandover::Group(part) => part,
                ShardHandover::Far(far) => {
                    let HandedFar { left, relays, .. } = *far;
                    let taken = |(LeftRelay { id, relay }, here): (LeftRelay, HandedSocket)| TakenRelay {
                        id,
                        relay,
                        conn: here.conn,
                        awaits_flush: false,
                    };
                    let relays = relays.into_iter().map(taken).collect();
                    self.take_over(ForShard { far: Some(left), relays, ..ForShard::default() });
                    continue;
                }
            };
            let elapsed_ms = system_ms().saturating_sub(written_ms);
            let machine::Handed { sessions, traces } =
                match machine::Handed::read(&bytes, self.now.mono, elapsed_ms) {
                    Ok(handed) => handed,
                    Err(error) => {
                        tracing::error!(%error, "sessions that were not handed over cannot be read");
                        continue;
                    }
                };
            let mut conns = conns.into_iter();
            let handed = sessions.into_iter().map(|session| {
                let conn = session.is_connected().then(|| conns.next().flatten()).flatten();
                let conn = conn.map(|handed| match handed {
                    HandedConn::Here(here) => TakenOver::Here(Box::new(here.conn)),
                    HandedConn::Far(far) => TakenOver::Far(far),
                });
                Handed { session, conn, awaits_flush: false }
            });
            let sessions = handed.collect();
            self.take_over(ForShard { traces, sessions, ..ForShard::default() });
        }
        self.wake_log();
    }

    /// Goes on with what the shard of the process before had for and of other nodes. Connections keep their names: they come before all others.
    fn take_over_far(&mut self, left: LeftFar, relays: Vec<TakenRelay>) {
        let LeftFar { generation, held, unsettled } = left;
        self.io.conns.go_on_from(generation);
        self.io.cell.unsettled.go_on(self.io.place.shard, unsettled);
        self.machine.hold_accounts(self.now, &held, &mut self.effects);
        for TakenRelay { id, relay, conn, awaits_flush } in relays {
            let home = relay.home;
            match self.io.attach_at(id, conn) {
                Ok(()) => {
                    self.io.cell.relays.put(id, relay);
                    if awaits_flush {
                        self.io.upcalls.push(Upcall::Flushed(id));
                    }
                    self.io.release_held(id);
                    self.io.schedule(id);
                }
                Err(error) => {
                    tracing::error!(%error, "cannot watch a socket that was handed over");
                    self.io.tell_home(id, home, EdgeInput::Closed(u64::MAX));
                }
            }
        }
        self.run_effects();
    }

    /// Has the core go on with sessions, and reads and writes their connections again.
    pub(super) fn take_over(&mut self, handed: ForShard) {
        let ForShard { traces, sessions: all, far, relays } = handed;
        if let Some(left) = far {
            self.take_over_far(left, relays);
        }
        if all.is_empty() && traces.is_empty() {
            return;
        }
        let count = all.len();
        let (mut sessions, mut conns) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for Handed { session, conn, awaits_flush } in all {
            let id = conn.and_then(|conn| match conn {
                TakenOver::Here(conn) => match self.io.attach(*conn) {
                    Ok(id) => Some(id),
                    Err(error) => {
                        tracing::error!(%error, "cannot watch a socket that was handed over");
                        None
                    }
                },
                TakenOver::Far(far) => Some(self.io.carry_on(far)),
            });
            conns.extend(id.map(|id| (id, awaits_flush)));
            sessions.push((session, id));
        }
        let is_same_node = self.io.cell.bus.is_some();
        let taken = self.machine.take_over(self.now, is_same_node, traces, sessions, &mut self.effects);
        self.run_effects();
        for (id, awaits_flush) in conns {
            if awaits_flush {
                self.io.upcalls.push(Upcall::Flushed(id));
            }
            self.io.release_held(id);
            // No edge announces the decrypted bytes that came along.
            self.io.schedule(id);
        }
        self.run_effects();
        self.unpublished = true;
        let Restored { restored, expired, refused, elsewhere } = taken;
        if restored as usize != count {
            tracing::info!(
                shard = self.io.place.shard.0,
                sessions = count,
                restored,
                expired,
                refused,
                elsewhere,
                "taken over"
            );
        }
    }
}

/// A connection that is given away; one whose record layer stays is relayed.
fn handed(conn: Option<Conn>) -> Option<HandedSocket> {
    let conn = conn?;
    if !conn.must_be_relayed() {
        return Some(HandedSocket { conn, relay: None });
    }
    match pair() {
        Ok(relay) => Some(HandedSocket { conn, relay: Some(relay) }),
        Err(error) => {
            tracing::error!(%error, "a connection under TLS 1.2 cannot be relayed");
            None
        }
    }
}

fn pair() -> io::Result<(Socket, Socket)> {
    let (ours, theirs) = Socket::pair(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)?;
    Ok((ours, theirs))
}
