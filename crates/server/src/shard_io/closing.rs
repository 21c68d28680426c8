//! How connections end: in an orderly way, at a deadline, by a fault, or because the peer is gone.

use super::{ShardIo, Upcall};
use crate::conn::{ConnError, Protocol, ReadFlow, Readiness, Stage, Transport};
use crate::deadlines::Deadline;
use crate::tls::{Blame, Fault};
use carillon_core::model::ConnId;
use std::net::Shutdown;

impl ShardIo {
    /// Ends a connection that cannot go on.
    pub(crate) fn drop_conn(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.remove(id)
            && conn.stage == Stage::Open
        {
            self.upcalls.push(Upcall::Closed(id));
        }
    }

    /// Ends a connection that broke; an error of ours is worth a line in the log.
    pub(crate) fn fail(&mut self, id: ConnId, error: &ConnError) {
        if let ConnError::Tls(fault) = error {
            log_fault(fault);
        }
        self.drop_conn(id);
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
        conn.pending_input = None;
        conn.flow = ReadFlow::Open;
        if conn.send_close(code, &mut self.scratch.sealed).is_err() {
            self.conns.remove(id);
            return;
        }
        let patience = self.settings.timeouts.close_ms;
        self.deadlines.set(self.mono.plus(patience), Deadline::Leaving, id);
        self.shut_down_when_flushed(id);
    }

    /// Shuts a leaving connection down once its queue is written. One whose peer is done is gone then.
    pub(super) fn shut_down_when_flushed(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        if conn.stage != Stage::Leaving || conn.has_queue() {
            return;
        }
        let shut = conn.socket.shutdown(Shutdown::Write);
        conn.send_queue.discard();
        conn.stage = Stage::Lingering;
        if shut.is_err() {
            self.conns.remove(id);
            return;
        }
        // What is there already has its edge behind it.
        self.schedule(id);
    }

    /// The peer's end of the socket is closed: nothing more will come.
    pub(crate) fn peer_closed(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        conn.readiness = Readiness::Ended;
        match conn.stage {
            // Whoever half-closes may still read what it asked for.
            Stage::Open if conn.has_queue() => self.close(id, GOING_AWAY),
            // A peer that is gone and a goodbye that waits for room: until the deadline.
            Stage::Leaving => {}
            Stage::Open | Stage::New(_) | Stage::Lingering => self.drop_conn(id),
        }
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

    /// A fault of TLS: its alert is in the scratch buffer already, and nothing else can be said any more.
    pub(crate) fn tls_fault(&mut self, id: ConnId, fault: &Fault) {
        log_fault(fault);
        self.reply(id);
        if let Some(conn) = self.conns.get_mut(id) {
            // The alert is not to be followed by anything; `close` writes no TLS on a plain transport.
            conn.transport = Transport::Plain;
            conn.protocol = Protocol::Stream;
        }
        self.close(id, GOING_AWAY);
    }
}

fn log_fault(fault: &Fault) {
    match fault.blame() {
        Blame::Peer => tracing::debug!(%fault, "TLS ended a connection"),
        Blame::Ours => tracing::error!(%fault, "TLS failed on our side"),
    }
}

/// WebSocket: the server is going away, or the browser leaves (RFC 6455 §7.4.1).
pub(crate) const GOING_AWAY: u16 = 1001;
