//! New connections: admitted or refused, and made known to the core.

use super::EventLoop;
use crate::conn::deadlines::Deadline;
use crate::conn::{Conn, Protocol, Transport};
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
                let (service, is_proxied) = (listener.service, listener.is_proxied);
                match listener.accept(&mut self.spare, self.now.mono) {
                    Accepted::Conn(socket, address) => self.admit(socket, address, service, is_proxied),
                    Accepted::TurnedAway => self.refused(Refusal::Descriptors),
                    Accepted::Lost => {}
                    Accepted::Nothing => break,
                }
            }
        }
    }

    fn admit(&mut self, socket: Socket, address: IpAddr, service: Service, is_proxied: bool) {
        let is_proxy = self.io.proxies.trust(address);
        let awaits_header = is_proxy && is_proxied;
        // Whose connection it is, is told by the header, or by the request for the WebSocket.
        let is_told = awaits_header || is_proxy && service.begins_with_http();
        let admitted = match is_told {
            true => self.admission.admit_proxied(self.now.mono),
            false => self.admission.admit(address, self.now.mono),
        };
        let permit = match admitted {
            Ok(permit) => permit,
            Err(refusal) => return self.refuse(socket, service, refusal),
        };
        let protocol = match service {
            Service::StartTls | Service::DirectTls => Protocol::Stream,
            Service::WebSocket | Service::WebSocketTls => Protocol::Upgrade(Box::default()),
            Service::Light | Service::LightTls => Protocol::Light,
        };
        let transport = match awaits_header {
            true => Transport::Announced(service),
            false => self.io.start_transport(service),
        };
        let id = match self.io.attach(Conn::new(socket, address, transport, protocol, permit)) {
            Ok(id) => id,
            Err(error) => return tracing::error!(%error, "cannot watch a socket"),
        };
        match awaits_header {
            true => {
                let patience = HEADER_MS.min(self.io.settings.timeouts.auth_ms);
                self.io.deadlines.set(self.now.mono.plus(patience), Deadline::Announced, id);
            }
            false => self.begin(id, service),
        }
    }

    /// Begins a connection that was admitted and whose transport is set.
    pub(super) fn begin(&mut self, id: ConnId, service: Service) {
        self.io.counters.accepted += 1;
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

    /// Refuses a connection, and tells its client why, where that is possible.
    pub(super) fn refuse(&mut self, socket: Socket, service: Service, refusal: Refusal) {
        self.refused_conns.refuse(socket, service, refusal, self.now.mono);
        self.refused(refusal);
    }

    /// Makes a connection of the light protocol known to the core.
    pub(super) fn open_light(&mut self, conn: ConnId) {
        let Some(opened) = self.io.conns.get_mut(conn) else { return };
        opened.handshake_done();
        if opened.mark_open().is_some() {
            self.handle(Input::OpenedLight { conn });
        }
    }

    /// Makes the connection of a player known to the core.
    pub(super) fn open_player(&mut self, conn: ConnId) {
        let Some(opened) = self.io.conns.get_mut(conn) else { return };
        opened.handshake_done();
        if opened.mark_open().is_some() {
            self.handle(Input::OpenedPlayer { conn, datagrams: false });
        }
    }

    pub(super) fn refused(&mut self, refusal: Refusal) {
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
/// How long a proxy has for its header at most, in milliseconds. It comes with the first packet of the connection; three seconds are the
/// least that the protocol recommends, for one that is lost.
const HEADER_MS: u64 = 5000;
