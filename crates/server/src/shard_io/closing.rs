//! How connections end: by a close, at a deadline, by a fault, or because the peer is gone.

use super::resources::ShardIo;
use super::upcall::Upcall;
use crate::conn::deadlines::Deadline;
use crate::conn::{ConnError, Protocol, ReadFlow, Readiness, Stage, Transport};
use crate::listen::Refusal;
use crate::tls::{Blame, Fault};
use carillon_core::model::ConnId;
use std::net::Shutdown;

impl ShardIo {
    /// Drops a connection that cannot go on.
    pub(crate) fn drop_conn(&mut self, id: ConnId) {
        if let Some(conn) = self.remove(id)
            && conn.stage == Stage::Open
        {
            self.upcalls.push(Upcall::Closed(id, conn.unacked()));
        }
    }

    /// Drops a connection after an error, and logs faults of TLS.
    pub(crate) fn fail(&mut self, id: ConnId, error: &ConnError) {
        if let ConnError::Tls(fault) = error {
            log_fault(fault);
        }
        self.drop_conn(id);
    }

    /// Closes a connection: what is queued is written first, then the closing messages of WebSocket, with `code`, and of
    /// TLS. For the core it is gone at once.
    pub(crate) fn close(&mut self, id: ConnId, code: u16) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        match conn.stage {
            Stage::Leaving | Stage::Lingering => return,
            Stage::New(_) => {}
            Stage::Open => self.upcalls.push(Upcall::Closed(id, conn.unacked())),
        }
        conn.pending_input = None;
        conn.flow = ReadFlow::Open;
        if conn.send_close(code, &mut self.scratch.sealed).is_err() {
            self.remove(id);
            return;
        }
        self.recount(id);
        let patience = self.settings.timeouts.close_ms;
        self.deadlines.set(self.mono.plus(patience), Deadline::Leaving, id);
        self.shut_down_when_flushed(id);
    }

    /// Shuts a leaving connection down once its queue is written. If its peer has closed already, it is dropped.
    pub(super) fn shut_down_when_flushed(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        if conn.stage != Stage::Leaving || conn.has_queue() {
            return;
        }
        let shut = conn.socket.shutdown(Shutdown::Write);
        conn.send_queue.discard();
        conn.stage = Stage::Lingering;
        if shut.is_err() {
            self.remove(id);
            return;
        }
        self.recount(id);
        // The edge of input that is there already is past.
        self.schedule(id);
    }

    /// Handles the peer's end: nothing more will come from it.
    pub(crate) fn peer_closed(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        conn.readiness = Readiness::Ended;
        match conn.stage {
            // A peer that half-closes may still read what it asked for.
            Stage::Open if conn.has_queue() => self.close(id, GOING_AWAY),
            // The closing messages wait for room until the deadline.
            Stage::Leaving => {}
            Stage::Open | Stage::New(_) | Stage::Lingering => self.drop_conn(id),
        }
    }

    /// Drops the connections that missed their deadline.
    pub(crate) fn expire(&mut self) {
        while let Some((deadline, id)) = self.deadlines.due(self.mono) {
            let Some(conn) = self.conns.get_mut(id) else { continue };
            let missed = match deadline {
                Deadline::Announced => matches!(conn.transport, Transport::Announced(_)),
                Deadline::Opening => matches!(conn.stage, Stage::New(_)),
                Deadline::Leaving => matches!(conn.stage, Stage::Leaving | Stage::Lingering),
            };
            if missed {
                if deadline == Deadline::Announced {
                    self.counters.refusals[Refusal::ProxyHeader.index()] += 1;
                }
                self.remove(id);
            }
        }
    }

    /// Closes a connection after a fault of TLS. Its alert is in the scratch buffer, and nothing else may follow.
    pub(crate) fn tls_fault(&mut self, id: ConnId, fault: &Fault) {
        log_fault(fault);
        self.reply(id);
        if let Some(conn) = self.conns.get_mut(id) {
            // Nothing may follow the alert; `close` writes no TLS on a plain transport.
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

/// WebSocket's close code of a server that goes away or a browser that leaves the page (RFC 6455 §7.4.1).
pub(crate) const GOING_AWAY: u16 = 1001;
