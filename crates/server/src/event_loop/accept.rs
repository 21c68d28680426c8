//! New connections: admitted or refused, and made known to the core.

use super::EventLoop;
use crate::conn::{Conn, Protocol, Transport};
use crate::deadlines::Deadline;
use crate::listen::{Accepted, Refusal, Service};
use crate::machine::Machine;
use carillon_core::model::ConnId;
use carillon_core::{Input, Opened, Security};
use carillon_wire::Framing;
use socket2::Socket;
use std::net::IpAddr;

impl<M: Machine> EventLoop<M> {
    /// Accepts a bounded number of connections, and none while enough accepted ones wait for their handshakes: in the
    /// kernel's queue they cost nothing.
    pub(super) fn accept(&mut self) {
        self.refused_conns.expire(self.now.mono);
        if self.io.ready.opening.len() >= OPENINGS_QUEUED {
            return;
        }
        let accepts = if self.overloaded { ACCEPTS_PER_OVERLOADED_TURN } else { ACCEPTS_PER_TURN };
        for n in 0..self.listeners.len() {
            for _ in 0..accepts {
                let listener = &mut self.listeners[n];
                if !listener.is_ready(self.now.mono) {
                    break;
                }
                let service = listener.service;
                match listener.accept(&mut self.spare, self.now.mono) {
                    Accepted::Conn(socket, address) => self.admit(socket, address, service),
                    Accepted::TurnedAway => self.refused(Refusal::Descriptors),
                    Accepted::Lost => {}
                    Accepted::Nothing => break,
                }
            }
        }
    }

    fn admit(&mut self, socket: Socket, address: IpAddr, service: Service) {
        let permit = match self.admission.admit(address, self.now.mono) {
            Ok(permit) => permit,
            Err(refusal) => {
                self.refused_conns.refuse(socket, service, refusal, self.now.mono);
                return self.refused(refusal);
            }
        };
        self.io.counters.accepted += 1;
        let (transport, protocol) = match service {
            Service::StartTls => (Transport::Plain, Protocol::Stream),
            Service::DirectTls => (self.io.start_handshake(service), Protocol::Stream),
            Service::WebSocket => (Transport::Plain, Protocol::Upgrade(Box::default())),
            Service::WebSocketTls => (self.io.start_handshake(service), Protocol::Upgrade(Box::default())),
            Service::Light => (Transport::Plain, Protocol::Light),
            Service::LightTls => (self.io.start_handshake(service), Protocol::Light),
        };
        let id = match self.io.attach(Conn::new(socket, address, transport, protocol, permit)) {
            Ok(id) => id,
            Err(error) => return tracing::error!(%error, "cannot watch a socket"),
        };
        match service {
            Service::StartTls => self.open(id, Framing::Tcp, Security::StartTls),
            Service::Light => self.open_light(id),
            Service::DirectTls | Service::WebSocket | Service::WebSocketTls | Service::LightTls => {
                // The core's own timers start when it knows the connection.
                let patience = self.io.settings.timeouts.auth_ms;
                self.io.deadlines.set(self.now.mono.plus(patience), Deadline::Opening, id);
            }
        }
    }

    /// Makes a connection of the light protocol known to the core.
    pub(super) fn open_light(&mut self, conn: ConnId) {
        let Some(opened) = self.io.conns.get_mut(conn) else { return };
        opened.handshake_done();
        if opened.mark_open().is_some() {
            self.handle(Input::OpenedLight { conn });
        }
    }

    fn refused(&mut self, refusal: Refusal) {
        tracing::debug!(reason = refusal.label(), "a connection was refused");
        self.io.counters.refusals[refusal.index()] += 1;
    }

    /// Makes a connection known to the core.
    pub(super) fn open(&mut self, conn: ConnId, framing: Framing, security: Security) {
        let Some(address) = self.io.conns.get_mut(conn).and_then(Conn::mark_open) else { return };
        self.handle(Input::Opened(Opened { conn, address, framing, security }));
    }
}

/// Connections accepted per listener and turn.
const ACCEPTS_PER_TURN: usize = 64;
/// The same if the last turn took long.
const ACCEPTS_PER_OVERLOADED_TURN: usize = 4;
/// No more connections are accepted while this many wait for their handshakes: the work of several turns.
const OPENINGS_QUEUED: usize = 64;
