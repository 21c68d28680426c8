//! Reading: from the socket through TLS and WebSocket to the core.

use super::EventLoop;
use super::inbox::EFFECTS_BYTES;
use crate::conn::{Conn, HandshakeStep, Protocol, ReadFlow, ReadOutcome, Stage, Transport};
use crate::machine::Machine;
use crate::shard_io::{GOING_AWAY, ShardIo};
use crate::tls::Fault;
use crate::websocket::UpgradeStep;
use carillon_core::connection::Resumed;
use carillon_core::model::ConnId;
use carillon_core::sasl::ChannelBinding;
use carillon_core::{Effect, Effects, Input, Security};
use carillon_wire::Framing;
use carillon_wire::frame::game;
use carillon_wire::frame::websocket::{Decoder, FrameEvent, Opcode, Role, encode_control};
use carillon_wire::xml::Limits;
use std::time::Instant;

impl<M: Machine> EventLoop<M> {
    /// Reads connections that have input: many sessions, and a few that are opening, as handshakes take long.
    pub(super) fn read_ready(&mut self) {
        // Much of what clients send becomes messages to other shards; while one of those is behind, clients wait.
        if self.io.outboxes.is_held_back() {
            return;
        }
        for _ in 0..SESSIONS_PER_TURN {
            let Some(id) = self.io.ready.live.pop_front() else { break };
            self.read(id);
            if self.is_late() {
                break;
            }
        }
        self.run_effects();
        let openings = if self.overloaded { OPENINGS_PER_OVERLOADED_TURN } else { OPENINGS_PER_TURN };
        for _ in 0..openings {
            let Some(id) = self.io.ready.opening.pop_front() else { break };
            self.read(id);
        }
        self.io.ready.tidy();
    }

    /// Reads one connection once.
    fn read(&mut self, id: ConnId) {
        let Some(conn) = self.io.conns.get_mut(id) else { return };
        conn.queued = false;
        if !conn.is_readable() {
            return;
        }
        match conn.take_kept() {
            Some(Resumed::Bytes(plain)) => {
                self.io.plaintext.replace(id, plain);
                self.handle_plaintext(id);
            }
            Some(Resumed::End) => return self.close(id, GOING_AWAY),
            None => match conn.receive(&mut self.io.scratch.raw) {
                ReadOutcome::Bytes(len) => self.received(id, len),
                ReadOutcome::Nothing => {}
                ReadOutcome::End => return self.peer_closed(id),
                ReadOutcome::Broken => return self.drop_conn(id),
            },
        }
        self.io.schedule(id);
    }

    fn peer_closed(&mut self, id: ConnId) {
        self.run_effects();
        self.io.peer_closed(id);
        self.run_effects();
    }

    fn drop_conn(&mut self, id: ConnId) {
        self.io.drop_conn(id);
        self.run_effects();
    }

    /// Takes `len` bytes of the scratch buffer.
    fn received(&mut self, id: ConnId, len: usize) {
        let Some(conn) = self.io.conns.get_mut(id) else { return };
        if matches!(conn.stage, Stage::Leaving | Stage::Lingering) {
            return;
        }
        match conn.transport {
            Transport::Announced(service) => self.header(id, service, len),
            _ => self.received_of_client(id, 0, len),
        }
    }

    /// Takes what the client sent, from `start` on in the scratch buffer, through the handshake, if there is one, and through TLS.
    pub(super) fn received_of_client(&mut self, id: ConnId, start: usize, len: usize) {
        let Some(conn) = self.io.conns.get_mut(id) else { return };
        let scratch = &mut self.io.scratch;
        match conn.feed_handshake(&scratch.raw[start..len], &mut scratch.reply) {
            Ok(None) => self.open_records(id, start, len),
            Ok(Some(HandshakeStep::Pending)) => self.reply(id),
            Ok(Some(HandshakeStep::Done { secured, consumed })) => {
                self.io.counters.handshakes += 1;
                // The ticket is sent together with the answer to what came behind the handshake, here or at the account's
                // home.
                conn.send_queue.hold(&scratch.reply);
                scratch.reply.clear();
                let exporter = secured.exporter.as_deref().copied();
                if secured.alpn.as_deref() == Some(game::ALPN) {
                    conn.protocol = Protocol::Player;
                }
                self.secured(id, ChannelBinding { exporter, end_point: secured.end_point });
                self.open_records(id, start + consumed, len);
                self.run_effects();
                self.io.release_held(id);
                self.run_effects();
            }
            Err(fault) => self.fault(id, &fault),
        }
    }

