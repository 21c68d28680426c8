//! QUIC in a turn: packets are received, connections driven, and what they have to say is sent at the turn's end.

use super::EventLoop;
use crate::machine::Machine;
use crate::quic::{Key, QuicConn, QuicItem, QuicStep};
use carillon_core::Input;
use carillon_core::connection::Joining;
use std::time::Instant;

impl<M: Machine> EventLoop<M> {
    /// Receives packets and drives the connections that they are for.
    pub(super) fn read_quic(&mut self) {
        // Packets may be for other shards; while one of those is behind, the kernel keeps them, or loses them.
        let is_held_back = self.io.outboxes.is_held_back();
        let Some((quic, mut around)) = self.io.quic(&self.admission, self.accepts) else { return };
        if !is_held_back {
            quic.receive(&mut around);
        }
        self.drive_quic();
    }

    /// Tells the core what happened to connections.
    fn drive_quic(&mut self) {
        while let Some(key) = self.io.quic_next() {
            self.unpublished = true;
            while let Some(step) = self.io.quic_step(key) {
                self.quic_step(step);
            }
        }
        self.run_effects();
    }

    fn quic_step(&mut self, step: QuicStep) {
        match step {
            QuicStep::Opened { id, datagrams } => self.handle(Input::OpenedPlayer { conn: id, datagrams }),
            QuicStep::Bytes(id, bytes) => self.player_input(Input::PlayerBytes { conn: id, bytes: &bytes }),
            QuicStep::Datagram(id, bytes) => {
                self.player_input(Input::PlayerDatagram { conn: id, bytes: &bytes });
            }
            QuicStep::Ended(id) => {
                self.run_effects();
                self.io.close_quic(id);
                self.run_effects();
            }
            QuicStep::Told => self.run_effects(),
        }
    }

    fn player_input(&mut self, input: Input<'_>) {
        let before = self.effects.list.len();
        self.figures.flight.input(self.now.mono, &input);
        self.machine.handle(self.now, input, &mut self.effects);
        self.run_effects_unless_deferrable(before);
    }

    /// Something of QUIC came from another shard.
    pub(super) fn quic_item(&mut self, item: QuicItem) {
        let Some((quic, mut around)) = self.io.quic(&self.admission, self.accepts) else { return };
        if let Some((key, conn, joining)) = quic.item(item, &mut around) {
            self.adopt_quic(key, conn, joining);
        }
        self.drive_quic();
    }

    fn adopt_quic(&mut self, key: Key, conn: Box<QuicConn>, joining: Box<Joining>) {
        if let Some(conn) = self.io.adopt_quic(key, conn) {
            self.handle(Input::ArrivedPlayer { conn, joining });
        }
    }

    /// Has the timers of connections run that are due.
    pub(super) fn run_quic_timers(&mut self) {
        let Some(quic) = self.io.quic.as_deref_mut() else { return };
        if quic.due().is_some_and(|at| at <= self.now.mono) {
            quic.run_timers(Instant::now());
            self.drive_quic();
        }
    }

    /// Sends what connections have to send.
    pub(super) fn flush_quic(&mut self) {
        if let Some((quic, mut around)) = self.io.quic(&self.admission, self.accepts) {
            quic.flush(&mut around);
        }
    }
}
