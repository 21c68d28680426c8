//! The sessions of the shard on their way to another process, with their connections, or back.

use super::EventLoop;
use crate::conn::Conn;
use crate::handover::{ForShard, Handed, HandedConn, HandedPart, HandedSink, system_ms};
use crate::machine::Machine;
use crate::parked::GROUP_BYTES;
use crate::shard_io::Upcall;
use carillon_core::machine::{self, Restored};
use socket2::{Domain, Socket, Type};
use std::io;

impl<M: Machine> EventLoop<M> {
    /// What is under way here: answers of the store, deliveries, messages for other shards.
    pub(super) fn awaited(&self) -> usize {
        self.machine.awaited()
            + self.items.len()
            + self.io.upcalls.len()
            + usize::from(self.walking)
            + usize::from(self.io.outboxes.is_held_back())
    }

    /// Takes the sessions out of the core, group by group, with their connections.
    pub(super) fn hand_over(&mut self, sink: &HandedSink) {
        while let Some(group) = self.machine.hand_over(self.now, GROUP_BYTES, &mut self.effects) {
            self.run_effects();
            let conns = group.conns.into_iter().map(|id| self.io.detach(id)).map(handed).collect();
            let part = HandedPart {
                shard: self.io.place.shard.0,
                bytes: group.bytes,
                sessions: group.sessions,
                written_ms: system_ms(),
                conns,
            };
            // Whoever asked waits for the last group.
            if sink.send(part).is_err() {
                tracing::error!("nobody takes the sessions that are handed over");
                return;
            }
        }
        self.unpublished = true;
    }

    /// Takes sessions back that were handed over in vain.
    pub(super) fn take_back(&mut self, parts: Vec<HandedPart>) {
        for HandedPart { bytes, written_ms, conns, .. } in parts {
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
                Handed { session, conn: conn.map(|handed| handed.conn), awaits_flush: false }
            });
            let sessions = handed.collect();
            self.take_over(ForShard { traces, sessions });
        }
    }

    /// Has the core go on with sessions, and reads and writes their connections again.
    pub(super) fn take_over(&mut self, ForShard { traces, sessions: all }: ForShard) {
        if all.is_empty() && traces.is_empty() {
            return;
        }
        let count = all.len();
        let (mut sessions, mut conns) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for Handed { session, conn, awaits_flush } in all {
            let id = conn.and_then(|conn| match self.io.attach(conn) {
                Ok(id) => Some(id),
                Err(error) => {
                    tracing::error!(%error, "cannot watch a socket that was handed over");
                    None
                }
            });
            conns.extend(id.map(|id| (id, awaits_flush)));
            sessions.push((session, id));
        }
        let taken = self.machine.take_over(self.now, traces, sessions, &mut self.effects);
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
fn handed(conn: Option<Conn>) -> Option<HandedConn> {
    let conn = conn?;
    if !conn.must_be_relayed() {
        return Some(HandedConn { conn, relay: None });
    }
    match pair() {
        Ok(relay) => Some(HandedConn { conn, relay: Some(relay) }),
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