    fn open_records(&mut self, id: ConnId, start: usize, len: usize) {
        let ShardIo { conns, scratch, plaintext, counters, .. } = &mut self.io;
        let Some(conn) = conns.get_mut(id) else { return };
        let plain = plaintext.begin(id);
        let opened = conn.open(&mut scratch.raw[start..len], plain, &mut scratch.reply, self.now.mono);
        counters.bytes_in += plain.len() as u64;
        // It must precede whatever the plaintext makes the core send.
        self.reply(id);
        // What came before a fault is valid.
        self.handle_plaintext(id);
        match opened {
            Ok(false) => {}
            Ok(true) => match self.io.conns.get_mut(id) {
                // The core has yet to handle what came before.
                Some(conn) if conn.flow == ReadFlow::Paused => conn.keep_end(),
                // A close_notify is answered by one.
                _ => self.close(id, GOING_AWAY),
            },
            Err(fault) => self.fault(id, &fault),
        }
    }

    /// Writes what TLS sends of its own accord. If that is nothing, the effects go on waiting for others.
    fn reply(&mut self, id: ConnId) {
        if !self.io.scratch.reply.is_empty() {
            self.io.reply(id);
            self.run_effects();
        }
    }

    fn fault(&mut self, id: ConnId, fault: &Fault) {
        self.run_effects();
        self.io.tls_fault(id, fault);
        self.run_effects();
    }

    /// Handles the decrypted bytes as the protocol demands.
    fn handle_plaintext(&mut self, id: ConnId) {
        let open = self.io.conns.get_mut(id).filter(|_| !self.io.plaintext.unread().is_empty());
        if let Some(conn) = open {
            match conn.protocol {
                Protocol::Stream if conn.stage == Stage::Open && self.io.cell.relays.has(id) => {
                    let bytes = self.io.plaintext.take();
                    self.io.relay_bytes(id, bytes);
                }
                Protocol::Stream | Protocol::Light if conn.stage == Stage::Open => {
                    let bytes = self.io.plaintext.unread();
                    let before = self.effects.list.len();
                    let input = Input::Bytes { conn: id, bytes };
                    self.figures.flight.input(self.now.mono, &input);
                    let measured = measures(&mut self.unmeasured);
                    self.machine.handle(self.now, input, &mut self.effects);
                    if let Some(began) = measured {
                        self.machine.spent(id, nanoseconds_since(began));
                    }
                    // The core keeps what it does not handle at once.
                    self.io.plaintext.clear();
                    self.run_effects_unless_deferrable(before);
                }
                Protocol::Player if conn.stage == Stage::Open => {
                    let bytes = self.io.plaintext.unread();
                    let before = self.effects.list.len();
                    let input = Input::PlayerBytes { conn: id, bytes };
                    self.figures.flight.input(self.now.mono, &input);
                    self.machine.handle(self.now, input, &mut self.effects);
                    self.io.plaintext.clear();
                    self.run_effects_unless_deferrable(before);
                }
                Protocol::Stream | Protocol::Light | Protocol::Player => {}
                Protocol::Upgrade(_) => self.upgrade(id),
                Protocol::WebSocket(_) | Protocol::PlayerSocket(_) => self.frames(id),
            }
        }
        self.io.plaintext.clear();
    }

    /// Carries out the effects, unless those from `before` on only send bytes or messages, or count what has arrived: these may wait for the effects
    /// of other inputs in this part of the turn, to share system calls. Whatever ends a connection carries the effects
    /// out first, as the connection may be owed an answer.
    pub(super) fn run_effects_unless_deferrable(&mut self, before: usize) {
        let can_wait = |effect: &Effect| {
            matches!(
                effect,
                Effect::Send { .. }
                    | Effect::Datagram { .. }
                    | Effect::Post { .. }
                    | Effect::CountUnacked { .. }
            )
        };
        let Effects { list, bytes, .. } = &self.effects;
        if bytes.len() > EFFECTS_BYTES || !list[before..].iter().all(can_wait) {
            self.run_effects();
        }
    }

    /// TLS is complete.
    fn secured(&mut self, id: ConnId, binding: ChannelBinding) {
        let Some(conn) = self.io.conns.get_mut(id) else { return };
        conn.handshake_done();
        match (&mut conn.protocol, conn.stage) {
            (Protocol::Upgrade(upgrade), _) => upgrade.binding = Some(binding),
            (Protocol::Light, Stage::New(_)) => self.open_light(id),
            (Protocol::Player, Stage::New(_)) => self.open_player(id),
            (_, Stage::New(_)) => self.open(id, Framing::Tcp, Security::Secured(binding)),
            _ => self.handle(Input::Secured { conn: id, binding }),
        }
    }

    /// Feeds the HTTP request that asks for a WebSocket.
    fn upgrade(&mut self, id: ConnId) {
        let ShardIo { conns, plaintext, websocket, scratch, proxies, counters, .. } = &mut self.io;
        let Some(conn) = conns.get_mut(id) else { return };
        let Protocol::Upgrade(upgrade) = &mut conn.protocol else { return };
        let Stage::New(peer) = conn.stage else { return };
        let mut is_player = false;
        let step = upgrade.feed(plaintext.unread(), peer, websocket);
        let binding = upgrade.binding.take_if(|_| step != UpgradeStep::Partial);
        let (response, rest) = match step {
            UpgradeStep::Partial => return,
            UpgradeStep::Accepted { response, rest, client, is_player: player } => {
                is_player = player;
                let is_told = proxies.trust(peer);
                match is_told.then(|| conn.is_from(client.unwrap_or(peer))) {
                    None | Some(Ok(())) => (response, Some(rest)),
                    Some(Err(refusal)) => {
                        counters.refusals[refusal.index()] += 1;
                        (self.refused_conns.unavailable(refusal), None)
                    }
                }
            }
            UpgradeStep::Answered(response) => (response, None),
        };
        if let Err(error) = conn.send(&response, usize::MAX, &mut scratch.sealed) {
            self.io.fail(id, &error);
            return self.run_effects();
        }
        let Some(rest) = rest else { return self.close(id, NORMAL) };
        conn.protocol = if is_player { Protocol::PlayerSocket(None) } else { Protocol::WebSocket(None) };
        conn.handshake_done();
        plaintext.replace(id, rest);
        if is_player {
            self.open_player(id);
            return self.frames(id);
        }
        let security = binding.map_or(Security::Trusted, Security::Secured);
        self.open(id, Framing::WebSocket, security);
        self.frames(id);
    }

    /// Decodes WebSocket frames, one message at a time, while the core takes input. The other bytes stay in the shard's
    /// buffer, so that they move along if the connection moves.
    fn frames(&mut self, id: ConnId) {
        let decoder = self.io.conns.get_mut(id).and_then(take_decoder);
        let Some(mut decoder) = decoder else { return };
        loop {
            let stanza_bytes = match self.io.cell.relays.has(id) {
                // Its session checks it once more.
                true => self.io.settings.limits.stanza_bytes,
                false => self.machine.message_bytes_max(id),
            };
            decoder.set_limits(Limits { stanza_bytes, ..Limits::default() });
            let event = match self.io.plaintext.decode(&mut decoder) {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(error) => return self.close(id, error.close_code()),
            };
            match event {
                FrameEvent::Text(text) if self.io.cell.relays.has(id) => self.io.relay_bytes(id, text),
                FrameEvent::Text(text) => {
                    let before = self.effects.list.len();
                    let input = Input::Bytes { conn: id, bytes: &text };
                    self.figures.flight.input(self.now.mono, &input);
                    let measured = measures(&mut self.unmeasured);
                    self.machine.handle(self.now, input, &mut self.effects);
                    if let Some(began) = measured {
                        self.machine.spent(id, nanoseconds_since(began));
                    }
                    self.run_effects_unless_deferrable(before);
                }
                FrameEvent::Binary(bytes) => {
                    let before = self.effects.list.len();
                    let input = Input::PlayerBytes { conn: id, bytes: &bytes };
                    self.figures.flight.input(self.now.mono, &input);
                    self.machine.handle(self.now, input, &mut self.effects);
                    self.run_effects_unless_deferrable(before);
                }
                FrameEvent::Ping(payload) => self.pong(id, &payload),
                FrameEvent::Pong(_) => {}
                FrameEvent::Close { code, .. } => return self.close(id, code.unwrap_or(NORMAL)),
            }
            match self.io.conns.get_mut(id) {
                Some(conn) if conn.stage == Stage::Open => {
                    if conn.flow == ReadFlow::Paused {
                        conn.keep_plain(self.io.plaintext.unread());
                        break;
                    }
                }
                // It was moved or closed.
                _ => return,
            }
        }
        if let Some(conn) = self.io.conns.get_mut(id)
            && !decoder.is_idle()
        {
            let kept = Some(Box::new(decoder));
            conn.protocol = match conn.protocol {
                Protocol::PlayerSocket(_) => Protocol::PlayerSocket(kept),
                _ => Protocol::WebSocket(kept),
            };
        }
    }

    fn close(&mut self, id: ConnId, code: u16) {
        self.run_effects();
        self.io.close(id, code);
        self.run_effects();
    }

    /// Answers a ping, unless the peer has not read what was sent before.
    fn pong(&mut self, id: ConnId, payload: &[u8]) {
        let Some(conn) = self.io.conns.get_mut(id).filter(|conn| !conn.has_queue()) else { return };
        let scratch = &mut self.io.scratch;
        scratch.framed.clear();
        encode_control(&mut scratch.framed, Opcode::Pong, payload);
        if let Err(error) = conn.send(&scratch.framed, usize::MAX, &mut scratch.sealed) {
            self.io.fail(id, &error);
            self.run_effects();
        }
    }
}

/// When the handling of an input begins, for one input of so many. It stands for all of them: to ask for the time costs as much as a part of
/// the handling.
fn measures(unmeasured: &mut u8) -> Option<Instant> {
    let is_measured = *unmeasured == 0;
    *unmeasured = if is_measured { MEASURED_OF - 1 } else { *unmeasured - 1 };
    is_measured.then(Instant::now)
}

/// For how much time an input stands that was measured.
fn nanoseconds_since(began: Instant) -> u64 {
    began.elapsed().as_nanos() as u64 * u64::from(MEASURED_OF)
}

/// Of so many inputs the time of one is measured. A prime, so that no rhythm of clients hides from it.
const MEASURED_OF: u8 = 17;

/// The decoder of an open WebSocket: the one that is kept inside a message, or a new one.
fn take_decoder(conn: &mut Conn) -> Option<Decoder> {
    let (decoder, new): (_, fn(Role, Limits) -> Decoder) = match &mut conn.protocol {
        Protocol::WebSocket(decoder) => (decoder, Decoder::new),
        Protocol::PlayerSocket(decoder) => (decoder, Decoder::binary),
        _ => return None,
    };
    Some(decoder.take().map_or_else(|| new(Role::Server, Limits::before_auth()), |decoder| *decoder))
}

/// The close code of a normal end (RFC 6455 §7.4.1).
const NORMAL: u16 = 1000;
/// Sessions that are read per turn.
const SESSIONS_PER_TURN: usize = 128;
/// Opening connections that are read per turn: a handshake takes as long as ten messages.
const OPENINGS_PER_TURN: usize = 8;
/// The same if the last turn took long, in favour of open sessions.
const OPENINGS_PER_OVERLOADED_TURN: usize = 2;
